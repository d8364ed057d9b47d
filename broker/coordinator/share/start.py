"""Where a share group begins to read a partition that it has never read: share.auto.offset.reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config.config_values import BY_DURATION, duration_ms
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.partitions.partition import Partition


def start_offset(partition: Partition, reset: str, now_ms: int) -> int:
    """The first offset to read. Errors: OFFSET_NOT_AVAILABLE: no record is as new as `by_duration` asks."""
    if reset == "latest":
        return partition.high_watermark
    if reset == "earliest":
        return partition.log.log_start_offset
    place = partition.log.offset_for_timestamp(now_ms - duration_ms(reset.removeprefix(BY_DURATION)))
    if place is None or place[1] >= partition.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"Offset for timestamp not found for {partition}")
    return place[1]
