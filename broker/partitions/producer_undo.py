"""What batches that are not durable yet have changed in the table of producers, to undo it after a failed write.

Loading the state again from snapshot and log is not enough: retention may have removed the batches that a row comes
from. A list, and not an object with methods: every batch of an idempotent producer appends to it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TypeAlias

from broker.partitions.producer_table import ProducerTable

# base offset; producer id; its row before, None: it was not known; epoch and base sequence, -1: of a marker
Change: TypeAlias = tuple[int, int, tuple[int, ...] | None, int, int]


def forget_below(undo: list[Change], durable_offset: int) -> None:
    """Everything below this offset is durable: it will not be undone."""
    if undo[-1][0] < durable_offset:
        undo.clear()
    else:
        del undo[: bisect_left(undo, (durable_offset,))]


def revert(table: ProducerTable, undo: list[Change], end_offset: int) -> Iterator[tuple[int, int, int]]:
    """Give the table the rows it had when the log ended here.

    Yields id, epoch and base sequence of the first batch of each producer that is unknown again.
    """
    for base_offset, producer_id, row, producer_epoch, base_sequence in reversed(undo):
        if base_offset < end_offset:
            return
        if row is not None:
            table.put(producer_id, *row)
        else:
            table.remove(producer_id)
            if base_sequence >= 0:
                yield producer_id, producer_epoch, base_sequence
