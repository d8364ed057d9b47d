"""What `__consumer_offsets` says: who set which offset when, and what is committed in the end.

Read from a broker by Fetch, or from the files of a data directory that no broker uses; nothing is changed there. Like
momus.client.kafka_client it may only be imported in our own process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from broker.coordinator.offsets.pending import PendingOffsets
from broker.coordinator.offsets.provenance import CLIENT, GENERATION, INSTANCE, MEMBER
from broker.coordinator.offsets.replay_run import offset_key
from broker.coordinator.offsets.table import OffsetTable
from broker.coordinator.records import committed_value
from broker.coordinator.replay import LAST_OFFSET_TYPE, Replay
from protocol.record_batch import ABORT, COMMIT, BatchHeader, control_type, iter_records

if TYPE_CHECKING:
    from momus.client.kafka_client import Client

Row = dict[str, Any]
Batches = Iterable[tuple[BatchHeader, memoryview]]
OFFSETS_TOPIC = "__consumer_offsets"


def logs_of_directory(data_dir: str) -> Iterator[tuple[int, Batches]]:
    """(partition, batches) of every partition that a data directory holds."""
    from storage.files.env import system_env
    from storage.log.check import read_only_batches

    files = system_env().files
    names = [name.rpartition("-") for name in os.listdir(data_dir)]
    for index in sorted(int(index) for topic, _, index in names if topic == OFFSETS_TOPIC and index.isdigit()):
        yield index, read_only_batches(files, os.path.join(data_dir, f"{OFFSETS_TOPIC}-{index}"))


def logs_of_broker(client: Client) -> Iterator[tuple[int, Batches]]:
    """(partition, batches) of every partition that has something in it."""
    for index, leader in sorted(client.leaders(OFFSETS_TOPIC).items()):
        yield index, client.batches(OFFSETS_TOPIC, index, leader)


class Offsets:
    """A state machine that knows of offsets alone."""

    def __init__(self) -> None:
        self.offsets = OffsetTable()
        self.pending = PendingOffsets(self.offsets)

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int = -1) -> None:
        """Apply one record."""
        if key is None or int.from_bytes(key[:2], "big") > LAST_OFFSET_TYPE:
            return
        place = offset_key(key)
        if value is not None and producer_id >= 0:
            self.pending.replay(producer_id, *place, committed_value(value), offset)
        else:
            self.offsets.replay(*place, None if value is None else committed_value(value))

    def replay_sender(self, producer_id: int, key: bytes, headers: object) -> None:
        """Who sends a transaction's offsets is of no interest here."""

    def replay_marker(self, producer_id: int, producer_epoch: int, *, commit: bool) -> None:
        """A transaction has ended."""
        self.pending.replay_marker(producer_id, commit=commit)


def committed(batches: Batches) -> list[Row]:
    """What a log says in the end: a row for every committed offset."""
    machine = Offsets()
    replay = Replay(machine)
    for header, batch in batches:
        replay.batch(header, batch)
    replay.repairs()
    return [
        {
            "group": group,
            "topic": topic,
            "partition": partition,
            "offset": found.offset,
            "leader_epoch": found.leader_epoch,
            "metadata": found.metadata,
            "time_ms": found.commit_timestamp_ms,
        }
        for (group, topic, partition), found in machine.offsets.fingerprint().items()
    ]


def history(partition: int, batches: Batches) -> list[Row]:
    """Every offset record that a log still holds, in order; those of transactions with what became of these."""
    rows: list[Row] = []
    open_rows: dict[int, list[Row]] = {}  # by producer id, of transactions whose marker has not come yet
    for header, batch in batches:
        if header.is_control:
            outcome = _outcome(batch)
            for row in open_rows.pop(header.producer_id, ()) if outcome else ():
                row["outcome"] = outcome
            continue
        who: Row = {}
        for n, record in enumerate(iter_records(batch)):
            if n == 0:
                who = _provenance(dict(record.headers))
            if record.key is None or int.from_bytes(record.key[:2], "big") > LAST_OFFSET_TYPE:
                continue
            group, topic, index = offset_key(record.key)
            found = None if record.value is None else committed_value(record.value)
            row = {
                "time_ms": record.timestamp if found is None else found.commit_timestamp_ms,
                "group": group,
                "topic": topic,
                "partition": index,
                "offset": None if found is None else found.offset,
                "metadata": None if found is None else found.metadata or None,
                **who,
                "producer_id": header.producer_id if header.producer_id >= 0 else None,
                "outcome": "open" if header.is_transactional else None,
                "log": f"{partition}:{record.offset}",
            }
            rows.append(row)
            if header.is_transactional:
                open_rows.setdefault(header.producer_id, []).append(row)
    return rows


def _outcome(batch: memoryview) -> str | None:
    """How a marker ends its transaction; None: it is another kind of control batch, or the cleaner has emptied it."""
    record = next(iter_records(batch), None)
    if record is None or record.key is None:
        return None
    return {COMMIT: "committed", ABORT: "aborted"}.get(control_type(record.key))


def _provenance(headers: dict[str, bytes | None]) -> Row:
    generation = headers.get(GENERATION)
    return {
        "member": _text(headers.get(MEMBER)),
        "instance": _text(headers.get(INSTANCE)),
        "generation": int.from_bytes(generation, "big") if generation is not None else None,
        "client": _text(headers.get(CLIENT)),
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")
