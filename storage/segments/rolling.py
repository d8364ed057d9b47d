"""When a segment is full, too old or too far, so that the next batch begins another one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from storage.files.env import Clock
from storage.segments.config import LogConfig
from storage.segments.segment import NEVER, Segment


def must_roll(
    segment: Segment, config: LogConfig, clock: Clock, last_offset: int, max_timestamp_ms: int, size: int
) -> bool:
    """Whether a batch of `size` bytes does not go into the segment any more. An empty segment takes every batch."""
    return bool(segment.size) and (
        segment.is_full
        or segment.size + size > config.segment_bytes
        or last_offset > segment.max_offset
        or _is_too_old(segment, config, clock, max_timestamp_ms)
    )


def set_age(segment: Segment, config: LogConfig, clock: Clock, first_ms: int) -> None:
    """The age of a segment counts from the time of its first batch; if that has none, from now on.

    Source: Kafka's LogSegment.timeWaitedForRoll.
    """
    segment.undated_since_ms = None if first_ms >= 0 else clock.steady_ms()
    segment.roll_after_ms = first_ms + config.roll_ms if first_ms >= 0 else -NEVER


def _is_too_old(segment: Segment, config: LogConfig, clock: Clock, timestamp_ms: int) -> bool:
    if segment.undated_since_ms is None:
        return timestamp_ms > segment.roll_after_ms
    return clock.steady_ms() - segment.undated_since_ms > config.roll_ms


def seal(segments: Sequence[Segment]) -> None:
    """Write the indexes of segments that are full. Failing costs nothing: they are made again when needed."""
    for segment in segments:
        with suppress(OSError):
            segment.save_index(final=True)
