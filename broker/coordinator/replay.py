"""Replays a shard's log batch by batch, and finds what a crash left of a commit over several batches.

A part of a commit is not applied. It must not win over the values before it either, for whoever else reads the log by
key: `repairs` says what has to be committed again at the log's end. A key that any later record has set needs none, so
a repair that was itself cut short is found and done again, and one that is complete is never repeated.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fastcrc.crc32 import iscsi as crc32c

from broker.coordinator.offsets.replay_run import record_of, replay_commit
from broker.coordinator.result import Record
from protocol.record import Record as LogRecord
from protocol.record_batch import (
    ABORT,
    ATTRIBUTES_POSITION,
    COMMIT,
    BatchHeader,
    control_type,
    iter_records,
)
from storage.errors import StorageError
from storage.spans import Runs, span_of

if TYPE_CHECKING:
    from broker.coordinator.offsets.table import OffsetTable

LAST_OFFSET_TYPE = 1  # of a record's key
RECORD_COST = 8  # a record that is looked at alone takes as long as so many of a commit that is read in columns


class Replay:
    """One pass over a log."""

    __slots__ = ("_cut_short", "_runs", "kept", "machine", "table")

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.table: OffsetTable | None = getattr(machine, "offsets", None)
        self.kept: dict[bytes, int] = {}  # key of what is not an offset -> offset of its last record
        self._runs: Runs[LogRecord] = Runs()
        self._cut_short: dict[bytes, None] = {}  # keys of parts that nothing has set since

    def image(self, payload: memoryview) -> Iterator[None]:
        """Begin with an image. Errors: ValueError: it cannot be read; this Replay is of no use then."""
        from broker.coordinator.offsets.snapshots import Reader  # 2 ms: only large shards have an image

        reader = Reader(payload)
        assert self.table is not None
        try:
            for offset, key, value in reader.records():
                self.kept[key] = offset
                self.machine.replay(key, value, offset, -1)
            yield from reader.offsets(self.table)
        except (AssertionError, IndexError, KeyError, struct.error) as error:
            raise ValueError(f"cannot read the image: {error}") from error

    def batch(self, header: BatchHeader, batch: memoryview) -> int:
        """Apply one batch. Answers what it cost, in records of a commit.

        Errors:  StorageError: its bytes are not what was written.
        """
        if crc32c(batch[ATTRIBUTES_POSITION:]) != header.crc:
            raise StorageError(f"the batch at offset {header.base_offset} has a wrong CRC")
        if (
            self.table is not None
            and not (self._runs.is_open or self._cut_short)
            and replay_commit(self.table, header, batch)
        ):
            return header.record_count + RECORD_COST
        machine, runs = self.machine, self._runs
        for record in iter_records(batch):
            if header.is_control:
                kind = control_type(record.key) if record.key is not None else -1
                if kind in (ABORT, COMMIT):
                    machine.replay_marker(header.producer_id, header.producer_epoch, commit=kind == COMMIT)
                continue
            span = span_of(record.headers) if record.headers and record.key and header.producer_id < 0 else None
            if runs.is_open and not (span and runs.goes_on(record.headers)):
                self._close()
            if span is not None:
                runs.add(span, record)
            else:
                self._apply(record, header.producer_id)
        return header.record_count * RECORD_COST

    def _apply(self, record: LogRecord, producer_id: int) -> None:
        if self._cut_short and producer_id < 0 and record.key is not None:
            self._cut_short.pop(record.key, None)
        key = record.key
        if producer_id >= 0 and record.headers and key is not None:
            self.machine.replay_sender(producer_id, key, record.headers)
        if key is not None and key[1] > LAST_OFFSET_TYPE:
            keep(self.kept, key, record.value, record.offset)
        self.machine.replay(key, record.value, record.offset, producer_id)

    def _close(self) -> None:
        records, whole = self._runs.close()
        for record in records:
            if whole:
                self._apply(record, -1)
            elif record.key is not None:
                self._cut_short[record.key] = None

    def repairs(self) -> list[Record]:
        """The log has ended: what is to be committed again."""
        self._close()
        if self.table is None:
            return []
        table = self.table
        found = (record_of(table, key) for key in self._cut_short)
        return [record for record in found if record is not None]


def keep(kept: dict[bytes, int], key: bytes, value: bytes | None, offset: int) -> None:
    """Note where the record of a key lies, as long as there is one."""
    if value is None:
        kept.pop(key, None)
    else:
        kept[key] = offset
