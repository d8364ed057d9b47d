"""What to copy: topics as the metadata log describes them, the records to keep, and the target's offsets.

One producer writes each partition of the target, which holds nothing else. So its offsets start at 0 and have no gaps:
a record's offset there is the number of kept records before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pipeline.audit.log_coverage import batches
from pipeline.audit.transactions import with_transaction_end
from pipeline.engine import F, Window
from pipeline.source.metadata_log import METADATA, newest_snapshot
from pipeline.transforms import commits
from pipeline.transforms.missing_offsets import block_of
from protocol.messages.metadata_records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_record,
)
from protocol.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark import RDD
    from pyspark.sql import DataFrame, Row, SparkSession

# The columns that are needed: of the metadata log, of the view `offsets`, to decide on a record, and to copy it.
METADATA_RECORDS: Final = ("offset", "control", "value")
COMMITS: Final = (*commits.DECIDING, "commit_offset", "commit_metadata")
LOCATION_COLUMNS: Final = (
    "log", "topic", "partition", "batch_base_offset", "batch_last_offset", "offset", "timestamp", "control",
)  # fmt: skip  # several to a line
RECORDS: Final = (*LOCATION_COLUMNS, "key", "value", "headers")
INTERNAL: Final = (METADATA, "__consumer_offsets", "__transaction_state", "__share_group_state")
_TOPIC_CONFIG: Final = 2  # type of a config resource
# Settings that refer to brokers of the source.
_LOCAL: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


@dataclass(slots=True)
class Topic:
    """A topic of the source; configs holds only those that were set on it."""

    name: str
    partitions: int = 0
    configs: dict[str, str] = field(default_factory=dict)
    topic_id: bytes = bytes(16)


def topics_of(values: Iterable[bytes]) -> dict[str, Topic]:
    """The existing topics by name, after applying metadata records in order."""
    found: dict[str, Topic] = {}
    names: dict[bytes, str] = {}
    for value in values:
        match decode_record(value):
            case TopicRecord(name=name, topic_id=topic_id):
                names[topic_id] = name
                found[name] = Topic(name, configs=found[name].configs if name in found else {}, topic_id=topic_id)
            case PartitionRecord(topic_id=topic_id, partition_id=index) if topic_id in names:
                topic = found[names[topic_id]]
                topic.partitions = max(topic.partitions, index + 1)
            case ConfigRecord(resource_type=kind, resource_name=name, name=key, value=text) if kind == _TOPIC_CONFIG:
                configs = found.setdefault(name, Topic(name)).configs
                if text is None:
                    configs.pop(key, None)
                elif key not in _LOCAL:
                    configs[key] = text
            case RemoveTopicRecord(topic_id=topic_id) if topic_id in names:
                found.pop(names.pop(topic_id), None)
            case _:
                continue
    return {name: topic for name, topic in found.items() if topic.partitions}


def metadata_values(raw: DataFrame, path: str) -> Iterator[bytes]:
    """The values of the metadata log in order, from its newest snapshot on. raw: rows of that log; path: --input."""
    start = -1
    for begin, value in newest_snapshot(path):
        start = begin
        yield value
    rows = raw.where(F.col("control").isNull() & (F.col("offset") >= start)).orderBy("offset").select("value")
    for row in rows.toLocalIterator():
        if row["value"]:
            yield bytes(row["value"])


def matching_topics(topics: dict[str, Topic], patterns: Iterable[str], exclude: Iterable[str] = ()) -> dict[str, Topic]:
    """The topics that match one of the globs and none of `exclude`, without internal topics, by name."""
    wanted, unwanted = tuple(patterns), tuple(exclude)
    return {
        name: topic
        for name, topic in sorted(topics.items())
        if name not in INTERNAL
        and any(fnmatchcase(name, pattern) for pattern in wanted)
        and not any(fnmatchcase(name, pattern) for pattern in unwanted)
    }


def from_starts(spark: SparkSession, raw: DataFrame, starts: Mapping[str, int]) -> DataFrame:
    """The records that a consumer can still read. starts: see source.log_starts; an archive holds older records too."""
    if not starts:
        return raw
    known = spark.createDataFrame(list(starts.items()), "log string, log_start long")
    found = raw.join(F.broadcast(known), "log", "left").where("log_start is null or offset >= log_start")
    return found.drop("log_start")


def uncommitted(raw: DataFrame) -> DataFrame:
    """The batches of aborted and open transactions: log, batch_base_offset, uncommitted (true)."""
    return (
        with_transaction_end(batches(raw.where("transactional")))
        .where("ended_as is null or ended_as != 'COMMIT'")
        .select("log", F.col("offset").alias("batch_base_offset"), F.lit(True).alias("uncommitted"))
    )


def marked(raw: DataFrame, left_out: DataFrame) -> DataFrame:
    """Records with `kept`: whether a read_committed consumer sees them at the end. raw: LOCATION_COLUMNS or RECORDS.

    Not kept: markers and the records of left_out, rows of `uncommitted`.
    """
    return raw.join(left_out, ["log", "batch_base_offset"], "left").select(
        "log",
        "topic",
        "partition",
        "offset",
        "batch_last_offset",
        F.coalesce(F.unix_millis("timestamp"), F.lit(NO_TIMESTAMP)).alias("timestamp_ms"),
        *(name for name in RECORDS if name not in LOCATION_COLUMNS and name in raw.columns),
        F.col("control").isNotNull().alias("marker"),
        (F.col("control").isNull() & F.col("uncommitted").isNull()).alias("kept"),
    )


def counts(records: DataFrame) -> DataFrame:
    """One row a log, from rows of `marked`: how many are kept and left out, and the first kept one of time 0."""
    return records.groupBy("log").agg(
        F.min("offset").alias("first_offset"),
        (F.max("batch_last_offset") + 1).alias("end_offset"),
        F.count_if("kept").alias("kept"),
        F.min(F.when(F.col("kept"), F.col("offset"))).alias("first_kept"),
        F.count_if("marker").alias("markers"),
        F.count_if(~F.col("kept") & ~F.col("marker")).alias("uncommitted"),
        F.min(F.when(F.col("kept") & (F.col("timestamp_ms") == 0), F.col("offset"))).alias("at_time_0"),
    )


def positions(
    offsets: DataFrame, records: DataFrame, topics: Iterable[str], as_of: datetime | None = None
) -> DataFrame:
    """The committed offset of every group, and the target_offset it maps to.

    offsets: rows of the view; records: rows of `marked`; topics: names; as_of: those of that time, else of now.
    """
    named = list(topics)
    current = (
        commits.latest(commits.effective(offsets), as_of)
        .where(F.col("topic").isin(named))
        .select(
            "group",
            F.concat("topic", F.lit("-"), "partition").alias("log"),
            "topic",
            "partition",
            "commit_offset",
            "metadata",
        )
    )
    marks = current.select("log", F.col("commit_offset").alias("offset")).distinct()
    numbered = counted_before(marks, records.where("kept").select("log", "offset")).select(
        "log", F.col("offset").alias("commit_offset"), F.col("before").alias("target_offset")
    )
    return current.join(numbered, ["log", "commit_offset"])


def elsewhere(offsets: DataFrame, topics: Iterable[str], as_of: datetime | None = None) -> DataFrame:
    """The committed offsets on other topics than these, one row a topic: topic, groups (their number)."""
    current = commits.latest(commits.effective(offsets), as_of).where(~F.col("topic").isin(list(topics)))
    return current.groupBy("topic").agg(F.countDistinct("group").alias("groups")).orderBy("topic")


def in_pieces(rows: DataFrame, most: int) -> Iterator[list[Row]]:
    """Rows of `positions` by group, topic and partition, a list of about `most` after the other.

    Spark sorts them into so many partitions and hands over one at a time, so that the driver never holds all.
    """
    order = ("`group`", "topic", "partition")
    found = rows.persist()
    pieces = max(1, -(-found.count() // most))
    kept: list[Row] = []
    for row in found.repartitionByRange(pieces, *order).sortWithinPartitions(*order).toLocalIterator():
        kept.append(row)
        if len(kept) == most:
            yield kept
            kept = []
    if kept:
        yield kept
    found.unpersist()


def counted_before(marks: DataFrame, records: DataFrame) -> DataFrame:
    """Marks with `before`: the number of records of the log below each. Both: rows of log, offset.

    Records are counted block by block, so that no task holds a whole log; one by one only in blocks that hold a mark.
    """
    asked = marks.withColumn("block", block_of())
    counted = records.withColumn("block", block_of())
    nothing = F.lit(0).cast("long")
    sizes = counted.groupBy("log", "block").agg(F.count(F.lit(1)).alias("size"))
    sizes = sizes.unionByName(asked.select("log", "block", nothing.alias("size")).distinct())
    earlier = Window.partitionBy("log").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    blocks = (
        sizes.groupBy("log", "block")
        .agg(F.sum("size").alias("size"))
        .withColumn("earlier", F.coalesce(F.sum("size").over(earlier), nothing))
        .drop("size")
    )
    near = counted.join(asked.select("log", "block").distinct(), ["log", "block"], "left_semi")
    both = asked.withColumn("one", nothing).unionByName(near.withColumn("one", F.lit(1).cast("long")))
    inside = Window.partitionBy("log", "block").orderBy("offset", "one")
    found = both.withColumn("inside", F.sum("one").over(inside.rowsBetween(Window.unboundedPreceding, 0)))
    return (
        found.where("one = 0")
        .join(blocks, ["log", "block"])
        .select("log", "offset", (F.col("earlier") + F.col("inside")).alias("before"))
    )


def in_order(records: DataFrame, logs: int) -> RDD[Row]:
    """The kept records as an RDD: each log whole in one partition, in the order of offsets. logs: their number."""
    columns = ("log", "topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")
    rows = records.where("kept").select(*columns)
    return rows.repartition(max(1, logs), "log").sortWithinPartitions("log", "offset").rdd
