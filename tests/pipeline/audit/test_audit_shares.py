"""Share groups: each fault, written into a log as no broker writes it, is found at its place; what is no fault is not.

`kafka_share` is what Apache Kafka wrote while consumers did all that they may do: nothing is found there, and in a copy
of it exactly what is planted. tests/e2e/make_kafka_share_logs.py makes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from made_logs import ABORT, COMMIT, Logs

from broker.coordinator.share.combine import StateBatch
from broker.coordinator.share.state import Key, ShareState, snapshot_record, tombstone, update_key, update_value
from pipeline.audit.directory import audit_of
from pipeline.audit.share_states import (
    AGAIN,
    BEYOND,
    SKIPPED,
    UNREAD,
    StateRecord,
    walk,
)
from protocol.codegen import codec
from protocol.messages.coordinator_records import encode_record
from protocol.messages.metadata_records import ConfigRecord
from protocol.messages.metadata_records import encode_record as metadata_value
from protocol.messages.share_group_records import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
)
from protocol.messages.share_group_records import (
    ShareGroupStatePartitionMetadataValueTopicPartitionsInfo as TopicPartitionsInfo,
)
from protocol.record_batch import build_batch
from storage.checkpoints import uuid_from_text, uuid_text

GOLDEN = Path(__file__).parent / "kafka_share"
STATE = "__share_group_state-0"
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
ID = bytes(range(16))
KEY = Key("g", ID, 0)
EMPTY = ShareState(0, 1, 0, 0, 0, 1, 1)
Batch = tuple[int, int, int, int]  # first, last, state, count


def snapshot(start: int = 0, *batches: Batch, epoch: int = 0, state_epoch: int = 1, key: Key = KEY) -> Any:
    made = tuple(StateBatch(*batch) for batch in batches)
    return snapshot_record(
        key, EMPTY._replace(snapshot_epoch=epoch, state_epoch=state_epoch, start_offset=start, batches=made)
    )


def update(start: int, *batches: Batch, epoch: int = 0, key: Key = KEY) -> Any:
    return update_key(key), update_value(epoch, 0, start, -1, [StateBatch(*batch) for batch in batches])


def walked(*records: Any, limit: int = 5, lost: Sequence[int] = ()) -> list[tuple[str, int, int | None, int, int, int]]:
    """(what, offset, proof offset, lost, first, last) of what is wrong. lost: missing offsets before each record."""
    missing = [*lost, *[lost[-1] if lost else 0] * len(records)]
    made = [StateRecord(at, missing[at], *record) for at, record in enumerate(records)]
    return [wrong[:6] for wrong in walk(made, limit)]


# -- the walk


def test_what_a_group_may_do_is_not_wrong():
    assert walked(
        snapshot(0),
        update(0, (0, 9, AVAILABLE, 1)),  # released
        update(0, (0, 4, ACKNOWLEDGED, 2), (5, 5, AVAILABLE, 2), (6, 9, ARCHIVED, 2)),  # 6 to 9 rejected
        update(0, (0, 4, ACKNOWLEDGED, 2)),  # a write that was tried again
        update(5, (5, 5, ARCHIVED, 5)),  # came to the limit
        snapshot(10, epoch=1),
        update(-1, (10, 19, ACKNOWLEDGED, 1), epoch=1),
        snapshot(0, epoch=2, state_epoch=2),  # an operator has set it back
        update(0, (0, 9, ACKNOWLEDGED, 1), epoch=2),
        tombstone(KEY),
        snapshot(0),
        update(-1, (0, 9, ACKNOWLEDGED, 1)),
    ) == []  # fmt: skip  # one to a line


def test_acknowledged_record_that_comes_again_is_wrong():
    begin = (snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)))
    assert walked(*begin, update(0, (3, 4, ACKNOWLEDGED, 2))) == [(AGAIN, 2, 1, 0, 3, 4)]
    assert walked(*begin, update(0, (9, 12, AVAILABLE, 2))) == [(AGAIN, 2, 1, 0, 9, 9)]
    assert walked(*begin, update(10), update(10, (3, 3, ACKNOWLEDGED, 2))) == [(AGAIN, 3, 1, 0, 3, 3)]
    idle = (*begin, update(10), snapshot(10, epoch=1))
    assert walked(*idle, update(10, (3, 3, ACKNOWLEDGED, 2), epoch=1)) == [(AGAIN, 4, 1, 0, 3, 3)]
    assert walked(*begin, update(0, (3, 4, ACKNOWLEDGED, 2)), lost=(0, 0, 7)) == [(AGAIN, 2, 1, 7, 3, 4)]


def test_archived_record_that_comes_again_is_wrong():
    begin = (snapshot(0), update(0, (0, 9, ARCHIVED, 2)))
    assert walked(*begin, update(0, (9, 9, ACKNOWLEDGED, 3))) == [(AGAIN, 2, 1, 0, 9, 9)]


def test_state_that_began_again_contradicts_nothing():
    begin = (snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)))
    assert walked(*begin, snapshot(0, (0, 9, ACKNOWLEDGED, 2), epoch=1, state_epoch=2)) == []  # an operator set it back
    assert walked(*begin, tombstone(KEY), snapshot(0, (0, 9, ACKNOWLEDGED, 2), epoch=1)) == []


def test_delivery_beyond_the_limit_is_wrong():
    assert walked(snapshot(0), update(0, (1, 1, AVAILABLE, 5), (2, 3, ACKNOWLEDGED, 6))) == [(BEYOND, 1, None, 0, 2, 3)]
    assert walked(snapshot(0, (1, 1, ARCHIVED, 6)), snapshot(0, (1, 1, ARCHIVED, 6), epoch=1)) == [
        (BEYOND, 0, None, 0, 1, 1)
    ]


def test_archived_record_without_a_delivery_is_wrong():
    assert walked(snapshot(0), update(0, (1, 4, ARCHIVED, 0))) == [(UNREAD, 1, None, 0, 1, 4)]


def test_passed_records_that_are_not_finished_are_wrong_if_they_are_there():
    wrong = [(SKIPPED, 2, 1, 0, 0, 1), (SKIPPED, 2, 1, 0, 5, 7), (SKIPPED, 2, 1, 0, 9, 9)]
    begin = (snapshot(0), update(0, (2, 4, ACKNOWLEDGED, 1), (5, 5, AVAILABLE, 1), (8, 8, ARCHIVED, 1)))
    assert walked(*begin, update(10)) == wrong
    assert walked(*begin, snapshot(10, (10, 10, AVAILABLE, 1), epoch=1)) == wrong
    assert walked(*begin, update(10), lost=(0, 0, 1)) == [(*each[:3], 1, *each[4:]) for each in wrong]
    assert walked(snapshot(0), update(1)) == [(SKIPPED, 1, 0, 0, 0, 0)]


def test_state_further_on_at_the_same_delivery_is_not_wrong():
    """As Kafka combines them: an acquisition comes with a higher count."""
    assert walked(snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)), update(0, (3, 4, ARCHIVED, 1))) == []


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ((3, 3, AVAILABLE, 2), "record 3 is available at delivery 2, but was acknowledged at delivery 1"),
        ((3, 4, ARCHIVED, 2), "records 3 to 4 are archived at delivery 2, but were acknowledged at delivery 1"),
        ((10, 10, ACKNOWLEDGED, 7), "record 10 came to delivery 7, the limit is 5"),
        ((10, 12, ACKNOWLEDGED, 6), "records 10 to 12 came to delivery 6, the limit is 5"),
        ((10, 10, ARCHIVED, 0), "record 10 is archived, but never came to a consumer"),
        ((10, 12, ARCHIVED, 0), "records 10 to 12 are archived, but never came to a consumer"),
    ],
)
def test_sentence_says_which_records_and_what_of_them(said, sentence):
    records = (snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)), update(0, said))
    made = [StateRecord(at, 0, *record) for at, record in enumerate(records)]
    assert [wrong.detail for wrong in walk(made, 5)] == [sentence]


def test_without_a_snapshot_nothing_is_known():
    again = update(0, (0, 9, ACKNOWLEDGED, 2), epoch=7)
    assert walked(update(0, (0, 9, ACKNOWLEDGED, 1)), update(5, (0, 9, ACKNOWLEDGED, 2))) == []
    assert walked(snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)), again) == []  # of another snapshot, which is missing
    assert (
        walked(snapshot(0, (0, 9, ACKNOWLEDGED, 1)), snapshot(0, epoch=1), update(0, (0, 9, ACKNOWLEDGED, 2), epoch=1))
        == []
    )


# -- whole audits


class Fault(NamedTuple):
    """kind at offset of STATE (None: no finding), and what its sentence must say."""

    kind: str | None
    offset: int = 0
    says: str = ""
    proof: int | None = None


class ShareLogs(Logs):
    """With share groups and their topics, each with an id of its own."""

    def write(self, record: Any) -> int:
        return self.append(STATE, build_batch([record], timestamp_ms=self.tick()), 1)

    def topic(self, name: str, other_id: bytes | None = None) -> Key:
        """A topic that a group of the same name reads; its directory says other_id."""
        topic_id = name.encode().ljust(16, b"\0")
        key = ShareGroupStatePartitionMetadataKey(group_id=name)
        info = TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=[0])
        value = ShareGroupStatePartitionMetadataValue(
            initializing_topics=[], initialized_topics=[info], deleting_topics=[]
        )
        raw = key.API_KEY.to_bytes(2, "big") + codec(type(key), 0).encode(key)
        batch = build_batch([(raw, encode_record(value, 0))], timestamp_ms=self.tick())
        self.append("__consumer_offsets-0", batch, 1)
        (self.directory / f"{name}-0").mkdir()
        text = f"version: 0\ntopic_id: {uuid_text(other_id or topic_id)}\n"
        (self.directory / f"{name}-0" / "partition.metadata").write_text(text)
        return Key(name, topic_id, 0)

    def limit(self, group: str, value: str | None) -> None:
        record = ConfigRecord(resource_type=32, resource_name=group, name="share.delivery.count.limit", value=value)
        self.append(
            "__cluster_metadata-0", build_batch([(None, metadata_value(record, 0))], timestamp_ms=self.tick()), 1
        )


def again(logs: ShareLogs) -> Fault:
    key = logs.topic("again")
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), key=key))
    place = logs.write(update(0, (2, 2, ACKNOWLEDGED, 2), key=key))
    logs.write(update(0, (5, 5, ACKNOWLEDGED, 2), key=key))
    return Fault("share-delivered-again", place, "record 2 is acknowledged at delivery 2, but was acknowledged", before)


def beyond_its_own_limit(logs: ShareLogs) -> Fault:
    key = logs.topic("limited")
    logs.limit("limited", "3")
    logs.write(snapshot(key=key))
    logs.write(update(0, (0, 4, AVAILABLE, 3), key=key))
    return Fault("share-delivery-limit", logs.write(update(0, (0, 1, ACKNOWLEDGED, 4), key=key)), "limit is 3")


def within_a_limit_that_was_lowered(logs: ShareLogs) -> Fault:
    key = logs.topic("lowered")
    logs.limit("lowered", "8")
    logs.write(snapshot(key=key))
    logs.limit("lowered", "3")
    logs.write(update(0, (0, 4, AVAILABLE, 8), key=key))
    return Fault(None)


def within_the_limit_before_a_setting(logs: ShareLogs) -> Fault:
    key = logs.topic("lateset")
    logs.write(snapshot(key=key))
    logs.limit("lateset", "3")
    logs.write(update(0, (0, 4, ARCHIVED, 10), key=key))
    return Fault(None)


def within_the_limit_after_a_setting(logs: ShareLogs) -> Fault:
    key = logs.topic("unset")
    logs.limit("unset", "3")
    logs.write(snapshot(key=key))
    logs.limit("unset", None)
    logs.write(update(0, (0, 4, ARCHIVED, 10), key=key))
    return Fault(None)


def beyond_all_limits(logs: ShareLogs) -> Fault:
    key = logs.topic("default")
    logs.write(snapshot(key=key))
    return Fault("share-delivery-limit", logs.write(update(0, (0, 4, ARCHIVED, 11), key=key)), "the limit is 10")


def never_delivered(logs: ShareLogs) -> Fault:
    key = logs.topic("never")
    logs.write(snapshot(key=key))
    return Fault("share-unread", logs.write(update(0, (7, 8, ARCHIVED, 0), key=key)), "records 7 to 8 are archived")


def passed(logs: ShareLogs) -> Fault:
    key = logs.topic("passed")
    logs.data("passed-0", 10)
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), (5, 6, AVAILABLE, 1), key=key))
    place = logs.write(update(7, key=key))
    logs.write(update(8, (7, 7, ACKNOWLEDGED, 1), key=key))
    return Fault("share-unread", place, "passed records 5 to 6", before)


def passed_what_is_deleted(logs: ShareLogs) -> Fault:
    key = logs.topic("deleted")
    logs.skip("deleted-0", 10)
    logs.data("deleted-0", 10)
    logs.write(snapshot(key=key))
    logs.write(update(10, key=key))
    return Fault(None)


def passed_what_is_no_record(logs: ShareLogs) -> Fault:
    """A marker, and an aborted transaction."""
    key = logs.topic("aborted")
    logs.transaction("aborted", 21, 0, "aborted-0", kind=ABORT)
    logs.transaction("aborted", 21, 0, "aborted-0", kind=COMMIT, sequence=2)
    logs.write(snapshot(key=key))
    logs.write(update(0, (3, 4, ACKNOWLEDGED, 1), key=key))
    logs.write(update(6, key=key))
    return Fault(None)


def passed_committed(logs: ShareLogs) -> Fault:
    key = logs.topic("committed")
    logs.transaction("committed", 22, 0, "committed-0", kind=COMMIT)
    logs.write(snapshot(key=key))
    return Fault("share-unread", logs.write(update(2, key=key)), "passed records 0 to 1")


CASES: list[Callable[[ShareLogs], Fault]] = [
    again, beyond_its_own_limit, within_a_limit_that_was_lowered, within_the_limit_before_a_setting,
    within_the_limit_after_a_setting, beyond_all_limits, never_delivered, passed, passed_what_is_deleted,
    passed_what_is_no_record, passed_committed,
]  # fmt: skip  # several to a line


def found_in(made: Any) -> list[tuple[Any, ...]]:
    return sorted(
        (row["kind"], row["log"], row["offset"], row["group"], row["proof_offset"]) for row in made.findings.collect()
    )


def test_every_fault_is_found_at_its_place_and_nothing_else(spark, tmp_path):
    logs = ShareLogs(tmp_path / "data")
    logs.directory.mkdir()
    promised = {case.__name__: case(logs) for case in CASES}
    (logs.directory / ".kafka_cleanshutdown").touch()
    made = audit_of(spark, str(logs.directory))
    found = {row["offset"]: row for row in made.findings.collect() if row["log"] == STATE}
    assert {offset: row["kind"] for offset, row in found.items()} == {
        fault.offset: fault.kind for fault in promised.values() if fault.kind
    }
    assert made.findings.count() == len(found)
    for fault in promised.values():
        if fault.kind:
            assert fault.says in found[fault.offset]["detail"]
            assert fault.proof is None or found[fault.offset]["proof_offset"] == fault.proof
            assert found[fault.offset]["segment"] == 0
    assert made.doubts.collect() == []


def test_where_records_may_have_been_deleted_nothing_is_said(spark, tmp_path):
    """The broker was not stopped; and the directory is that of another topic of the name."""
    for clean, other_id in ((False, None), (True, b"x" * 16)):
        logs = ShareLogs(tmp_path / f"data{clean}")
        logs.directory.mkdir()
        key = logs.topic("passed", other_id)
        logs.data("passed-0", 10)
        logs.write(snapshot(key=key))
        place = logs.write(update(7, key=key))
        if clean:
            (logs.directory / ".kafka_cleanshutdown").touch()
        made = audit_of(spark, str(logs.directory))
        assert made.findings.collect() == []
        assert [tuple(row) for row in made.doubts.collect()] == [("share-unread", STATE, 1, place)]


def test_a_limit_can_be_given(spark, tmp_path):
    logs = ShareLogs(tmp_path)
    logs.write(snapshot())
    place = logs.write(update(0, (0, 4, ARCHIVED, 6)))
    assert found_in(audit_of(spark, str(tmp_path))) == []
    assert found_in(audit_of(spark, str(tmp_path), 5)) == [("share-delivery-limit", STATE, place, "g", None)]


# -- Apache Kafka's own


def golden(folder: Path) -> Path:
    """A copy, as of a broker that was stopped."""
    shutil.copytree(GOLDEN, folder)
    (folder / ".kafka_cleanshutdown").touch()
    return folder


def test_nothing_is_found_in_the_logs_of_apache_kafka(spark, tmp_path):
    made = audit_of(spark, str(golden(tmp_path / "logs")))
    assert found_in(made) == []
    assert made.doubts.where("kind like 'share%'").collect() == []  # the coordinator's log of transactions is not kept


def plant(path: Path, at: int, record: Any) -> None:
    """Write a record into a log instead of the batch at an offset, or behind its end."""
    data, position, parts = path.read_bytes(), 0, list[bytes]()
    while position < len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        parts.append(data[position : position + size])
        position += size
    mine = at.to_bytes(8, "big") + build_batch([record], timestamp_ms=2_000_000_000_000)[8:]
    bases = [int.from_bytes(part[:8], "big") for part in parts]
    if at in bases:
        parts[bases.index(at)] = mine
    else:
        assert at > bases[-1]
        parts.append(mine)
    path.write_bytes(b"".join(parts))


def test_what_is_planted_into_the_logs_of_apache_kafka_is_found_and_nothing_else(spark, tmp_path):
    """In the end of group `work`, whose limit is 3: snapshot 2, 25-29 acknowledged, 30-34 released, acknowledged."""
    folder = golden(tmp_path / "logs")
    log = "__share_group_state-1"
    path = folder / log / f"{0:020d}.log"
    text = (folder / "shared-0" / "partition.metadata").read_text()
    key = Key("work", uuid_from_text(text.rpartition(":")[2].strip()), 0)
    plant(path, 28, update(25, (25, 26, ACKNOWLEDGED, 1), (28, 29, ACKNOWLEDGED, 1), epoch=2, key=key))  # not 27
    plant(path, 31, update(30, (31, 31, AVAILABLE, 3), epoch=2, key=key))
    plant(path, 32, update(30, (32, 32, ACKNOWLEDGED, 3), (33, 33, ARCHIVED, 4), epoch=2, key=key))
    plant(path, 33, update(30, (36, 36, ARCHIVED, 0), epoch=2, key=key))
    assert found_in(audit_of(spark, str(folder))) == [
        ("share-delivered-again", log, 31, "work", 30),
        ("share-delivered-again", log, 32, "work", 30),
        ("share-delivered-again", log, 32, "work", 30),
        ("share-delivery-limit", log, 32, "work", None),
        ("share-unread", log, 29, "work", 28),
        ("share-unread", log, 33, "work", None),
    ]
