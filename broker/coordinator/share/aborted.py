"""Aborted transactions, for share groups that read committed records only: their records are archived unread.

Source: Kafka's SharePartition.maybeFilterAbortedTransactionalAcquiredRecords.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from broker.coordinator.share.acquire import Acquired, ReadBatch
from broker.coordinator.share.in_flight import ACQUIRED
from broker.coordinator.share.share_partition import SharePartition


def aborted_batches(batches: Sequence[ReadBatch], aborted: Sequence[tuple[int, int]]) -> list[ReadBatch]:
    """The batches that belong to aborted transactions. `aborted`: (producer id, first offset)."""
    waiting = [(first_offset, producer_id) for producer_id, first_offset in aborted]
    heapq.heapify(waiting)
    open_ids: set[int] = set()
    found = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[0][0] <= batch.last:
            open_ids.add(heapq.heappop(waiting)[1])
        if batch.is_abort:
            open_ids.discard(batch.producer_id)
        elif batch.is_transactional and not batch.is_control and batch.producer_id in open_ids:
            found.append(batch)
    return found


def archive_aborted(
    partition: SharePartition, acquired: Sequence[Acquired], gone: Sequence[ReadBatch]
) -> tuple[list[Acquired], int]:
    """Archive aborted batches among what has just been acquired: what is left of that, and how many records it is."""
    left = list(acquired)
    for batch in gone:
        partition.archive(batch.first, batch.last, ACQUIRED, counts=True)
        left = [part for each in left for part in _without(each, batch)]
    return left, sum(each.last - each.first + 1 for each in left)


def _without(each: Acquired, batch: ReadBatch) -> list[Acquired]:
    if each.last < batch.first or each.first > batch.last:
        return [each]
    parts = []
    if each.first < batch.first:
        parts.append(each._replace(last=batch.first - 1))
    if each.last > batch.last:
        parts.append(each._replace(first=batch.last + 1))
    return parts
