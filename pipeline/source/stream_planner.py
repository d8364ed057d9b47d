"""Plans the micro-batches of a stream: how far the next one reads, and from which files.

A position gives for each log the offset after the last batch that was read, under a key that names the topic by its
id (topic_ids.py). It never names a file, as files are cleaned, merged and removed. Where an offset is in a file is
remembered as a hint that every reader checks.

* A new log is read from its start; a deleted log leaves the position. A log whose topic has another id is a new one.
* A log that ends before its position has lost its unsynced tail in a crash: it is read on from its end. Where no id
  tells, it may have been deleted and created again: it is read from its start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

from pipeline.decode.batches import CHUNK_BYTES, EVERYTHING, Bounds, Source, ends
from pipeline.source.read_options import ReadOptions
from pipeline.source.segment_files import SegmentFile
from pipeline.source.segment_ranges import SegmentRange, whole_segments
from pipeline.source.topic_ids import key_in, keys_of, of_key

Position = dict[str, int]  # key of a log (topic_ids.py) -> the offset after the last batch that was read
_MAX_HINTS: Final = 8  # a log


class BatchPosition(NamedTuple):
    """Where an offset is in a segment file."""

    segment: int  # base offset
    position: int  # in the file
    offset: int


class StreamPlanner:
    """Knows where the logs of one read end, and how far a micro-batch of so many bytes goes."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._frozen_ends: Position | None = None  # when set, later records are ignored
        self._tails: dict[str, BatchPosition] = {}
        self._hints: dict[str, list[BatchPosition]] = {}

    def freeze_ends(self) -> None:
        """From now on treat the present ends of the logs as final."""
        self._frozen_ends = None
        self._frozen_ends = self.log_ends()

    def log_ends(self) -> Position:
        """The offset after the last whole batch of every log that has one."""
        return self.next_position({}, None)

    def next_position(self, start: Mapping[str, int], max_bytes: int | None) -> Position:
        """The end of the next micro-batch: the ends of the logs, or about max_bytes further over all logs."""
        logs = self._by_key(start)
        full = {log: end for log in logs if (end := self._end(log, logs[log])) is not None}
        if self._frozen_ends is not None:
            frozen = self._frozen_ends
            full = {log: min(end, frozen[key]) for log, end in full.items() if (key := key_in(frozen, log)) is not None}
        position = {log: at for log in logs if (at := _resumed(start, log, full.get(log, -1))) is not None}
        if max_bytes is None:
            return dict(sorted({**position, **full}.items()))
        pending = [log for log in full if position.get(log) != full[log]]
        unread = {log: self._unread_bytes(logs[log], position.get(log, 0)) for log in pending}
        left, waiting = max_bytes, len(unread)
        for log in sorted(unread, key=lambda each: unread[each]):
            share = max(left // waiting, 1)
            position[log], used = self._advance(logs[log], position.get(log, 0), full[log], share)
            left, waiting = left - used, waiting - 1
            if left <= 0:
                break
        return dict(sorted(position.items()))

    def ranges_between(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[SegmentRange]:
        """The ranges of segment files between two positions."""
        found, keys = [], {}
        for key, segments in self._by_key(end).items():
            if key_in(end, key) is not None:
                found += segments
                keys[segments[0].log] = key
        planned = []
        for each in whole_segments(found, self.options.log_starts()):
            key = keys[each.log]
            last = end[key_in(end, key) or key]
            first = _resumed(start, key, last) or 0
            bounds = replace(
                each.bounds,
                first=max(first, each.bounds.first),
                end=min(last, each.bounds.end),
                position=self._hint(each.log, each.segment, first),
                is_tail=False,
            )
            if bounds.first < bounds.end:
                planned.append(replace(each, bounds=bounds, size=max(each.size - bounds.position, 0)))
        return planned

    def _by_key(self, position: Mapping[str, int]) -> dict[str, list[SegmentFile]]:
        """The segments that there are now of each log, by its key. position: whose keys they continue."""
        logs = {log: list(found) for log, found in groupby(self.options.segments(), key=lambda each: each.log)}
        keys = keys_of(((log, found[0].topic_id) for log, found in logs.items()), position)
        return {keys[log]: found for log, found in logs.items()}

    # ------------------------------------------------------------ where logs end

    def _end(self, key: str, found: list[SegmentFile]) -> int | None:
        """The offset after the last whole batch; None: there is no batch yet."""
        last = found[-1]
        known = self._tails.get(key)
        if known is None or known.segment != last.base_offset or known.position > last.size:
            known = BatchPosition(last.base_offset, 0, last.base_offset)
        for reached in self._walk(last, known.offset, EVERYTHING, known.position, CHUNK_BYTES):
            known = reached
        if self._tails.get(key) != known:
            self._tails[key] = known
            self._remember(last.log, known)
        is_empty = known.position == 0 and len(found) == 1 and last.base_offset == 0
        return None if is_empty else known.offset

    def _walk(
        self, segment: SegmentFile, first: int, end: int, position: int, chunk_bytes: int
    ) -> Iterator[BatchPosition]:
        """The end of each chunk of whole batches."""
        bounds = Bounds(first, end, position, is_tail=True)
        try:
            file = self.options.files.open_input_file(segment.path)
        except FileNotFoundError:
            return  # removed since it was listed: the next micro-batch sees what replaced it
        with file:
            for at, offset in ends(file, Source(segment.log, segment.base_offset), bounds, chunk_bytes):
                yield BatchPosition(segment.base_offset, at, offset)

    # ------------------------------------------------------------ how far a micro-batch goes

    def _unread_bytes(self, found: list[SegmentFile], offset: int) -> int:
        return sum(each.size for each in found[_segment_index(found, offset) :])

    def _advance(self, found: list[SegmentFile], offset: int, end: int, max_bytes: int) -> tuple[int, int]:
        """(offset, bytes) after as many whole batches as fit into max_bytes, and at least one."""
        used = 0
        found = found[_segment_index(found, offset) :]
        for segment, after in zip(found, [*(each.base_offset for each in found[1:]), EVERYTHING], strict=True):
            at = self._locate(segment, offset)
            rest = max(segment.size - at, 0)
            if after <= end and used + rest <= max_bytes:
                used, offset = used + rest, after
            else:
                limit = min(after, end)
                offset, more = self._advance_within(segment, offset, limit, at, max(max_bytes - used, 1))
                used += more
                if offset < limit:
                    break
            if used >= max_bytes or offset >= end:
                break
        return offset, used

    def _advance_within(
        self, segment: SegmentFile, offset: int, limit: int, at: int, max_bytes: int
    ) -> tuple[int, int]:
        """(offset, bytes) after the first chunk of a segment that goes beyond `offset`."""
        used = 0
        for reached in self._walk(segment, offset, limit, at, max_bytes):
            used += max(reached.position - at, 1)
            if reached.offset > offset:  # not so where the hint was stale and the walk began at the file's start
                self._remember(segment.log, reached)
                return reached.offset, used
        return limit, used  # the cleaner has removed what was left

    def _locate(self, segment: SegmentFile, offset: int) -> int:
        """Position of the first batch at or after an offset."""
        at = self._hint(segment.log, segment.base_offset, offset)
        if not at and offset > segment.base_offset:
            for reached in self._walk(segment, 0, offset, 0, CHUNK_BYTES):
                at = reached.position
            self._remember(segment.log, BatchPosition(segment.base_offset, at, offset))
        return at

    def _remember(self, log: str, hint: BatchPosition) -> None:
        hints = self._hints.setdefault(log, [])
        hints.append(hint)
        del hints[:-_MAX_HINTS]

    def _hint(self, log: str, segment: int, offset: int) -> int:
        for hint in self._hints.get(log, ()):
            if hint.segment == segment and hint.offset == offset:
                return int(hint.position)
        return 0


def ranges_of(options: ReadOptions) -> list[SegmentRange]:
    """What a batch read reads: all that is there now, or as far as the option `ends` says."""
    if options.ends is not None:
        return StreamPlanner(options).ranges_between({}, options.ends)
    return whole_segments(options.segments(), options.log_starts())


def _resumed(start: Mapping[str, int], key: str, end: int) -> int | None:
    """Where a log that ends at `end` is read on after the position `start`; None: from its start."""
    known = key_in(start, key)
    if known is None or end < 0:
        return None
    if start[known] <= end:
        return start[known]
    return None if of_key(known)[1] is None else end


def _segment_index(found: list[SegmentFile], offset: int) -> int:
    """Index of the segment that holds an offset."""
    return max((number for number, each in enumerate(found) if each.base_offset <= offset), default=0)
