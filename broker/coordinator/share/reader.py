"""Reads a share partition's next records from its log, and acquires them for a member."""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.coordinator.share.aborted import aborted_batches, archive_aborted
from broker.coordinator.share.acquire import Acquired, AcquireRequest, ReadBatch, acquire, acquire_new, enough_read
from protocol.record_batch import (
    ABORT,
    CONTROL,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    TRANSACTIONAL,
    BatchHeader,
    control_type,
    iter_records,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.coordinator.share.limits import Limits
    from broker.coordinator.share.share_partition import SharePartition
    from broker.partitions.partition import Partition
    from storage.log.log import FileSlice

SMALL_BYTES: Final = 1 << 16  # up to this size the records are read at once, to look at their headers


class AcquiredRecords(NamedTuple):
    """What a member gets of one partition."""

    records: bytes | FileSlice
    acquired: Sequence[Acquired]
    total: int  # records


class NewBatches(NamedTuple):
    """Record batches after all records in flight: their offsets, and where each ends in the slice."""

    found: FileSlice
    data: bytes | None  # the slice's bytes, of a small one
    batches: list[ReadBatch]
    ends: list[int]


NOTHING: Final = AcquiredRecords(b"", (), 0)
_WALK: Final = Struct(">qi11xi")  # of a batch's header: base offset, length, last offset delta


def peek(
    partition: Partition, state: SharePartition, most_bytes: int, *, committed: bool, min_one: bool
) -> FileSlice | None:
    """The record batches from the next fetch offset on; None: there are none. Errors: StorageError, OSError."""
    log = partition.log
    offset = state.next_fetch_offset()
    if offset < log.log_start_offset:
        state.log_start_moved(log.log_start_offset)
        offset = state.next_fetch_offset()
    limit = partition.last_stable_offset if committed else partition.high_watermark
    if not log.log_start_offset <= offset < limit:
        return None
    return log.read(offset, most_bytes, limit_offset=limit, min_one=min_one)


def take(
    partition: Partition,
    state: SharePartition,
    limits: Limits,
    asked: AcquireRequest,
    found: FileSlice,
    *,
    committed: bool,
) -> AcquiredRecords:
    """Acquire records of what `peek` has found. Errors: StorageError, OSError."""
    data = found.read() if len(found) <= SMALL_BYTES else None
    offset = state.next_fetch_offset()
    batches, places = _headers(found, data, partial(enough_read, state, asked, offset), committed=committed)
    acquired, count = acquire(state, limits, asked, offset, batches)
    if committed and acquired:
        aborted = partition.aborted_transactions(offset, found.end_offset)
        if aborted:
            acquired, count = archive_aborted(state, acquired, aborted_batches(batches, aborted))
    if not acquired:
        return NOTHING
    first, last = acquired[0].first, acquired[-1].last
    wanted = [at for at, batch in enumerate(batches) if batch.last >= first and batch.first <= last]
    if not wanted:  # the cleaner has removed them all: as in Kafka they come with the batch in front of them
        wanted = [max([at for at, batch in enumerate(batches) if batch.first <= first], default=0)]
    start, stop = places[wanted[0]], places[wanted[-1] + 1]
    if data is not None:
        return AcquiredRecords(data[start:stop], acquired, count)
    return AcquiredRecords(found.part(start, stop, batches[wanted[-1]].last + 1), acquired, count)


def read_new(
    partition: Partition, state: SharePartition, most_bytes: int, likely_bytes: int, most_records: int, min_bytes: int
) -> NewBatches | None:
    """`peek` where `state.is_plain`: as many of the same batches as it takes to acquire so many records.

    None: there are none, or too few bytes, or the first batch begins below the next fetch offset.
    Units:   `likely_bytes`: how much is read at first.
    Errors:  StorageError, OSError.
    """
    log, limit = partition.log, partition.high_watermark
    offset = state.next_fetch_offset()
    if not log.log_start_offset <= offset < limit:
        return None
    size = min(likely_bytes, most_bytes)
    while True:
        found = log.read(offset, size, limit_offset=limit)
        if found is None:
            return None
        new = _new_batches(found, most_records)
        first, last = new.batches[0].first, new.batches[-1].last
        if first < offset:
            return None
        is_enough = last - first + 1 >= most_records and len(found) >= min_bytes
        if is_enough or size == most_bytes or found.end_offset >= limit:
            return new if len(found) >= min(min_bytes, most_bytes) else None
        size = most_bytes


def _new_batches(found: FileSlice, most_records: int) -> NewBatches:
    size = len(found)
    data = found.read() if size <= SMALL_BYTES else None
    batches, ends, at, most = [], [], 0, -1
    while at < size:
        header = data[at : at + HEADER_BYTES] if data is not None else found.pread(HEADER_BYTES, at)
        base_offset, length, delta = _WALK.unpack_from(header)
        at += length + LOG_OVERHEAD_BYTES
        batches.append(ReadBatch(base_offset, base_offset + delta))
        ends.append(at)
        if most < 0:
            most = base_offset + most_records - 1
        if base_offset + delta >= most:
            break
    return NewBatches(found, data, batches, ends)


def take_new(state: SharePartition, limits: Limits, asked: AcquireRequest, new: NewBatches) -> AcquiredRecords:
    """`take` of what `read_new` has found, where there is room for all that the member wants."""
    found, data, batches, ends = new
    acquired, count = acquire_new(state, limits, asked, batches)
    last = acquired[-1].last
    at = next(at for at, batch in enumerate(batches) if batch.last >= last)
    if data is not None:
        return AcquiredRecords(data if ends[at] == len(data) else data[: ends[at]], acquired, count)
    return AcquiredRecords(found.part(0, ends[at], batches[at].last + 1), acquired, count)


def _headers(
    found: FileSlice, data: bytes | None, enough: Callable[[int], int], *, committed: bool
) -> tuple[list[ReadBatch], list[int]]:
    """The batches of a slice, and where each begins; one place more says where the last one ends.

    `enough` says, by the first batch's offset, up to which offset batches are looked at: a slice may hold hundreds of
    them where a member asks for a few records.
    """
    batches: list[ReadBatch] = []
    places = [0]
    at, size = 0, len(found)
    most: int | None = None
    while at < size and (most is None or batches[-1].last < most):
        header = BatchHeader.from_buffer(data, at) if data is not None else _header_at(found, at)
        is_control = bool(header.attributes & CONTROL)
        is_abort = False
        if committed and is_control:
            batch = found.pread(header.size, at) if data is None else data[at : at + header.size]
            (marker,) = iter_records(batch)
            is_abort = marker.key is not None and control_type(marker.key) == ABORT
        batches.append(
            ReadBatch(
                header.base_offset,
                header.last_offset,
                header.producer_id,
                bool(header.attributes & TRANSACTIONAL),
                is_abort,
                is_control,
            )
        )
        at += header.size
        places.append(at)
        if most is None:
            most = enough(header.base_offset)
    return batches, places


def _header_at(found: FileSlice, at: int) -> BatchHeader:
    return BatchHeader.from_buffer(found.pread(HEADER_BYTES, at))
