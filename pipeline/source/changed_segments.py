"""Which segments have changed since they were read, and what of them to read now: lists to lists, no I/O.

Changes are found by comparing files: the cleaner and retention rewrite and remove segments without writing a record, so
no stream position can tell. A closed segment is identified by its base offset, its size and the base offset of the next
one, as a cleaning only makes it smaller or merges it with the next. Of the active segment, the added part is read. A
segment of a topic with another id is a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from pipeline.source.segment_files import SegmentFile
from pipeline.source.segment_source import SegmentPart
from pipeline.source.topic_ids import is_same

SegmentKey: TypeAlias = tuple[str, int]  # log, base offset


class SegmentState(NamedTuple):
    """A segment as it was when it was read. Stored in ledger.json as an array in this order."""

    log: str
    segment: int  # base offset
    size: int  # bytes of the file when it was read
    reached: int  # position in the file after the last batch that was read
    end: int  # offset after it
    following: int | None  # base offset of the next segment; None: this one is active
    topic_id: str | None = None  # None: the log's folder names none, or the state was stored before ids were

    @property
    def key(self) -> SegmentKey:
        """The log and base offset that identify the segment."""
        return self.log, self.segment


class ReadPlan(NamedTuple):
    """What one round does with the segments that exist."""

    kept: list[SegmentState]  # unchanged: not read
    read: list[tuple[SegmentPart, SegmentState]]  # the part to read, and the segment's state as listed
    is_last: bool  # no segment is left for another round


def segment_states(found: Iterable[SegmentFile]) -> list[SegmentState]:
    """The states of existing segments before anything of them is read."""
    made = []
    for _, log in groupby(found, key=lambda each: each.log):
        segments = list(log)
        bases: list[int | None] = [each.base_offset for each in segments[1:]]
        for each, following in zip(segments, [*bases, None], strict=True):
            made.append(
                SegmentState(each.log, each.base_offset, each.size, 0, each.base_offset, following, each.topic_id)
            )
    return made


def plan_reads(existing: Iterable[SegmentState], known: Mapping[SegmentKey, SegmentState], max_bytes: int) -> ReadPlan:
    """What to read of the existing segments in one round: about max_bytes, and at least one changed segment."""
    kept, read, left, is_last = [], [], max_bytes, True
    for each in existing:
        before = known.get(each.key)
        if before is not None and not is_same(before.topic_id, each.topic_id):
            before = None
        if before is not None and _is_unchanged(before, each):
            kept.append(each._replace(reached=before.reached, end=before.end))
            continue
        start = each
        if before is not None and _has_only_grown(before, each):
            start = each._replace(reached=before.reached, end=before.end)
        if left > 0:
            left -= each.size - start.reached
            read.append((SegmentPart(each.log, each.segment, start.end, start.reached), start))
        else:
            is_last = False
            if before is not None and start.reached:
                kept.append(before)  # what was read of its beginning still holds
    return ReadPlan(kept, read, is_last)


def _is_unchanged(before: SegmentState, now: SegmentState) -> bool:
    if before.following is None and now.size == before.reached:
        return True
    return (before.size, before.following) == (now.size, now.following)


def _has_only_grown(before: SegmentState, now: SegmentState) -> bool:
    """Whether it was active and still is, so that only its new part must be read."""
    return before.following is None and now.following is None and before.reached <= now.size


def state_after_read(
    part: SegmentPart, wanted: SegmentState, facts: Mapping[str, Any] | None, now: SegmentState | None
) -> SegmentState | None:
    """A segment's state after a read; None: the segment changed or vanished meanwhile and must be read again.

    facts: file position of the first row, `start`, and after the last, `reached`, and the offset after it, `end`;
    None: the read gave no rows. now: the segment as listed after the read; None: it is gone.
    """
    if now is None or not is_same(now.topic_id, wanted.topic_id):
        return None
    if wanted.following is not None and (now.size, now.following) != (wanted.size, wanted.following):
        return None
    if facts is None:
        return wanted
    if part.position and facts["start"] != part.position:
        return None  # the log was deleted and created again under the same name, and no id tells
    return wanted._replace(reached=facts["reached"], end=facts["end"])
