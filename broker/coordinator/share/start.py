"""Where a share group begins to read a partition that it has never read: share.auto.offset.reset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.partitions.partition import Partition

_DURATION: Final = re.compile(
    r"P(?:(?P<days>[-+]?\d+)D)?(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_SECONDS: Final = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def duration_ms(text: str) -> int:
    """Milliseconds of an ISO-8601 duration in days and smaller units: "P1DT2H30M1.5S"."""
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else {unit: part for unit, part in found.groupdict().items() if part is not None}
    if not parts:
        raise ValueError(f"not a duration: {text}")
    return int(sum(float(part) * _SECONDS[unit] for unit, part in parts.items()) * 1000)


def start_offset(partition: Partition, reset: str, now_ms: int) -> int:
    """The first offset to read. Errors: OFFSET_NOT_AVAILABLE: no record is as new as `by_duration` asks."""
    if reset == "latest":
        return partition.high_watermark
    if reset == "earliest":
        return partition.log.log_start_offset
    place = partition.log.offset_for_timestamp(now_ms - duration_ms(reset.removeprefix("by_duration:")))
    if place is None or place[1] >= partition.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"Offset for timestamp not found for {partition}")
    return place[1]
