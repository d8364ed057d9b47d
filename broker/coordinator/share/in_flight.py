"""Records in flight: batches of offsets that have been acquired at least once and lie at or above the start offset.

A batch has one delivery for all its offsets while they have all been treated alike, else one for each offset.

    AVAILABLE     may be acquired: released, or its lock has expired
    ACQUIRED      delivered to a member, which has to acknowledge it before its lock expires
    ACKNOWLEDGED  accepted: done
    ARCHIVING     rejected or delivered too often, and on its way to the group's dead-letter queue; then it is archived
    ARCHIVED      rejected, a gap, part of an aborted transaction, or delivered too often: done
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Final

AVAILABLE: Final = 0  # Kafka's numbers, as they are stored
ACQUIRED: Final = 1
ACKNOWLEDGED: Final = 2
ARCHIVING: Final = 3
ARCHIVED: Final = 4
RELEASED: Final = -1  # given back by the request that is being served: available when that is done; never stored
TERMINAL: Final = (ACKNOWLEDGED, ARCHIVED)
NOBODY: Final = ""


class Lock:
    """An acquisition lock: when it expires, its records become available again. Units: ms of the steady clock."""

    __slots__ = ("deadline_ms", "first", "held", "last")

    def __init__(self, deadline_ms: int, first: int, last: int) -> None:
        self.deadline_ms = deadline_ms
        self.first = first
        self.last = last
        self.held = 0  # by how many deliveries; 0: it is over


class Delivery:
    """The state of a batch or of one offset, how often it was delivered, and who has it."""

    __slots__ = ("count", "lock", "member", "state")

    def __init__(self, state: int, count: int, member: str = NOBODY, lock: Lock | None = None) -> None:
        self.state = state
        self.count = count
        self.member = member
        self.lock = lock
        if lock is not None:
            lock.held += 1

    def take(self, member: str, lock: Lock) -> None:
        """The record is delivered once more."""
        self.state, self.member = ACQUIRED, member
        self.count += 1
        self.renew(lock)

    def renew(self, lock: Lock | None) -> None:
        """Another lock takes the place of the present one."""
        if self.lock is not None:
            self.lock.held -= 1
        self.lock = lock
        if lock is not None:
            lock.held += 1

    def end(self, state: int) -> None:
        """The delivery is over: acknowledged, released, or archived."""
        self.state, self.member = state, NOBODY
        self.renew(None)


class Batch:
    """Offsets first..last, with one delivery for all (`whole`) or one for each (`offsets`)."""

    __slots__ = ("first", "last", "offsets", "whole")

    def __init__(self, first: int, last: int, whole: Delivery) -> None:
        self.first = first
        self.last = last
        self.whole: Delivery | None = whole
        self.offsets: dict[int, Delivery] = {}

    def __len__(self) -> int:
        return self.last - self.first + 1

    def split(self) -> dict[int, Delivery]:
        """One delivery for each offset from now on."""
        whole = self.whole
        if whole is not None:
            self.offsets = {
                offset: Delivery(whole.state, whole.count, whole.member, whole.lock)
                for offset in range(self.first, self.last + 1)
            }
            whole.renew(None)
            self.whole = None
        return self.offsets

    def deliveries(self, first: int, last: int) -> Iterator[tuple[int, int, Delivery]]:
        """(first, last, delivery) of each part within the range; a batch that is not split is one part."""
        if self.whole is not None:
            yield self.first, self.last, self.whole
            return
        for offset in range(max(first, self.first), min(last, self.last) + 1):
            yield offset, offset, self.offsets[offset]


class Batches:
    """The batches in flight, by their first offset, in order."""

    __slots__ = ("_by_first", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._by_first: dict[int, Batch] = {}

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[Batch]:
        return iter([self._by_first[first] for first in self._firsts])

    def add(self, batch: Batch) -> None:
        """A new batch; it takes the place of one with the same first offset."""
        if batch.first not in self._by_first:
            insort(self._firsts, batch.first)
        self._by_first[batch.first] = batch

    def get(self, first: int) -> Batch | None:
        """The batch that begins at an offset."""
        return self._by_first.get(first)

    def first(self) -> Batch:
        """The batch with the lowest offsets. Errors: IndexError: there is none."""
        return self._by_first[self._firsts[0]]

    def last(self) -> Batch:
        """The batch with the highest offsets. Errors: IndexError: there is none."""
        return self._by_first[self._firsts[-1]]

    def floor(self, offset: int) -> Batch | None:
        """The last batch that begins at or before the offset."""
        at = bisect_right(self._firsts, offset)
        return self._by_first[self._firsts[at - 1]] if at else None

    def higher(self, offset: int) -> Batch | None:
        """The first batch that begins behind the offset."""
        at = bisect_right(self._firsts, offset)
        return self._by_first[self._firsts[at]] if at < len(self._firsts) else None

    def between(self, first: int, last: int) -> list[Batch]:
        """The batches that begin within first..last."""
        firsts = self._firsts
        return [self._by_first[f] for f in firsts[bisect_left(firsts, first) : bisect_right(firsts, last)]]

    def drop_before(self, first: int) -> None:
        """Remove the batches that begin before an offset."""
        at = bisect_left(self._firsts, first)
        for each in self._firsts[:at]:
            del self._by_first[each]
        del self._firsts[:at]

    def clear(self) -> None:
        """Remove all batches."""
        self._firsts.clear()
        self._by_first.clear()
