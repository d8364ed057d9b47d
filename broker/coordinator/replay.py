"""Replays a shard's log batch by batch, and finds incomplete commits over several batches, left by a crash.

An incomplete commit is not applied. Other readers that take the last record of each key must not see it either, so
`repairs` answers the previous values of its keys, to be committed again at the log's end. A key that a later record
has set needs no repair. So an incomplete repair is found and done again, and a complete one is never repeated.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from fastcrc.crc32 import iscsi as crc32c

from broker.coordinator.offsets.replay_run import record_of, replay_commit
from broker.turn.decision import Record
from protocol.record import Record as LogRecord
from protocol.record_batch import (
    ABORT,
    ATTRIBUTES_POSITION,
    COMMIT,
    BatchHeader,
    control_type,
    iter_records,
)
from storage.files.errors import StorageError
from storage.segments.spans import Runs, span_of

if TYPE_CHECKING:
    from broker.coordinator.offsets.table import OffsetTable

LAST_OFFSET_TYPE: Final = 1  # key types 0 and 1 are committed offsets
RECORD_COST: Final = 8  # a record replayed alone takes as long as this many that are replayed in columns


class Replay:
    """One pass over a log."""

    __slots__ = ("_cut_short", "_runs", "kept", "machine", "table")

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.table: OffsetTable | None = getattr(machine, "offsets", None)
        self.kept: dict[bytes, int] = {}  # key that is not of an offset -> offset of its last record
        self._runs: Runs[LogRecord] = Runs()
        self._cut_short: dict[bytes, None] = {}  # keys of incomplete commits that no later record has set

    def image(self, payload: memoryview) -> Iterator[None]:
        """Begin with an image. Errors: ValueError: it cannot be read; use a new Replay then."""
        from broker.coordinator.offsets.snapshots import Reader  # 2 ms: only large shards have an image

        reader = Reader(payload)
        assert self.table is not None
        try:
            for offset, key, value in reader.records():
                self.kept[key] = offset
                self.machine.replay(key, value, offset, -1)
            yield from reader.offsets(self.table)
            self.machine.replay_pending(reader.pending, reader.senders)
        except (AssertionError, IndexError, KeyError, struct.error) as error:
            raise ValueError(f"cannot read the image: {error}") from error

    def batch(self, header: BatchHeader, batch: memoryview) -> int:
        """Apply one batch. Answers its cost, in records replayed in columns.

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
        """The log has ended: the records that restore what incomplete commits must not change."""
        self._close()
        if self.table is None:
            return []
        table = self.table
        found = (record_of(table, key) for key in self._cut_short)
        return [record for record in found if record is not None]


def keep(kept: dict[bytes, int], key: bytes, value: bytes | None, offset: int) -> None:
    """Note the offset of a key's last record; a tombstone removes it."""
    if value is None:
        kept.pop(key, None)
    else:
        kept[key] = offset
