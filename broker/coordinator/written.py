"""What is written to a shard's log besides commits and transactions: records of any kind, and markers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.base.marker import EndMarker
from broker.coordinator.offsets.spans import are_offsets, span_batches
from broker.coordinator.replay import LAST_OFFSET_TYPE, keep
from protocol.record_batch import build_batch

if TYPE_CHECKING:
    from broker.turn.decision import Batch, Record, Span
    from storage.log.log import Log


class Records:
    """Records for a shard's log, replayed one by one.

    Shape: one batch; records of offsets that are too many for one take several, valid only together (spans.py).
    """

    __slots__ = ("records",)

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records

    def build(self, log: Log, base_offset: int, now_ms: int) -> Batch | Span:
        """See turn/decision.py."""
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
        """See turn/decision.py."""
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
        """See turn/decision.py."""
        shard.machine.replay_marker(self.producer_id, self.producer_epoch, commit=self.commit)
