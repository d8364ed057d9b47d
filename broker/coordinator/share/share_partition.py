"""SharePartition: one partition as one share group reads it. Pure: no log, no clock, no asyncio.

    start_offset    the first record that may still be delivered; below it all is done
    end_offset      the last record that was ever acquired; with nothing in flight, the next one to acquire
    batches         the records between them that have been acquired (in_flight.py)
    complete_count  how many of these are acknowledged or archived

What it decides to store are StateBatches; the caller writes them. What is acquired is not stored, so a start, another
leader or a failed write begins again with `from_state`: records that were acquired then can be acquired at once.

gap: after `from_state` there may be stretches without a stored state between the batches: they were acquired and never
acknowledged. They are read again, before the partition goes on at its end. Later gaps are offsets without records.

Source: KIP-932; Kafka's SharePartition.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from broker.coordinator.share.combine import StateBatch
from broker.coordinator.share.dead_letters.letter import Letter
from broker.coordinator.share.in_flight import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    TERMINAL,
    Batch,
    Batches,
    Delivery,
    Lock,
)
from broker.coordinator.share.limits import Limits
from broker.coordinator.share.state import ShareState

SPARE_LOCKS: Final = 64  # that are over, and may stay on the heap beside as many as there are locks


def _has_lock(lock: Lock, delivery: Delivery) -> bool:
    return delivery.lock is lock


def _is_of(member: str, delivery: Delivery) -> bool:
    return delivery.member == member


class Gap:
    """What is left to read of the gaps that the stored state had. `end`: the end offset that it had."""

    __slots__ = ("end", "start")

    def __init__(self, end: int, start: int) -> None:
        self.end = end
        self.start = start


class SharePartition:
    """The live state. Its records are acquired by acquire.py, acknowledged by acknowledge.py."""

    __slots__ = (
        "_heap",
        "_locks_made",
        "batches",
        "complete_count",
        "end_offset",
        "find_next",
        "gap",
        "leader_epoch",
        "start_offset",
    )

    def __init__(self, start_offset: int, leader_epoch: int = 0) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.leader_epoch = leader_epoch
        self.batches = Batches()
        self.complete_count = 0
        self.find_next = False  # whether records in flight may be available
        self.gap: Gap | None = None
        self._heap: list[tuple[int, int, Lock]] = []  # deadline, number, lock
        self._locks_made = 0

    @classmethod
    def from_state(cls, state: ShareState, start_offset: int, leader_epoch: int) -> SharePartition:
        """What is stored. `start_offset`: the stored one, or where the group begins to read."""
        made = cls(start_offset, leader_epoch)
        gap_start, before = -1, start_offset - 1
        for batch in state.batches:
            if gap_start == -1 and batch.first_offset > before + 1:
                gap_start = before + 1
            before = batch.last_offset
            delivery = Delivery(batch.delivery_state, batch.delivery_count)
            made.batches.add(Batch(batch.first_offset, batch.last_offset, delivery))
            if delivery.state in TERMINAL:
                made.complete_count += batch.last_offset - batch.first_offset + 1
        if made.batches:
            made.find_next = True
            made.end_offset = before
            if gap_start != -1:
                made.gap = Gap(before, gap_start)
            made.move_start()
        return made

    # -- queries

    @property
    def has_gap(self) -> bool:
        """Whether gaps of the stored state are still to be read."""
        return self.gap is not None and self.gap.end == self.end_offset

    @property
    def in_flight(self) -> int:
        """Offsets from start to end; acknowledged ones in between count, as in Kafka."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def next_fetch_offset(self) -> int:
        """Where to read next: the first available record, else behind the last one."""
        batches = self.batches
        if not batches or self.start_offset > batches.last().last:
            self.find_next = False
            return self.end_offset
        if not self.find_next:
            return self.end_offset + 1
        gap = self.gap.start if self.gap is not None and self.has_gap else None
        for batch in batches:
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for first, _, delivery in batch.deliveries(batch.first, batch.last):
                if delivery.state == AVAILABLE:
                    return first
        self.find_next = False
        return self.end_offset + 1

    @property
    def is_plain(self) -> bool:
        """Whether nothing in flight is available and no gap is to be read: the next records lie behind the end."""
        if self.find_next or self.gap is not None:
            return False
        return not self.batches or self.start_offset <= self.end_offset == self.batches.last().last

    def can_acquire(self, limits: Limits) -> bool:
        """Whether a read could bring something."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.in_flight < limits.most_in_flight

    def counted(self, first: int, last: int) -> int:
        """How many offsets of a batch lie at or above the start offset."""
        return max(0, last - max(self.start_offset, first) + 1)

    # -- locks

    def lock(self, first: int, last: int, deadline_ms: int) -> Lock:
        """A new lock, for whoever takes it."""
        lock = Lock(deadline_ms, first, last)
        self._locks_made += 1
        heap = self._heap
        heapq.heappush(heap, (deadline_ms, self._locks_made, lock))
        if self._locks_made % SPARE_LOCKS == 0:
            live = [entry for entry in heap if entry[2].held or entry[2] is lock]
            if len(heap) > 2 * len(live) + SPARE_LOCKS:
                heapq.heapify(live)
                self._heap = live
        return lock

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next lock expires, by the clock that the deadlines were made with."""
        while self._heap and not self._heap[0][2].held:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def expire(self, now_ms: int, limits: Limits) -> list[StateBatch]:
        """Give back what is locked until now at the latest: the states to store. Then `move_start`."""
        found: list[StateBatch] = []
        while self._heap and self._heap[0][0] <= now_ms:
            lock = heapq.heappop(self._heap)[2]
            if lock.held:
                found += self.give_back(partial(_has_lock, lock), limits, lock.first, lock.last)
        return found

    def release(self, member: str, limits: Limits) -> list[StateBatch]:
        """Give back what a member has acquired: the states to store. Then `move_start`."""
        return self.give_back(partial(_is_of, member), limits, 0, self.end_offset)

    def give_back(
        self, concerns: Callable[[Delivery], bool], limits: Limits, first: int, last: int
    ) -> list[StateBatch]:
        """End the deliveries that `concerns` says; what lies below the start offset is archived."""
        found: list[StateBatch] = []
        floor = self.batches.floor(first)
        for batch in self.batches.between(first if floor is None else floor.first, last):
            whole = batch.whole
            if (
                whole is not None
                and whole.state == ACQUIRED
                and concerns(whole)
                and batch.first < self.start_offset <= batch.last
            ):
                batch.split()
            for low, high, delivery in batch.deliveries(first, last):
                if delivery.state != ACQUIRED or not concerns(delivery):
                    continue
                below = high < self.start_offset
                state = ARCHIVED if below else limits.after_release(delivery.count)
                delivery.end(state)
                found.append(StateBatch(low, high, state, delivery.count))
                if state == ARCHIVED:
                    self.complete_count += self.counted(low, high)
                elif state == AVAILABLE:
                    self.find_next = True
        return found

    # -- dead letters

    def archiving(self) -> list[StateBatch]:
        """What is on its way to the dead-letter queue."""
        return [
            StateBatch(first, last, ARCHIVING, delivery.count)
            for first, last, delivery in self._parts(self.end_offset + 1)
            if delivery.state == ARCHIVING
        ]

    def end_archiving(self, letters: Iterable[Letter]) -> list[StateBatch]:
        """Archive what was on its way to the dead-letter queue: the states to store. Then `move_start`."""
        found = []
        for first, last, _, _ in letters:
            floor = self.batches.floor(first)
            for batch in self.batches.between(first if floor is None else floor.first, last):
                is_part = batch.first < first or batch.last > last
                if batch.last < first or (is_part and batch.whole is not None and batch.whole.state != ARCHIVING):
                    continue
                if is_part:
                    batch.split()
                for low, high, delivery in batch.deliveries(first, last):
                    if delivery.state == ARCHIVING:
                        delivery.end(ARCHIVED)
                        self.complete_count += self.counted(low, high)
                        found.append(StateBatch(low, high, ARCHIVED, delivery.count))
        return found

    # -- the start offset

    def move_start(self) -> bool:
        """Move the start offset over what is done, and forget batches that are done. Whether it may have moved."""
        floor = self.batches.floor(self.start_offset)
        if floor is None or self._state_at(floor, self.start_offset) not in TERMINAL:
            return False
        done, count = self._done()
        if done == -1:
            return False
        batches = self.batches
        if done == batches.last().last:
            self.start_offset = self.end_offset = max(self.start_offset, done + 1)
            batches.clear()
            self.complete_count = 0
            return True
        batch = batches.floor(done)
        assert batch is not None
        if done == batch.last:
            after = batches.higher(done)
            assert after is not None
            self.start_offset = max(self.start_offset, after.first)
            if self.gap is not None and self.has_gap:
                self.start_offset = min(self.gap.start, self.start_offset)
            batches.drop_before(batch.first + 1)
        else:
            self.start_offset = max(self.start_offset, done + 1)
            batches.drop_before(batch.first)
        self.complete_count -= count
        return True

    @staticmethod
    def _state_at(batch: Batch, offset: int) -> int:
        if batch.whole is not None:
            return batch.whole.state
        found = batch.offsets.get(offset)
        return AVAILABLE if found is None else found.state

    def _done(self) -> tuple[int, int]:
        """The last offset up to which all is done, or -1, and how many of these were counted as complete."""
        done, count = -1, 0
        gap = self.gap.start if self.gap is not None and self.has_gap else None
        for batch in self.batches:
            if gap is not None and batch.last >= gap:
                break
            for first, last, delivery in batch.deliveries(batch.first, batch.last):
                if delivery.state not in TERMINAL:
                    return done, count
                done = last
                count += self.counted(first, last)
        return done, count

    def log_start_moved(self, log_start_offset: int) -> None:
        """The log begins later now: what was available before that is archived; the start offset follows."""
        if log_start_offset <= self.start_offset:
            # a part of a record batch may be available below the log's start: Kafka would fetch it again and again
            self.find_next = self.archive(0, log_start_offset - 1, AVAILABLE, counts=False) or self.find_next
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.complete_count = 0
            return
        gone = sum(
            max(0, min(last, log_start_offset - 1) - max(first, self.start_offset) + 1)
            for first, last, delivery in self._parts(log_start_offset)
            if delivery.state in TERMINAL
        )
        if self.archive(self.start_offset, log_start_offset - 1, AVAILABLE, counts=False):
            self.find_next = True
        self.start_offset = log_start_offset
        if self.gap is not None:  # Kafka leaves it, and the start offset may go back to it
            self.gap.start = max(self.gap.start, log_start_offset)
        self.complete_count -= gone
        self.end_offset = max(self.end_offset, log_start_offset)

    def _parts(self, end: int) -> Iterator[tuple[int, int, Delivery]]:
        for batch in self.batches:
            if batch.first >= end:
                return
            yield from batch.deliveries(batch.first, batch.last)

    def archive(self, first: int, last: int, state: int, *, counts: bool) -> bool:
        """Archive the offsets in a range that are in a state; `counts`: they count as complete. Whether there were any.

        Nothing is stored: it is found again by whoever reads there.
        """
        any_archived = False
        floor = self.batches.floor(first)
        for batch in self.batches.between(first if floor is None else floor.first, last):
            if batch.last < first:
                continue
            is_part = batch.first < first or batch.last > last
            if is_part and batch.whole is not None:
                if batch.whole.state != state:
                    continue
                batch.split()
            for low, high, delivery in batch.deliveries(first, last):
                if delivery.state == state:
                    delivery.end(ARCHIVED)
                    any_archived = True
                    if counts:
                        self.complete_count += high - low + 1
        return any_archived
