"""Plans the steps of a stream: from a position, how far to read next, and from which files.

A position says for each log the offset behind the last batch that was read, never a place in a file: files are
cleaned, merged and removed. Where an offset lies is remembered as a hint, and checked by whoever follows it.

* A log that is new is read from its start; one that is gone leaves the position.
* A log that ends before its position is another one of the same name (or lost its tail with the machine's power):
  it is read from its start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

from pipeline.decode.batches import CHUNK_BYTES, EVERYTHING, Bounds, Source, ends
from pipeline.files import Segment
from pipeline.slices import Settings, Slice, slices_of

Position = dict[str, int]
_KEPT_SPOTS: Final = 8


class Spot(NamedTuple):
    """Where an offset lies."""

    segment: int
    position: int
    offset: int


class Planner:
    """Knows where the logs of one read end, and how far a step of so many bytes goes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.target: Position | None = None  # set: what comes later is not there yet
        self._tails: dict[str, Spot] = {}
        self._spots: dict[str, list[Spot]] = {}

    def stop_here(self) -> None:
        """From now on the logs end where they end now."""
        self.target = None
        self.target = self.latest({}, None)

    def latest(self, start: Mapping[str, int], max_bytes: int | None) -> Position:
        """Where the next step ends: as far as there is anything, or about `max_bytes` further, in all logs together."""
        logs = {log: list(found) for log, found in groupby(self.settings.segments(), key=lambda each: each.log)}
        full = {log: end for log in logs if (end := self._end(log, logs[log])) is not None}
        if self.target is not None:
            full = {log: min(end, self.target[log]) for log, end in full.items() if log in self.target}
        position = {log: start[log] for log in logs if log in start and start[log] <= full.get(log, -1)}
        if max_bytes is None:
            return dict(sorted({**position, **full}.items()))
        pending = [log for log in full if position.get(log) != full[log]]
        behind = {log: self._bytes_behind(logs[log], position.get(log, 0)) for log in pending}
        left, waiting = max_bytes, len(behind)
        for log in sorted(behind, key=lambda each: behind[each]):
            share = max(left // waiting, 1)
            end, used = self._advance(logs[log], position.get(log, 0), full[log], share)
            position[log] = end
            left, waiting = left - used, waiting - 1
            if left <= 0:
                break
        return dict(sorted(position.items()))

    def slices(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Slice]:
        """What lies between two positions."""
        found = [each for each in self.settings.segments() if each.log in end]
        planned = []
        for each in slices_of(found):
            last = end[each.log]
            first = start.get(each.log, 0)
            if first > last:
                first = 0
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

    # ------------------------------------------------------------ where logs end

    def _end(self, log: str, found: list[Segment]) -> int | None:
        """The offset behind the last whole batch; None: there is none yet."""
        last = found[-1]
        known = self._tails.get(log)
        if known is None or known.segment != last.base_offset or known.position > last.size:
            known = Spot(last.base_offset, 0, last.base_offset)
        for spot in self._walk(last, known.offset, EVERYTHING, known.position, CHUNK_BYTES):
            known = spot
        if self._tails.get(log) != known:
            self._tails[log] = known
            self._remember(log, known)
        is_empty = known.position == 0 and len(found) == 1 and last.base_offset == 0
        return None if is_empty else known.offset

    def _walk(self, segment: Segment, first: int, end: int, position: int, chunk_bytes: int) -> Iterator[Spot]:
        """Where each chunk of whole batches ends."""
        bounds = Bounds(first, end, position, is_tail=True)
        try:
            file = self.settings.files.open_input_file(segment.path)
        except FileNotFoundError:
            return  # it went after it was listed: the next step sees what came in its place
        with file:
            for at, offset in ends(file, Source(segment.log, segment.base_offset), bounds, chunk_bytes):
                yield Spot(segment.base_offset, at, offset)

    # ------------------------------------------------------------ how far a step goes

    def _bytes_behind(self, found: list[Segment], offset: int) -> int:
        return sum(each.size for each in found[_holder(found, offset) :])

    def _advance(self, found: list[Segment], offset: int, end: int, max_bytes: int) -> tuple[int, int]:
        """(offset, bytes) behind as many whole batches as fit, and at least one."""
        used = 0
        found = found[_holder(found, offset) :]
        for segment, after in zip(found, [*(each.base_offset for each in found[1:]), EVERYTHING], strict=True):
            at = self._locate(segment, offset)
            rest = max(segment.size - at, 0)
            if after <= end and used + rest <= max_bytes:
                used, offset = used + rest, after
            else:
                limit = min(after, end)
                for reached in self._walk(segment, offset, limit, at, max(max_bytes - used, 1)):
                    used += max(reached.position - at, 1)
                    if reached.offset > offset:  # it is not where the hint no longer held
                        offset = reached.offset
                        self._remember(segment.log, reached)
                        break
                else:
                    offset = limit  # nothing is left of what was there
                if offset < limit:
                    break
            if used >= max_bytes or offset >= end:
                break
        return offset, used

    def _locate(self, segment: Segment, offset: int) -> int:
        """Where the first batch at or behind an offset begins."""
        at = self._hint(segment.log, segment.base_offset, offset)
        if not at and offset > segment.base_offset:
            for reached in self._walk(segment, 0, offset, 0, CHUNK_BYTES):
                at = reached.position
            self._remember(segment.log, Spot(segment.base_offset, at, offset))
        return at

    def _remember(self, log: str, spot: Spot) -> None:
        spots = self._spots.setdefault(log, [])
        spots.append(spot)
        del spots[:-_KEPT_SPOTS]

    def _hint(self, log: str, segment: int, offset: int) -> int:
        for spot in self._spots.get(log, ()):
            if spot.segment == segment and spot.offset == offset:
                return int(spot.position)
        return 0


def _holder(found: list[Segment], offset: int) -> int:
    """Number of the segment in which an offset lies."""
    return max((number for number, each in enumerate(found) if each.base_offset <= offset), default=0)
