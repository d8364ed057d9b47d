"""Makes the golden logs: small segments with a case each, and the rows they stand for.

    python tests/pipeline/golden/make.py

What it writes is checked in: the logs must be read the same by every later version, and by Kafka's own tool.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent / "source")]

import made_batches as made  # noqa: E402  # needs the paths set above

from broker.coordinator.offsets.provenance import provenance  # noqa: E402  # needs the paths set above
from broker.coordinator.offsets.spans import span_batches  # noqa: E402  # needs the paths set above
from pipeline.decode.records import classes_of  # noqa: E402  # needs the paths set above
from pipeline.source.segment_ranges import scan  # noqa: E402  # needs the paths set above
from protocol import wire  # noqa: E402  # needs the paths set above
from protocol.codegen import codec  # noqa: E402  # needs the paths set above
from protocol.declare import Message  # noqa: E402  # needs the paths set above
from protocol.messages import coordinator_records as records  # noqa: E402  # needs the paths set above
from protocol.messages.consumer_protocol import (  # noqa: E402  # needs the paths set above
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from protocol.messages.own_records import TransactionGroupKey, TransactionGroupValue  # noqa: E402  # needs the paths set above
from protocol.record_batch import (  # noqa: E402  # needs the paths set above
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    control_batch,
)

LOGS = HERE / "logs"
NOW = made.NOW_MS
VIEWS = ("raw", "offsets", "transactions")
_SAMPLES: dict[str, Any] = {
    "Bool": True,
    "Int8": 1,
    "Int16": 1,
    "UInt16": 9092,
    "Int32": 7,
    "Int64": NOW,
    "String": "name",
    "Bytes": b"\x01\x02\xff",
    "Uuid": bytes(range(16)),
}


class Log:
    """One segment in the making."""

    def __init__(self, name: str) -> None:
        self.name, self.end, self.batches = name, 0, list[bytes]()

    def add(self, *records_: made.Made, gap: int = 0, **fields: Any) -> None:
        self.batches.append(made.batch_of(records_, base_offset=self.end, **fields))
        header = self.batches[-1]
        self.end += int.from_bytes(header[23:27], "big") + 1 + gap

    def marker(self, kind: int, producer_id: int) -> None:
        fields = {"producer_id": producer_id, "producer_epoch": 3, "coordinator_epoch": 5}
        self.batches.append(control_batch(kind, base_offset=self.end, timestamp_ms=NOW, **fields))
        self.end += 1

    def write(self) -> None:
        made.write_segment(LOGS, self.name, 0, *self.batches)


def sample(cls: type[Message], version: int = 0) -> Any:
    """A message with something in every field that the version has."""
    message = cls()
    for each in cls.FIELDS:
        if each.is_in(version):
            setattr(message, each.name, _sample(each.wire, version))
    return message


def _sample(kind: Any, version: int) -> Any:
    if isinstance(kind, wire.Array):
        return [_sample(kind.element, version)]
    return sample(kind, version) if isinstance(kind, type) else _SAMPLES[kind.name]


def codecs() -> Log:
    log = Log("codecs-0")
    for codec_number in range(5):
        rows = [
            (b"key %d" % n, b"a value, again and again " * (n + 1), [("codec", b"%d" % codec_number)]) for n in range(4)
        ]
        log.add(*rows, attributes=codec_number, producer_id=9, producer_epoch=0, base_sequence=4 * codec_number)
    return log


def shapes() -> Log:
    """Times, nulls, headers, sequences that wrap, and what a cleaner leaves behind."""
    log = Log("shapes-0")
    log.add((b"k", b"v", ()), (None, b"no key", ()), (b"no value", None, ()), times=[NOW, NOW - 5, NOW + 70_000])
    log.add((b"k", b"v", ()), (b"k", b"v", ()), attributes=LOG_APPEND_TIME, max_timestamp=NOW + 1)
    log.add((b"k", b"v", [("a", b"1"), ("a", None), ("", b"")]), (b"", b"", ()))
    log.add(*[(b"k", b"%d" % n, ()) for n in range(3)], producer_id=1, producer_epoch=2, base_sequence=2**31 - 2)
    log.add((b"k", b"v", ()), (b"k", None, ()), deltas=[3, 90], last_delta=99, times=[NOW, NOW + 1])
    log.add((b"k", None, ()), attributes=DELETE_HORIZON, base_timestamp=NOW, gap=1000)
    log.add(last_delta=4, producer_id=1, producer_epoch=2, base_sequence=7)
    log.add((b"last", b"x" * 300, ()), leader_epoch=8)
    return log


def transactions() -> Log:
    log = Log("transactions-0")
    said = {"attributes": TRANSACTIONAL, "producer_epoch": 3}
    log.add((b"k", b"committed", ()), producer_id=1, base_sequence=0, **said)
    log.add((b"k", b"aborted", ()), (b"k", b"aborted", ()), producer_id=2, base_sequence=0, **said)
    log.marker(1, 1)
    log.marker(0, 2)
    log.add((b"k", b"open", ()), producer_id=1, base_sequence=1, **said)
    return log


def commits() -> Log:
    """Every version of a committed offset, tombstones, several records a batch, who made them, and in transactions."""
    log = Log("__consumer_offsets-0")
    for version in range(5):
        value = made.commit_value(
            100 + version, version, metadata="m", leader_epoch=4, expire_timestamp=NOW + 9, topic_id=bytes(range(16))
        )
        log.add((made.commit_key("versions", "t", version), value, ()))
    by = provenance("member-1", "instance-1", 12, "client-1")
    log.add(*[(made.commit_key("g", "t", p), made.commit_value(p), by if not p else ()) for p in range(5)])
    log.add((made.commit_key("g", "t", 4), None, provenance("", None, -1, "admin")))
    said = {"attributes": TRANSACTIONAL, "producer_epoch": 3}
    for kind, producer in ((1, 1), (0, 2)):
        log.add(
            (made.commit_key("tx", "t"), made.commit_value(5 + kind), by), producer_id=producer, base_sequence=0, **said
        )
        log.marker(kind, producer)
    return log


def large_commit() -> Log:
    """One commit over several batches."""
    log = Log("__consumer_offsets-1")
    by = provenance("member-1", None, 3, "client-1")
    rows = [(made.commit_key("large", "t", p), made.commit_value(p), by if not p else ()) for p in range(20)]
    for batch, last in span_batches(rows, base_offset=0, leader_epoch=0, timestamp_ms=NOW, max_bytes=700):
        log.batches.append(batch)
        log.end = last + 1
    log.add((made.commit_key("large", "t", 0), made.commit_value(99), ()))
    return log


def groups() -> Log:
    """Every other record type, each with a value in all its versions, and its tombstone."""
    log = Log("__consumer_offsets-2")
    for record_type in [*range(2, 9), *range(10, 18), *range(19, 24)]:
        classes = classes_of("offsets", record_type)
        assert classes is not None
        key = records.encode_key(sample(classes[0]))
        for version in range(classes[1].MIN_VERSION, classes[1].MAX_VERSION + 1):
            log.add((key, records.encode_record(sample(classes[1], version), version), ()))
        log.add((key, None, ()))
    value = sample(records.GroupMetadataValue, 3)
    value.protocol_type = "consumer"
    value.members[0].subscription = b"\0\x03" + codec(ConsumerProtocolSubscription, 3).encode(
        sample(ConsumerProtocolSubscription, 3)
    )
    value.members[0].assignment = b"\0\x01" + codec(ConsumerProtocolAssignment, 1).encode(
        sample(ConsumerProtocolAssignment, 1)
    )
    log.add((records.encode_key(records.GroupMetadataKey(group="classic")), records.encode_record(value, 3), ()))
    return log


def transaction_state() -> Log:
    log = Log("__transaction_state-0")
    key = records.encode_key(records.TransactionLogKey(transactional_id="tx"))
    for version in range(2):
        for status in range(8 if version else 2):
            value = sample(records.TransactionLogValue, version)
            value.transaction_status = status
            value.transaction_partitions = value.transaction_partitions if status else None
            log.add((key, records.encode_record(value, version), ()))
    log.add((key, None, ()))
    own = records.encode_key(TransactionGroupKey(transactional_id="tx", group_id="g"))
    log.add((own, records.encode_record(sample(TransactionGroupValue), 0), ()), (own, None, ()))
    return log


def rows_of(view: str) -> list[str]:
    """The rows as they are checked in: a line each, nulls left out, bytes in hexadecimal."""
    rows = [row for batch in scan(str(LOGS), view) for row in batch.to_pylist()]
    kept = [{name: value for name, value in row.items() if value is not None} for row in rows]
    return [json.dumps(row, default=lambda each: each.hex() if isinstance(each, bytes) else str(each)) for row in kept]


def main() -> None:
    shutil.rmtree(LOGS, ignore_errors=True)
    for make in (codecs, shapes, transactions, commits, large_commit, groups, transaction_state):
        make().write()
    for view in VIEWS:
        (HERE / f"{view}.jsonl").write_text("".join(line + "\n" for line in rows_of(view)))


if __name__ == "__main__":
    main()
