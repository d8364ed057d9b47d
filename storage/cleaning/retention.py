"""Which segments are removed: below the log's start, too much, too old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.segments.recovery import remove_segment

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.segments.log_writer import LogWriter
    from storage.segments.segment import Segment


def retain(log: LogWriter, now_ms: int, limit_offset: int, before: Callable[[], object] | None = None) -> list[int]:
    """Delete from the oldest on; the log keeps one segment, empty and new if all others are to go.

    Source: Kafka's UnifiedLog.deleteOldSegments (start offset, then size, then time).
    """
    doomed = expired(log, now_ms, limit_offset)
    if not doomed:
        return []
    if before is not None:
        before()
    if doomed == len(log.segments):
        log.roll()
    last = log.segments[-1]
    if doomed == len(log.segments) - 1 and not last.size and not log.env.files.exists(last.file.path):
        # The name of the empty file is what remembers the end of the log: it is synced before the others are removed,
        # where that counts. An earlier round may have failed to write it.
        log.env.files.write_file_atomic(last.file.path, b"", sync=log.env.files.syncs)
    if log.before_start_moves is not None:
        log.before_start_moves(max(log.log_start_offset, log.segments[doomed].base_offset))
    removed: list[int] = []
    for segment in log.segments[:doomed]:
        segment.retire()
        try:
            remove_segment(log.env.files, log.directory, segment.base_offset)
        finally:  # as a start will find it: a segment is gone if its file is, however the removal ended
            if not log.env.files.exists(segment.file.path):
                log.log_start_offset = max(log.log_start_offset, log.segments[1].base_offset)
                log.epochs.cut_front(log.log_start_offset)
                del log.segments[0]
        removed.append(segment.base_offset)
    log.cleaned_offset = max(log.cleaned_offset, log.log_start_offset)
    return removed


def expired(log: LogWriter, now_ms: int, limit_offset: int) -> int:
    """How many segments, counted from the oldest, have to go now."""
    segments = log.segments
    config = log.config
    deletable = 0
    for at, segment in enumerate(segments):
        if at + 1 < len(segments):
            after = segments[at + 1].base_offset
        elif segment.size and not segment.pending:
            after = log.end_offset
        else:
            break
        if after > limit_offset:
            break
        deletable = at + 1
    doomed = 0
    while doomed < min(deletable, len(segments) - 1) and (segments[doomed + 1].base_offset <= log.log_start_offset):
        doomed += 1
    if not config.deletes:
        return doomed
    if config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[doomed:]) - config.retention_bytes
        while doomed < deletable and excess - segments[doomed].size >= 0:
            excess -= segments[doomed].size
            doomed += 1
    if config.retention_ms >= 0:
        while doomed < deletable and now_ms - _written_ms(log, segments[doomed], now_ms) > config.retention_ms:
            doomed += 1
    return doomed


def _written_ms(log: LogWriter, segment: Segment, now_ms: int) -> int:
    """The largest record time; the time of the last write if its records have none; now where that is not known.

    A write before this start is dated by its file, whose time is the machine's. The cluster's clock may be ahead of
    that. So its age is that of the file when the log was opened, and what has passed since.
    """
    if segment.largest_timestamp >= 0:
        return segment.largest_timestamp
    if segment.undated_written_ms:
        return segment.undated_written_ms
    modified_ms = segment.files.modified_ms(segment.file.path)
    return modified_ms + log.ahead_of_files_ms if modified_ms else now_ms
