"""The marker that ends a producer's transaction in a log, of data or of offsets: the half of it that is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.turn.write import Batch, Write
from protocol.record_batch import ABORT, COMMIT, CONTROL_BATCH_BYTES, control_batch

if TYPE_CHECKING:
    from storage.log.log import Log


class EndMarker(Write):
    """A Write without its `replay`: the owner of the log knows what a marker changes there."""

    __slots__ = ("commit", "coordinator_epoch", "producer_epoch", "producer_id")

    def __init__(self, producer_id: int, producer_epoch: int, coordinator_epoch: int, *, commit: bool) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.commit = commit

    def build(self, log: Log, base_offset: int, now_ms: int) -> Batch:
        """See turn/write.py."""
        batch = control_batch(
            COMMIT if self.commit else ABORT,
            base_offset=base_offset,
            leader_epoch=log.epochs.latest,
            timestamp_ms=now_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            coordinator_epoch=self.coordinator_epoch,
        )
        return (batch,), base_offset, now_ms, CONTROL_BATCH_BYTES
