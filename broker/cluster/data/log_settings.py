"""What a topic's settings say of its logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.log.log import LogConfig

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.topics import Topic


def log_config(metadata: ClusterMetadata, topic: Topic) -> LogConfig:
    """A topic's settings as a LogConfig."""

    def number(key: str) -> int:
        value = metadata.value(topic, key)
        assert isinstance(value, int)
        return value

    policy = metadata.value(topic, "cleanup.policy")
    assert isinstance(policy, tuple)
    ratio = metadata.value(topic, "min.cleanable.dirty.ratio")
    assert isinstance(ratio, float)
    return LogConfig(
        segment_bytes=number("segment.bytes"),
        segment_ms=number("segment.ms"),
        segment_index_bytes=number("segment.index.bytes"),
        index_interval_bytes=number("index.interval.bytes"),
        retention_ms=number("retention.ms"),
        retention_bytes=number("retention.bytes"),
        cleanup_policy=frozenset(str(p) for p in policy),
        min_cleanable_dirty_ratio=ratio,
        max_compaction_lag_ms=number("max.compaction.lag.ms"),
        max_message_bytes=number("max.message.bytes"),
        max_record_bytes=number("max.decompressed.message.bytes"),
        min_compaction_lag_ms=number("min.compaction.lag.ms"),
        delete_retention_ms=number("delete.retention.ms"),
        flush_messages=number("flush.messages"),
        flush_ms=number("flush.ms"),
    )
