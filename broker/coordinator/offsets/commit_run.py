"""One way to commit: append the records of a commit and replay them in columns, in shortcuts and handlers alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.coordinator.offsets.commit_batch import CommitBatch
    from broker.coordinator.runtime import Shard


def commit_run(
    shard: Shard, batch: CommitBatch, offsets: Sequence[int], leader_epochs: Sequence[int], now_ms: int
) -> None:
    """Commit offsets on the partitions of `batch`, one offset and leader epoch for each.

    Shape:   one record batch.
    Units:   now_ms is Unix milliseconds: the commit time.
    Errors:  StorageError: nothing has changed.
    """
    log = shard.log
    base = log.end_offset
    data = batch.build(base, log.leader_epoch, now_ms, offsets, leader_epochs)
    log.append((data,), base_offset=base, last_offset=base + batch.count - 1, max_timestamp_ms=now_ms, size=len(data))
    shard.machine.offsets.replay_run(
        batch.group_id, batch.topic, batch.topic_id, batch.partitions, offsets, leader_epochs, now_ms, dense=batch.dense
    )


def commit_pending_run(
    shard: Shard,
    batch: CommitBatch,
    offsets: Sequence[int],
    leader_epochs: Sequence[int],
    now_ms: int,
    producer: tuple[int, int],
) -> None:
    """The same as a part of the transaction of `producer` (id and epoch): pending until its marker.

    Errors:  StorageError: nothing has changed.
    """
    log = shard.log
    base = log.end_offset
    data = batch.build(base, log.leader_epoch, now_ms, offsets, leader_epochs, producer)
    log.append((data,), base_offset=base, last_offset=base + batch.count - 1, max_timestamp_ms=now_ms, size=len(data))
    shard.machine.pending.replay_run(
        producer[0], batch.group_id, batch.topic, batch.partitions, offsets, leader_epochs, now_ms, base
    )
