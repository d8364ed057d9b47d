"""Settings of topics and groups with values inside, at and beyond what they accept; None: no value at all."""

from __future__ import annotations

from typing import Final

from differential.generate.builder import Case
from differential.plain import Values

Table = tuple[tuple[str, tuple[str | None, ...]], ...]

TOPICS: Final[Table] = (
    (
        "retention.ms",
        (
            "1000",
            "-1",
            "-2",
            "x",
            "",
            None,
            "9223372036854775807",
            "9223372036854775808",
            " 1000 ",
            "+5",
            "1_000",
            "1.0",
            "0x10",
            "-0",
            "007",
            "1 0",
            "\u00a05",
            "\t5",
            "5\n",
        ),
    ),
    (
        "cleanup.policy",
        (
            *("compact", "delete", "compact,delete", "", "zip", None, "delete,delete", " compact", "Compact"),
            *("compact, delete", "delete,", ",", "delete,compact,delete", "none"),
        ),
    ),
    ("segment.bytes", ("1048576", "1", "0", "14", "2147483648", " 1048576", "2147483647")),
    ("max.message.bytes", ("0", "1", "-1", "100")),
    ("min.insync.replicas", ("1", "2", "0", "x", " 1 ", "+1", "1.0")),
    ("compression.type", ("gzip", "none", "lz4", "producer", "uncompressed", "GZIP", " gzip ", "")),
    ("compression.gzip.level", ("1", "-1", "0", "10")),
    ("compression.lz4.level", ("1", "17", "18")),
    ("compression.zstd.level", ("1", "22", "23", "-131072", "-131073")),
    ("message.timestamp.type", ("CreateTime", "LogAppendTime", "x", "createtime", " CreateTime", "")),
    (
        "min.cleanable.dirty.ratio",
        (
            "0.1",
            "1.1",
            "x",
            "1",
            "-0.1",
            "1e-1",
            "0.5d",
            "Infinity",
            "0x1p-1",
            ".5",
            "1.",
            " 0.5 ",
            "0.30",
            "5e-5",
            "1_0",
            "+0.5",
            "-0.0",
        ),
    ),
    ("preallocate", ("true", "TRUE", "yes", "", " true ", "tRuE", "0")),
    ("segment.ms", ("1", "0", "1000")),
    ("flush.ms", ("0", "-1")),
    ("flush.messages", ("1", "0")),
    ("no.such.key", ("1",)),
    ("", ("1",)),
    ("unclean.leader.election.enable", ("true", "x")),
    (
        "leader.replication.throttled.replicas",
        ("*", "0:1", "", "x", "none", "0:1,1:1", "*,0:1", "0:1,0:1", "0:1:2", " * ", "0: 1", "a:b", "-1:1"),
    ),
    ("message.downconversion.enable", ("true",)),
    ("message.format.version", ("3.0",)),
    ("remote.storage.enable", ("true", "false")),
    ("index.interval.bytes", ("0", "-1", "10")),
    ("segment.jitter.ms", ("0", "-1", "5")),
    ("local.retention.ms", ("-2", "100", "-3")),
    ("retention.bytes", ("-1", "0", "100", "-2")),
    ("max.compaction.lag.ms", ("0", "1")),
    ("min.compaction.lag.ms", ("0", "-1", "10", "9223372036854775807")),
    ("delete.retention.ms", ("0", "-1")),
    ("file.delete.delay.ms", ("0", "-1")),
    ("segment.index.bytes", ("4", "3", "100")),
    ("message.timestamp.before.max.ms", ("0", "-1")),
    ("message.timestamp.after.max.ms", ("0", "-1")),
)
GROUPS: Final[Table] = (
    (
        "share.auto.offset.reset",
        (
            *("earliest", "latest", "none", "LATEST", "", " latest ", "by_duration:", "by_duration:x", "by_duration:P"),
            *("by_duration:" + text for text in ("PT1H", "P1D", "PT-1H", "P1Y", "pt1h", "PT0.5S", "PT0S", "P1DT")),
        ),
    ),
    ("share.isolation.level", ("read_committed", "READ_COMMITTED", " read_uncommitted ", "x", "")),
    ("share.record.lock.duration.ms", ("15000", "1000", "60000", "60001", "14999", "+15000")),
    ("share.session.timeout.ms", ("45000", "1", "60000", "60001", "44999")),
    ("share.heartbeat.interval.ms", ("5000", "15000", "15001", "4999")),
    ("share.delivery.count.limit", ("2", "5", "10", "11", "1")),
    ("share.partition.max.record.locks", ("100", "2000", "99", "10000", "10001")),
    ("share.assignment.interval.ms", ("0", "1000", "15000", "15001", "-1")),
    ("share.renew.acknowledge.enable", ("true", "false", "x")),
    ("streams.assignment.interval.ms", ("0", "1000", "15000", "15001", "-1")),
    ("consumer.session.timeout.ms", ("45000", "50000", "1000", "70000", "x")),
    ("consumer.heartbeat.interval.ms", ("5000", "6000", "100", "20000")),
    ("consumer.assignment.interval.ms", ("0", "1000", "-1", "20000")),
    ("streams.num.standby.replicas", ("0", "1", "2", "3", "-1")),
    ("streams.session.timeout.ms", ("45000", "100")),
    ("streams.heartbeat.interval.ms", ("5000", "1")),
    ("streams.initial.rebalance.delay.ms", ("0", "100", "-1")),
    ("no.such", ("1",)),
)
BROKERS: Final[Table] = (
    ("message.max.bytes", ("1000", " 1000 ", "-1", "x", "0")),
    ("log.retention.ms", ("1000", "-1", "-2", "0")),
    ("log.cleanup.policy", ("compact", "x", "delete", "")),
    ("log.segment.bytes", ("1048576", "100", "14")),
    ("compression.type", ("gzip", "x")),
    # none that shuts the referee out: Kafka obeys 0 and 1 at once
    ("max.connections", ("100", "x", "-1")),
    ("max.connections.per.ip", ("100", "x", "-1")),
    ("log.message.timestamp.type", ("LogAppendTime", "x")),
    ("unclean.leader.election.enable", ("true", "x")),
    ("producer.id.expiration.ms", ("1000", "0")),
    ("log.cleaner.backoff.ms", ("1000", "-1")),
    ("log.flush.interval.messages", ("1", "0")),
    *((key, ("7",)) for key in ("broker.id", "num.partitions", "offsets.retention.minutes", "no.such", "log.dirs")),
)
OPERATIONS: Final = ((0, 6), (1, 2), (2, 1), (3, 1), (4, 0.2), (-1, 0.1))  # SET, DELETE, APPEND, SUBTRACT, none such


def rows(case: Case, table: Table = TOPICS) -> list[Values]:
    """Some settings; mostly one."""
    found = []
    for _ in range(case.count(0.5, 6, 2, 1)):
        key, values = case.rng.choice(table)
        found.append({"Name": key, "Value": case.rng.choice(values)})
    return found


def changes(case: Case, table: Table = TOPICS) -> list[Values]:
    """The same with operations."""
    return [{**row, "ConfigOperation": case.weighted(OPERATIONS)} for row in rows(case, table)]
