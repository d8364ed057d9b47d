"""The aborted transactions of one partition, in the order of their markers: 32 bytes each, in four columns.

A reader of committed records is told those that overlap the records it gets, and skips their records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import ClassVar

from storage.segments.transaction_index import AbortedTransaction, Markers


class AbortedTransactions:
    """Columns, by rising last_offset."""

    __slots__ = ("_first_offsets", "_last_offsets", "_last_stable_offsets", "_producer_ids")

    VOLATILE: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self._producer_ids = array("q")
        self._first_offsets = array("q")
        self._last_offsets = array("q")
        self._last_stable_offsets = array("q")

    def __len__(self) -> int:
        return len(self._last_offsets)

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return self.between(0, 2**63 - 1)

    @property
    def last_offset(self) -> int:
        """The offset of the last aborting marker, -1: there is none."""
        return self._last_offsets[-1] if self._last_offsets else -1

    def append(self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> None:
        """Add a transaction that began at first_offset and was aborted by the marker at last_offset."""
        self._producer_ids.append(producer_id)
        self._first_offsets.append(first_offset)
        self._last_offsets.append(last_offset)
        self._last_stable_offsets.append(last_stable_offset)

    def overlapping(self, from_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the transactions with records in from_offset .. end_offset - 1.

        Source: Kafka's TransactionIndex.collectAbortedTxns.
        """
        found = []
        firsts, stables, ids = self._first_offsets, self._last_stable_offsets, self._producer_ids
        for at in range(bisect_left(self._last_offsets, from_offset), len(ids)):
            if firsts[at] < end_offset:
                found.append((ids[at], firsts[at]))
            if stables[at] >= end_offset:
                break
        return found

    def between(self, from_offset: int, end_offset: int) -> Iterator[AbortedTransaction]:
        """The transactions whose markers are in from_offset .. end_offset - 1."""
        lasts = self._last_offsets
        for at in range(bisect_left(lasts, from_offset), bisect_left(lasts, end_offset)):
            yield AbortedTransaction(
                self._producer_ids[at], self._first_offsets[at], lasts[at], self._last_stable_offsets[at]
            )

    def drop_before(self, start_offset: int) -> None:
        """The log start offset has moved: drop older transactions."""
        gone = bisect_left(self._last_offsets, start_offset)
        for column in (self._producer_ids, self._first_offsets, self._last_offsets, self._last_stable_offsets):
            del column[:gone]

    def keep(self, from_offset: int, end_offset: int, markers: Markers) -> None:
        """The cleaner has been at from_offset .. end_offset - 1: drop the transactions whose markers it removed."""
        lasts = self._last_offsets
        start, stop = bisect_left(lasts, from_offset), bisect_left(lasts, end_offset)
        stay = [at for at in range(start, stop) if lasts[at] in markers]
        if len(stay) < stop - start:
            for column in (self._producer_ids, self._first_offsets, self._last_offsets, self._last_stable_offsets):
                column[start:stop] = array("q", [column[at] for at in stay])
