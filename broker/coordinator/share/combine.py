"""Combines batches of states: what is below the start offset goes, the newer of two overlapping ones counts.

Newer means: the higher delivery count, or at the same count the state further on: available, acknowledged, archiving,
archived.
A record's delivery count never goes down, and within one delivery its state only moves that way, so this order is the
order of events, whichever way the batches arrive.

Source: Kafka's PersisterStateBatchCombiner.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple


class StateBatch(NamedTuple):
    """Records first_offset..last_offset have this state, and were delivered that often."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def combine(batches: Sequence[StateBatch], start_offset: int) -> list[StateBatch]:
    """The batches without overlap, in order, merged where neighbours are alike. A start offset of -1 cuts nothing."""
    if start_offset != -1:
        batches = [
            batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
            for batch in batches
            if batch.last_offset >= start_offset
        ]
    if len(batches) < 2:
        return list(batches)
    combined: list[StateBatch] = []
    for first, last, count, state in _pieces(sorted(batches)):
        if combined:
            before = combined[-1]
            if before.last_offset + 1 == first and (before.delivery_state, before.delivery_count) == (state, count):
                combined[-1] = before._replace(last_offset=last)
                continue
        combined.append(StateBatch(first, last, state, count))
    return combined


def _pieces(batches: Sequence[StateBatch]) -> list[tuple[int, int, int, int]]:
    """(first, last, delivery count, state) of each stretch of offsets in which one batch counts, in order."""
    found: list[tuple[int, int, int, int]] = []
    newest: list[tuple[int, int, int]] = []  # heap of (-count, -state, last) of the batches that cover `at`
    at, index = batches[0].first_offset, 0
    while index < len(batches) or newest:
        if not newest:
            at = batches[index].first_offset
        while index < len(batches) and batches[index].first_offset <= at:
            batch = batches[index]
            heapq.heappush(newest, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
            index += 1
        while newest and newest[0][2] < at:
            heapq.heappop(newest)
        if not newest:
            continue
        count, state, last = newest[0]
        if index < len(batches):
            last = min(last, batches[index].first_offset - 1)
        found.append((at, last, -count, -state))
        at = last + 1
    return found
