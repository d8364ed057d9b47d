"""What is written to a shard's log besides commits and transactions: records of any kind, markers, and
what has changed in a share partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.base.marker import EndMarker
from broker.coordinator.offsets.spans import are_offsets, span_batches
from broker.coordinator.replay import LAST_OFFSET_TYPE, keep
from broker.turn.write import Batch, Span, Write
from protocol.record_batch import build_batch

if TYPE_CHECKING:
    from broker.coordinator.share.combine import StateBatch
    from broker.coordinator.share.state import Key
    from broker.turn.decision import Record
    from storage.log.log import Log


class Records(Write):
    """Records for a shard's log, replayed one by one.

    Shape: one batch; records of offsets that are too many for one take several, valid only together (spans.py).
    """

    __slots__ = ("records",)

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records

    def build(self, log: Log, base_offset: int, now_ms: int) -> Batch | Span:
        """See turn/write.py."""
        records, most_bytes = self.records, log.config.max_message_bytes
        batch = build_batch(records, base_offset=base_offset, leader_epoch=log.leader_epoch, timestamp_ms=now_ms)
        if len(batch) > most_bytes and are_offsets(records):
            return span_batches(
                records,
                base_offset=base_offset,
                leader_epoch=log.leader_epoch,
                timestamp_ms=now_ms,
                max_bytes=most_bytes,
            )
        return (batch,), base_offset + len(records) - 1, now_ms, len(batch)

    def replay(self, shard: Any, base_offset: int, _now_ms: int) -> None:
        """See turn/write.py."""
        machine: Any = shard.machine
        for offset, record in enumerate(self.records, base_offset):
            key = record[0]
            if key is not None and key[1] > LAST_OFFSET_TYPE:
                keep(shard.kept, key, record[1], offset)
            machine.replay(key, record[1], offset)
        machine.after_batch()


class Marker(EndMarker):
    """The marker that ends a producer's transaction in a shard of groups."""

    __slots__ = ()

    def replay(self, shard: Any, _base_offset: int, _now_ms: int) -> None:
        """See turn/write.py."""
        shard.machine.replay_marker(self.producer_id, self.producer_epoch, commit=self.commit)


class ShareUpdate(Write):
    """One update record of a share partition whose snapshot is in the log: its fields are replayed as they are known.

    Records would decode what was encoded a moment before.
    """

    __slots__ = ("_fields", "_record")

    def __init__(
        self, record: Record, name: Key, leader_epoch: int, start_offset: int, count: int, batches: Sequence[StateBatch]
    ) -> None:
        self._record = record
        self._fields = (name, leader_epoch, start_offset, count, batches)

    def build(self, log: Log, base_offset: int, now_ms: int) -> Batch | Span:
        """See turn/write.py."""
        return Records((self._record,)).build(log, base_offset, now_ms)

    def replay(self, shard: Any, _base_offset: int, _now_ms: int) -> None:
        """See turn/write.py."""
        shard.machine.replay_update(*self._fields)
