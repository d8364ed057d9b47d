"""Acquires records for a member: which of the batches that were read it gets, and how they are grouped.

batch-optimised  whole record batches, so that the broker keeps little state; the limit of records may be exceeded
record-limit     never more records than asked for (KIP-1206); the rest of a batch stays available

Records that have failed often are delivered in smaller and smaller parts, and alone before the limit is reached: so one
record that no consumer can handle does not take its batch with it.

Source: KIP-932, KIP-1206; Kafka's SharePartition.acquire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from broker.coordinator.share.in_flight import ACQUIRED, AVAILABLE, Batch, Delivery
from broker.coordinator.share.limits import Limits
from broker.coordinator.share.share_partition import SharePartition

BATCH_OPTIMIZED: Final = 0  # values of ShareFetch's ShareAcquireMode
RECORD_LIMIT: Final = 1


class Acquired(NamedTuple):
    """Offsets first..last, with how often they have been delivered, this time included."""

    first: int
    last: int
    delivery_count: int


class ReadBatch(NamedTuple):
    """A record batch in the log, as far as acquiring needs it."""

    first: int
    last: int
    producer_id: int = -1
    is_transactional: bool = False
    is_abort: bool = False  # a marker that ends an aborted transaction
    is_control: bool = False


class AcquireRequest(NamedTuple):
    """Who asks for how much. Units: records; `deadline_ms`: when the locks expire."""

    member: str
    deadline_ms: int
    most_records: int
    batch_size: int
    mode: int = BATCH_OPTIMIZED


def enough_read(partition: SharePartition, asked: AcquireRequest, fetch_offset: int, first_read: int) -> int:
    """With the batches up to and with this offset at hand, more of them change nothing.

    All records in flight lie before it, and as many behind them as the member asks for. `first_read`: the first offset
    of the first batch, beyond `fetch_offset` where the log was compacted.
    """
    return max(partition.end_offset, fetch_offset - 1, first_read - 1) + asked.most_records


def acquire(
    partition: SharePartition, limits: Limits, asked: AcquireRequest, fetch_offset: int, batches: Sequence[ReadBatch]
) -> tuple[list[Acquired], int]:
    """What the member acquires of the batches, and how many records it is.

    `batches`: whole batches, in order, the first of which holds `fetch_offset` or is the next one in the log.
    """
    if asked.most_records <= 0 or not batches or batches[-1].last < partition.start_offset:
        return [], 0
    most, last = _capacity(partition, limits, asked.most_records, fetch_offset, batches[-1].last)
    if most <= 0:
        return [], 0
    return _Acquisition(partition, limits, asked, batches, most, last).run(fetch_offset)


def acquire_new(
    partition: SharePartition, limits: Limits, asked: AcquireRequest, batches: Sequence[ReadBatch]
) -> tuple[list[Acquired], int]:
    """`acquire` of batches that lie behind all records in flight, where there is room for all that the member wants."""
    acquisition = _Acquisition(partition, limits, asked, batches, asked.most_records, batches[-1].last)
    acquisition.take_new()
    return acquisition.found, acquisition.count


def _capacity(
    partition: SharePartition, limits: Limits, most_records: int, fetch_offset: int, last: int
) -> tuple[int, int]:
    """How many records may be acquired, and the last offset that may be."""
    most = min(most_records, limits.most_in_flight - partition.in_flight)
    if most <= 0 and fetch_offset <= partition.end_offset:  # there is no room behind the end, but some before it
        most = min(most_records, partition.end_offset - fetch_offset + 1)
        last = min(last, partition.end_offset)
    return most, last


class _Acquisition:
    """One call of `acquire`."""

    def __init__(
        self,
        partition: SharePartition,
        limits: Limits,
        asked: AcquireRequest,
        batches: Sequence[ReadBatch],
        most: int,
        last: int,
    ) -> None:
        self.partition = partition
        self.limits = limits
        self.asked = asked
        self.batches = batches
        self.most = most
        self.last = last  # the last offset to acquire
        self.exact = asked.mode == RECORD_LIMIT
        self.found: list[Acquired] = []
        self.count = 0

    def run(self, fetch_offset: int) -> tuple[list[Acquired], int]:
        partition, first_read = self.partition, self.batches[0].first
        if fetch_offset < first_read and partition.archive(fetch_offset, first_read - 1, AVAILABLE, counts=True):
            partition.find_next = True  # what was there is gone, because the log was compacted: it never comes
        base = first_read
        floor = partition.batches.floor(base)
        if floor is None:
            base = max(base, partition.start_offset)
        elif floor.last >= base:
            base = floor.first
        known = partition.batches.between(min(first_read, base), self.last)
        if not known:
            self._take_new(base, self.last, self.most)
            return self.found, self.count
        stopped = self._take_known(known, base, first_read)
        if not stopped and self.count < self.most and known[-1].last < self.last:
            self._take_new(known[-1].last + 1, self.last, self.most - self.count)
        if self.found:
            self._gap_read_to(self.found[-1].last + 1)
        return self.found, self.count

    def take_new(self) -> None:
        """Acquire what was read, where none of it has been acquired before."""
        self._take_new(self.batches[0].first, self.last, self.most)

    # -- records in flight

    def _take_known(self, known: Sequence[Batch], base: int, first_read: int) -> bool:
        """Acquire what is available of batches in flight, and the gaps between them. Whether no more may be taken."""
        gap_start = base
        for batch in known:
            if self.count >= self.most:
                return True
            if self.partition.has_gap:
                if gap_start < batch.first:
                    self._take_new(gap_start, batch.first - 1, self.most - self.count)
                gap_start = batch.last + 1
                if self.count >= self.most:
                    return True
            careful = self._is_careful(batch, first_read)
            if careful and self.count:
                return True
            is_part = batch.first < first_read or batch.last > self.last
            left = self.most - self.count
            if is_part or batch.whole is None or careful or (self.exact and len(batch) > left):
                if batch.whole is not None:
                    if batch.whole.state != AVAILABLE:
                        continue
                    batch.split()
                taken = self._take_offsets(batch, left, first_read)
                self.count += taken
                if careful and taken:
                    return True
            elif batch.whole.state == AVAILABLE:
                lock = self.partition.lock(batch.first, batch.last, self.asked.deadline_ms)
                batch.whole.take(self.asked.member, lock)
                self.found.append(Acquired(batch.first, batch.last, batch.whole.count))
                self.count += len(batch)
        return False

    def _is_careful(self, batch: Batch, first_read: int) -> bool:
        """Whether a record that could be acquired has failed often."""
        return any(
            delivery.state == AVAILABLE and delivery.count >= self.limits.careful_from
            for _, _, delivery in batch.deliveries(first_read, self.last)
        )

    def _take_offsets(self, batch: Batch, left: int, first_read: int) -> int:
        """Acquire single offsets of a batch; how many."""
        limits, most_careful = self.limits, -1
        alone = limits.most_deliveries > 2  # a limit of 2 leaves no delivery to be careful with
        taken: list[tuple[int, int]] = []
        for offset, _, delivery in batch.deliveries(first_read, self.last):
            if delivery.state != AVAILABLE:
                continue
            count = delivery.count
            if alone and count == limits.most_deliveries - 1 and taken:
                break
            if count >= limits.careful_from and most_careful < 0:
                most_careful = max(1, len(batch) >> (count - limits.careful_from + 1))
            delivery.take(self.asked.member, self.partition.lock(offset, offset, self.asked.deadline_ms))
            taken.append((offset, delivery.count))
            if alone and delivery.count == limits.most_deliveries:
                break
            if (self.exact and len(taken) == left) or len(taken) == most_careful:
                break
        self._add_merged(taken)
        return len(taken)

    def _add_merged(self, taken: Sequence[tuple[int, int]]) -> None:
        """Add single offsets to what was found, neighbours of the same count as one."""
        begun: Acquired | None = None
        for offset, count in taken:
            if begun is not None and begun.last + 1 == offset and begun.delivery_count == count:
                begun = begun._replace(last=offset)
                continue
            if begun is not None:
                self.found.append(begun)
            begun = Acquired(offset, offset, count)
        if begun is not None:
            self.found.append(begun)

    # -- new records

    def _take_new(self, first: int, last: int, most: int) -> None:
        """Acquire offsets that have never been acquired, whole record batches at least in part."""
        partition = self.partition
        if not partition.batches and partition.end_offset > first:
            first = partition.end_offset
        if first > last:  # a full partition takes nothing behind its end, and the cleaner has removed all before that
            return
        if most < last - first + 1:
            whole = self._end_of_batch(first + most - 1)
            last = min(last, whole) if partition.has_gap else whole
        taken = self._new_batches(first, last, most)
        if partition.batches.first().first == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, last)
        if self.exact:
            last = taken[0].last
        self._gap_read_to(last + 1)
        self.found += taken
        self.count += last - first + 1

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the record batch that holds an offset."""
        for batch in self.batches:
            if batch.first <= offset <= batch.last:
                return batch.last
        return offset

    def _new_batches(self, first: int, last: int, most: int) -> list[Acquired]:
        """New batches in flight, each of whole record batches and of about the batch size."""
        made: list[tuple[int, int]] = []
        if not self.exact and last - first + 1 > self.asked.batch_size:
            for batch in self.batches:
                if batch.first > last:
                    break
                if batch.first - first >= self.asked.batch_size:
                    made.append((first, batch.first - 1))
                    first = batch.first
        made.append((first, last))
        partition, member = self.partition, self.asked.member
        if self.exact and last - first + 1 > most:
            limit = first + most - 1
            lock = partition.lock(first, limit, self.asked.deadline_ms)
            new = Batch(first, last, Delivery(AVAILABLE, 0))
            for offset, delivery in new.split().items():
                if offset <= limit:
                    delivery.take(member, lock)
            partition.batches.add(new)
            partition.find_next = True
            return [Acquired(first, limit, 1)]
        for low, high in made:
            lock = partition.lock(low, high, self.asked.deadline_ms)
            partition.batches.add(Batch(low, high, Delivery(ACQUIRED, 1, member, lock)))
        return [Acquired(low, high, 1) for low, high in made]

    def _gap_read_to(self, offset: int) -> None:
        """The gaps of the stored state are read up to here; behind the end that it had, they are all read."""
        partition = self.partition
        gap = partition.gap
        if gap is not None:
            if gap.end == partition.end_offset and offset <= gap.end:
                gap.start = offset
            else:
                partition.gap = None
