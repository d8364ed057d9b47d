"""Which segments have changed since they were read, and what of them is to be read now: lists to lists.

Files say what has changed: the cleaner and retention rewrite and remove segments without a record in the log, which no
position could tell. A segment that is closed is known by its base offset, its size and its successor, for a cleaning
only makes it smaller or merges it with the next. Of the one that is written to, what was added is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from pipeline.files import Segment
from pipeline.pieces import Piece

Place: TypeAlias = tuple[str, int]  # log, base offset


class Known(NamedTuple):
    """A segment as it was found."""

    log: str
    segment: int
    size: int  # of the file, when it was read
    reached: int  # place in the file, and offset, behind what was read
    end: int
    following: int | None  # base offset of the next one; None: it is written to

    @property
    def place(self) -> Place:
        return self.log, self.segment


class Plan(NamedTuple):
    """What is to be done about the segments there are."""

    kept: list[Known]  # nothing
    read: list[tuple[Piece, Known]]  # what is to be read, and what will be known
    is_last: bool  # nothing is left to another round


def listed(found: Iterable[Segment]) -> list[Known]:
    """The segments there are, as nothing is known of them yet."""
    made = []
    for _, log in groupby(found, key=lambda each: each.log):
        segments = list(log)
        bases: list[int | None] = [each.base_offset for each in segments[1:]]
        for each, following in zip(segments, [*bases, None], strict=True):
            made.append(Known(each.log, each.base_offset, each.size, 0, each.base_offset, following))
    return made


def planned(there: Iterable[Known], known: Mapping[Place, Known], max_bytes: int) -> Plan:
    """What to read of the segments there are: about so many bytes, and at least one of them."""
    kept, read, left, is_last = [], [], max_bytes, True
    for each in there:
        was = known.get(each.place)
        begun = was is not None and was.following is None and was.reached <= each.size
        if was is not None and _is_same(was, each):
            kept.append(each._replace(reached=was.reached, end=was.end))
            continue
        start = each
        if was is not None and begun and each.following is None:
            start = each._replace(reached=was.reached, end=was.end)
        if left > 0:
            left -= each.size - start.reached
            read.append((Piece(each.log, each.segment, start.end, start.reached), start))
        else:
            is_last = False
            if was is not None and start.reached:
                kept.append(was)  # what is known of its beginning stands
    return Plan(kept, read, is_last)


def _is_same(was: Known, now: Known) -> bool:
    if was.following is None and now.size == was.reached:
        return True
    return (was.size, was.following) == (now.size, now.following)


def as_read(piece: Piece, wanted: Known, facts: Mapping[str, Any] | None, now: Known | None) -> Known | None:
    """What is known of a segment once it was read; None: it was not, or is no more, what had been listed.

    facts: where in the file the rows begin, `start`, and end, `reached`; the offset behind them, `end`.
    """
    if now is None or (wanted.following is not None and (now.size, now.following) != (wanted.size, wanted.following)):
        return None
    if facts is None:
        return wanted
    if piece.position and facts["start"] != piece.position:
        return None  # another log of the same name
    return wanted._replace(reached=facts["reached"], end=facts["end"])
