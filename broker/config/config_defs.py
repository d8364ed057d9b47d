"""Config keys of topics and of groups: name, type, default, rule and one line of documentation for each.

A row is (key, type, default, rule, broker key, documentation). The broker key gives the default for a topic or
group without a value of its own. A rule is None, (lowest, highest), the allowed words, or the name of a special
rule in config_values. Rows are plain constants, so importing the table takes no time.
"""

from __future__ import annotations

from typing import TypeAlias

Rule: TypeAlias = "str | tuple[str, ...] | tuple[float, float | None] | None"
Row: TypeAlias = tuple[str, str, "str | None", Rule, str, str]

# A row is one to three lines, not one a column.
# fmt: off
TOPIC_ROWS: tuple[Row, ...] = (
    ("cleanup.policy", "LIST", "delete", ("compact", "delete"), "log.cleanup.policy",
     "How old segments are cleaned up: delete, compact, both or neither."),
    ("compression.gzip.level", "INT", "-1", "gzip level", "compression.gzip.level",
     "Level used when the broker compresses with gzip."),
    ("compression.lz4.level", "INT", "9", (1, 17), "compression.lz4.level",
     "Level used when the broker compresses with lz4."),
    ("compression.type", "STRING", "producer",
     ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), "compression.type",
     "Codec of stored batches; producer keeps what was sent."),
    ("compression.zstd.level", "INT", "3", (-131072, 22), "compression.zstd.level",
     "Level used when the broker compresses with zstd."),
    ("delete.retention.ms", "LONG", "86400000", (0, None), "log.cleaner.delete.retention.ms",
     "Time a tombstone is kept in a compacted log."),
    ("errors.deadletterqueue.group.enable", "BOOLEAN", "false", None, "",
     "Allow share groups to use the topic as their dead-letter queue."),
    ("file.delete.delay.ms", "LONG", "60000", (0, None), "log.segment.delete.delay.ms",
     "Wait before the files of a deleted segment are removed."),
    ("flush.messages", "LONG", "9223372036854775807", (1, None), "log.flush.interval.messages",
     "Records after which the log is forced to disk."),
    ("flush.ms", "LONG", "9223372036854775807", (0, None), "log.flush.interval.ms",
     "Time after which the log is forced to disk."),
    ("follower.replication.throttled.replicas", "LIST", "", "throttled replicas", "",
     "Replicas whose replication is throttled on the follower."),
    ("index.interval.bytes", "INT", "4096", (0, None), "log.index.interval.bytes",
     "Bytes of log between two entries of the offset index."),
    ("internal.segment.bytes", "INT", None, None, "", "Segment size below the public minimum, for tests."),
    ("leader.replication.throttled.replicas", "LIST", "", "throttled replicas", "",
     "Replicas whose replication is throttled on the leader."),
    ("local.retention.bytes", "LONG", "-2", (-2, None), "log.local.retention.bytes",
     "Local part of retention.bytes with tiered storage."),
    ("local.retention.ms", "LONG", "-2", (-2, None), "log.local.retention.ms",
     "Local part of retention.ms with tiered storage."),
    ("max.compaction.lag.ms", "LONG", "9223372036854775807", (1, None), "log.cleaner.max.compaction.lag.ms",
     "Time after which a record must be compacted."),
    ("max.decompressed.message.bytes", "INT", "2147483639", (1, 2147483639), "max.decompressed.message.bytes",
     "Largest record of a compressed batch, when decompressed."),
    ("max.message.bytes", "INT", "1048588", (0, None), "message.max.bytes",
     "Largest record batch accepted, headers included."),
    ("message.timestamp.after.max.ms", "LONG", "3600000", (0, None), "log.message.timestamp.after.max.ms",
     "How far a timestamp may be after the broker's clock."),
    ("message.timestamp.before.max.ms", "LONG", "9223372036854775807",
     (0, None), "log.message.timestamp.before.max.ms",
     "How far a timestamp may be before the broker's clock."),
    ("message.timestamp.type", "STRING", "CreateTime",
     ("CreateTime", "LogAppendTime"), "log.message.timestamp.type",
     "Timestamp of a record: of its producer (CreateTime) or of the broker (LogAppendTime)."),
    ("min.cleanable.dirty.ratio", "DOUBLE", "0.5", (0, 1), "log.cleaner.min.cleanable.ratio",
     "Share of the log that must be dirty before it is cleaned."),
    ("min.compaction.lag.ms", "LONG", "0", (0, None), "log.cleaner.min.compaction.lag.ms",
     "Least time before a record is compacted."),
    ("min.insync.replicas", "INT", "1", (1, None), "min.insync.replicas",
     "Replicas that must have a record before acks=all is answered."),
    ("preallocate", "BOOLEAN", "false", None, "log.preallocate",
     "Allocate the space of a segment when it is created."),
    ("remote.copy.lag.bytes", "LONG", "-1", (-1, None), "log.remote.copy.lag.bytes",
     "Bytes that stay uncopied with tiered storage."),
    ("remote.copy.lag.ms", "LONG", "0", (-1, None), "log.remote.copy.lag.ms",
     "Time that records stay uncopied with tiered storage."),
    ("remote.log.copy.disable", "BOOLEAN", "false", None, "", "Stop copying segments to tiered storage."),
    ("remote.log.delete.on.disable", "BOOLEAN", "false", None, "",
     "Delete the tiered data when tiered storage is switched off."),
    ("remote.storage.enable", "BOOLEAN", "false", None, "",
     "Keep old segments in tiered storage; not available here."),
    ("retention.bytes", "LONG", "-1", None, "log.retention.bytes",
     "Size of a partition above which old segments are deleted; -1: no limit."),
    ("retention.ms", "LONG", "604800000", (-1, None), "log.retention.ms",
     "Age in milliseconds at which a segment is deleted; -1: never."),
    ("segment.bytes", "INT", "1073741824", (1048576, None), "log.segment.bytes",
     "Size at which a new segment is begun."),
    ("segment.index.bytes", "INT", "10485760", (4, None), "log.index.size.max.bytes",
     "Largest offset index of a segment."),
    ("segment.jitter.ms", "LONG", "0", (0, None), "log.roll.jitter.ms",
     "Largest random reduction of the age at which a segment is rolled."),
    ("segment.ms", "LONG", "604800000", (1, None), "log.roll.ms",
     "Age in milliseconds at which a new segment is begun."),
    ("unclean.leader.election.enable", "BOOLEAN", "false", None, "unclean.leader.election.enable",
     "Allow a replica out of sync to become leader."),
)

GROUP_ROWS: tuple[Row, ...] = (
    ("consumer.assignment.interval.ms", "INT", "1000", (0, None), "group.consumer.assignment.interval.ms",
     "Least time between two assignments of the consumer group."),
    ("consumer.assignor.offload.enable", "BOOLEAN", "true", None, "group.consumer.assignor.offload.enable",
     "Assign the consumer group in a thread of its own."),
    ("consumer.heartbeat.interval.ms", "INT", "5000", (1, None), "group.consumer.heartbeat.interval.ms",
     "Heartbeat interval of the consumer group."),
    ("consumer.session.timeout.ms", "INT", "45000", (1, None), "group.consumer.session.timeout.ms",
     "Session timeout of the consumer group."),
    ("errors.deadletterqueue.copy.record.enable", "BOOLEAN", "false", None, "",
     "Copy key and value of a record into the dead-letter queue of the share group, beside the headers."),
    ("errors.deadletterqueue.topic.name", "STRING", "", None, "",
     "Topic that gets the records which the share group has rejected, or been given too often; empty: none."),
    ("share.assignment.interval.ms", "INT", "1000", (0, None), "group.share.assignment.interval.ms",
     "Least time between two assignments of the share group."),
    ("share.assignor.offload.enable", "BOOLEAN", "true", None, "group.share.assignor.offload.enable",
     "Assign the share group in a thread of its own."),
    ("share.auto.offset.reset", "STRING", "latest", "offset reset", "",
     "Where a share group begins to read."),
    ("share.delivery.count.limit", "INT", "5", (2, None), "group.share.delivery.count.limit",
     "Most deliveries of a record to the share group."),
    ("share.heartbeat.interval.ms", "INT", "5000", (1, None), "group.share.heartbeat.interval.ms",
     "Heartbeat interval of the share group."),
    ("share.isolation.level", "STRING", "read_uncommitted", ("read_committed", "read_uncommitted"), "",
     "Isolation level of the share group."),
    ("share.partition.max.record.locks", "INT", "2000", (100, None), "group.share.partition.max.record.locks",
     "Most records locked at the same time in a partition of the share group."),
    ("share.record.lock.duration.ms", "INT", "30000", (1000, None), "group.share.record.lock.duration.ms",
     "Time a record stays locked for a member of the share group."),
    ("share.renew.acknowledge.enable", "BOOLEAN", "true", None, "",
     "Allow members of the share group to renew a lock."),
    ("share.session.timeout.ms", "INT", "45000", (1, None), "group.share.session.timeout.ms",
     "Session timeout of the share group."),
    ("streams.acceptable.recovery.lag", "LONG", "10000", (0, None), "group.streams.acceptable.recovery.lag",
     "Offsets that a member of the streams group may lack and still get an active task."),
    ("streams.assignment.interval.ms", "INT", "1000", (0, None), "group.streams.assignment.interval.ms",
     "Least time between two assignments of the streams group."),
    ("streams.assignor.name", "STRING", "sticky", None, "group.streams.assignors",
     "Task assignor of the streams group."),
    ("streams.assignor.offload.enable", "BOOLEAN", "true", None, "group.streams.assignor.offload.enable",
     "Assign the streams group in a thread of its own."),
    ("streams.heartbeat.interval.ms", "INT", "5000", (1, None), "group.streams.heartbeat.interval.ms",
     "Heartbeat interval of the streams group."),
    ("streams.initial.rebalance.delay.ms", "INT", "3000",
     (0, None), "group.streams.initial.rebalance.delay.ms",
     "Wait for more members before the first assignment of the streams group."),
    ("streams.num.standby.replicas", "INT", "0", (0, None), "group.streams.num.standby.replicas",
     "Standby replicas of each task of the streams group."),
    ("streams.num.warmup.replicas", "INT", "2", (0, None), "group.streams.num.warmup.replicas",
     "Most warm-up replicas of the streams group."),
    ("streams.rack.aware.assignment.tags", "LIST", "", None, "group.streams.rack.aware.assignment.tags",
     "Client tags over which the standby replicas of the streams group are to be spread."),
    ("streams.session.timeout.ms", "INT", "45000", (1, None), "group.streams.session.timeout.ms",
     "Session timeout of the streams group."),
    ("streams.task.offset.interval.ms", "INT", "60000", (1, None), "group.streams.task.offset.interval.ms",
     "How often members of the streams group tell how far they have the state of tasks."),
)
# fmt: on

# Keys beside those that begin with "internal." which Kafka describes only where they are set.
_INTERNAL = frozenset(
    (
        "assignor.offload.enable",
        "streams.acceptable.recovery.lag",
        "streams.max.warmup.replicas",
        "streams.min.task.offset.interval.ms",
        "streams.num.warmup.replicas",
        "streams.task.offset.interval.ms",
    )
)


def is_internal(key: str) -> bool:
    """Whether Kafka describes the key only where it is set."""
    name = key.removeprefix("group.")
    return key.startswith("internal.") or name in _INTERNAL or name.partition(".")[2] in _INTERNAL


# Broker keys that set one value in several units, finest first: the first one with a value counts.
UNITS: dict[str, tuple[tuple[str, int], ...]] = {
    "log.roll.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    "log.roll.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "log.flush.interval.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "log.retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
}
