"""Compaction: keep the last record of every key, in slices that never hold up the event loop.

Plan (pure, over bytes): which offset is the last of each key in the dirty part, which transactions were
aborted, which batches a producer's state needs. Apply: copy what survives of a group of old segments into
BASE.log.cleaned, sync it, rename it to BASE.log.swap (from here on it counts), remove the old segments, sync
the directory, rename it to BASE.log. A crash before the first rename undoes the whole, a crash after it is
finished at the next start. Offsets never change; a batch keeps its base and last offset and its sequence numbers.

Source: Kafka's Cleaner and MemoryRecords.filterTo.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from protocol.record_batch import HEADER_BYTES, BatchHeader
from storage.cleaning.compaction_filter import filter_batch
from storage.cleaning.compaction_plan import MAX_KEYS, SLICE_RECORDS, Plan, ProducersInLog, plan_keys, plan_transactions
from storage.segments.recovery import CLEANED_SUFFIX, SWAP_SUFFIX, remove_segment
from storage.segments.segment import LOG_SUFFIX, MAX_RELATIVE_OFFSET, Segment, remove_index
from storage.segments.transaction_index import Markers, merge_indexes

if TYPE_CHECKING:
    from storage.segments.log_writer import LogWriter

_SLICE_BYTES: Final = 1 << 20
_WRITE_BYTES: Final = 256 << 10


def uncleanable_offset(log: LogWriter, now_ms: int | None, last_stable_offset: int | None) -> int:
    """The first offset that may not be cleaned: active segment, open transactions, records too young."""
    if not log.segments:
        return log.log_start_offset
    limit = log.segments[-1].base_offset
    if last_stable_offset is not None:
        limit = min(limit, last_stable_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if now_ms is not None and lag_ms > 0:
        for segment in log.segments[:-1]:
            if segment.largest_timestamp > now_ms - lag_ms:
                return min(limit, segment.base_offset)
    return limit


def dirty_ratio(log: LogWriter, now_ms: int | None, last_stable_offset: int | None) -> float:
    """Bytes not yet cleaned as a part, 0 to 1, of all below the first offset that may not be cleaned."""
    limit = uncleanable_offset(log, now_ms, last_stable_offset)
    clean_bytes = dirty_bytes = 0
    for segment in log.segments:
        if segment.base_offset >= limit:
            break
        if segment.base_offset < log.cleaned_offset:
            clean_bytes += segment.size
        else:
            dirty_bytes += segment.size
    return dirty_bytes / (clean_bytes + dirty_bytes) if dirty_bytes else 0.0


def is_overdue(log: LogWriter, now_ms: int, last_stable_offset: int | None) -> bool:
    """Whether a record has been dirty for max.compaction.lag.ms. Source: LogCleanerManager.maxCompactionDelay."""
    oldest_ms = now_ms - log.config.max_compaction_lag_ms
    if oldest_ms <= 0 or uncleanable_offset(log, now_ms, last_stable_offset) <= log.cleaned_offset:
        return False
    for segment, after in pairwise(log.segments):
        if after.base_offset > log.cleaned_offset:
            first = next(segment.headers(0), None)
            if first is not None and 0 < first[1].max_timestamp < oldest_ms:
                return True
    return False


def clean(
    log: LogWriter,
    now_ms: int,
    last_stable_offset: int,
    producers: ProducersInLog | None = None,
    *,
    commits: bool = False,
    tombstones_end: int | None = None,
    max_keys: int = MAX_KEYS,
) -> Iterator[None]:
    """One pass over everything below the first offset that may not be cleaned.

    commits: a coordinator's log, where a batch is one commit: what its first record says of who made it goes to the
    first that survives, and a commit over several batches loses the marks of its wholeness (spans.py).

    tombstones_end: from this offset on tombstones and markers stay, for an image of the log up to there, which may hold
    what they delete or end. When one was due, `log.held_tombstones` is set.

    Durable: each group of segments is replaced whole or not at all.
    """
    limit = uncleanable_offset(log, now_ms, last_stable_offset)
    if limit <= log.cleaned_offset:
        return
    plan = Plan(now_ms, limit, commits=commits)
    if tombstones_end is not None:
        plan.tombstones_end = tombstones_end
    segments = [segment for segment in log.segments[:-1] if segment.base_offset < limit]
    yield from plan_transactions(plan, segments, producers or ProducersInLog())
    yield from plan_keys(plan, segments, log.cleaned_offset, max_keys, log.config.max_record_bytes)
    segments = [segment for segment in segments if segment.base_offset < plan.end_offset]
    for group in _groups(segments, log.config.segment_bytes):
        yield  # the renames and removals of a group are a slice of their own
        done = yield from _clean_group(log, plan, group)
        if not done:
            return
    log.cleaned_offset = max(log.cleaned_offset, plan.end_offset)
    log.held_tombstones = plan.held_tombstones


def _groups(segments: list[Segment], max_bytes: int) -> Iterator[list[Segment]]:
    """Neighbours that fit into one segment together, so that a log of crumbs does not stay one."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        if group and (
            size + segment.size > max_bytes
            or segment.base_offset - group[0].base_offset + segment.size // HEADER_BYTES > MAX_RELATIVE_OFFSET
        ):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group


def _clean_group(log: LogWriter, plan: Plan, group: list[Segment]) -> Generator[None, None, bool]:
    """Replace some segments by one; False when they were taken away (retention, a cut), or the log is out of use."""
    files = log.env.files
    path = f"{group[0].stem}{LOG_SUFFIX}{CLEANED_SUFFIX}"
    if files.exists(path):
        files.remove(path)
    cleaned = Segment(files, log.directory, group[0].base_offset, suffix=LOG_SUFFIX + CLEANED_SUFFIX)
    markers = Markers()
    changed = len(group) > 1
    work = handled = 0
    for segment in group:
        for _, header, batch in segment.batches(0):
            if plan.is_superseded(header):
                kept = None
                work += 1
            else:
                kept = yield from filter_batch(plan, header, batch, log.config.delete_retention_ms)
                work += header.record_count + 2
            changed = changed or kept is not batch
            if kept is not None:
                _keep(cleaned, kept, log.config.index_interval_bytes, markers)
            handled += len(batch)
            if cleaned.size - cleaned.file.size >= _WRITE_BYTES:
                cleaned.flush()
                work = SLICE_RECORDS
            if work >= SLICE_RECORDS or handled >= _SLICE_BYTES:
                work = handled = 0
                yield
    if changed:
        if cleaned.pending:
            cleaned.flush()
        if cleaned.file.size:
            synced = files.start(cleaned.file.sync)
            while not synced():
                yield
        else:
            files.write_file_atomic(path, b"")
    at = log.segments.index(group[0]) if group[0] in log.segments else len(log.segments)
    still_there = log.segments[at : at + len(group)] == group and group[-1] is not log.segments[-1]
    if not changed or not still_there or log.broken:
        cleaned.file.close()
        if files.exists(path):
            files.remove(path)
        return still_there and not log.broken
    try:
        return (yield from _swap(log, cleaned, group, markers))
    except OSError as error:
        raise log.give_up(f"could not swap in a compacted segment: {error}") from error


def _keep(cleaned: Segment, batch: bytes | memoryview, index_interval_bytes: int, markers: Markers) -> None:
    header = BatchHeader.from_buffer(batch)
    cleaned.note(cleaned.size, header, index_interval_bytes)
    cleaned.pending.append(batch)
    cleaned.size += len(batch)
    if header.is_control and header.record_count:
        markers.add(header.base_offset)


def _swap(log: LogWriter, cleaned: Segment, group: list[Segment], markers: Markers) -> Generator[None, None, bool]:
    files = log.env.files
    swap = cleaned.stem + LOG_SUFFIX + SWAP_SUFFIX
    cleaned.file.close()
    files.rename(cleaned.file.path, swap)
    remove_index(files, group[0].stem)  # durably before the log is replaced: a start would use it for the new one
    synced = files.start(lambda: files.sync_dir(log.directory))  # a busy disk takes a tenth of a second for it
    while not synced():
        yield
    at = log.segments.index(group[0]) if group[0] in log.segments else len(log.segments)
    if log.broken or log.segments[at : at + len(group)] != group or not files.exists(swap):  # taken away meanwhile
        if files.exists(swap):
            files.remove(swap)
        return False
    for segment in group:
        segment.retire()
    merge_indexes(files, log.directory, [segment.base_offset for segment in group], markers)
    for segment in group[1:]:  # upwards: what a crash leaves are later records, never older ones alone
        remove_segment(files, log.directory, segment.base_offset)
    cleaned.file = files.open_append(swap)
    cleaned.is_going = True  # a thread that syncs the log may miss it while it is renamed; it is synced already
    cleaned.max_bytes = log.config.segment_bytes
    log.segments[at : at + len(group)] = [cleaned]
    if log.when_compacted is not None:  # in this step: readers are told of the transactions of what they read
        log.when_compacted(cleaned.base_offset, log.segments[at + 1].base_offset, markers)
    if len(group) > 1:  # what was removed must not be back once the name of the swap is gone
        synced = files.start(lambda: files.sync_dir(log.directory))
        while not synced():
            yield
    if log.broken or cleaned not in log.segments:
        return False
    cleaned.file.retire()
    files.rename(swap, cleaned.stem + LOG_SUFFIX)
    cleaned.file = files.open_append(cleaned.stem + LOG_SUFFIX)
    cleaned.is_going = False
    cleaned.save_index(final=True)
    return True
