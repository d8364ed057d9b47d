"""How far share groups are: their positions by `__share_group_state`, as rows that lag over time is made of.

A share group commits no offsets. Its coordinator stores for each partition the start offset, below which all records
are done, and how many beyond it are done already (KIP-932, KIP-1226): the difference to the log's end is Kafka's lag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline import tables
from pipeline.audit.share_states import SNAPSHOT, partition_key
from pipeline.audit.shares import STATE_TOPIC
from pipeline.decode.records import uuid_text
from pipeline.engine import F, Window
from protocol.codegen import codec
from protocol.errors import KafkaError, MalformedError
from protocol.messages.share_state_records import ShareSnapshotValue, ShareUpdateValue

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = ("log", "offset", "timestamp", "control", "key", "value")  # of the view `raw`
NAMES: Final = ("kind", "tombstone", "value_json")  # of the view `offsets`: topics by their ids
_PROGRESS: Final = "struct<group: string, topic_id: string, partition: int, start: bigint, done: bigint>"
_TOPICS: Final = "array<struct<topicId: string, topicName: string>>"


def share_changes(spark: SparkSession, path: str) -> DataFrame | None:
    """The positions of share groups, one row a change; None: there are none.

    Shape:  columns of pipeline.transforms.commits.effective that `lag` needs; commit_offset: start offset + done.
    """
    records = tables.raw(spark, path, STATE_TOPIC, COLUMNS).where("control is null and key is not null")
    progress = F.udf(progress_of, _PROGRESS, useArrow=False)("key", "value").alias("progress")
    found = records.select("log", "offset", "timestamp", progress).where("progress is not null").localCheckpoint()
    if found.isEmpty():
        return None
    before = Window.partitionBy("log", "group", "topic_id", "partition").orderBy("offset")
    start = F.when(F.col("start") >= 0, F.col("start"))  # an update may leave it as it is: -1
    rows = found.select("log", "offset", "timestamp", "progress.*").withColumn(
        "start", F.last(start, ignorenulls=True).over(before.rowsBetween(Window.unboundedPreceding, 0))
    )
    return (
        rows.where("start is not null")
        .join(_topic_names(tables.offsets(spark, path, NAMES)), "topic_id")
        .select(
            "group",
            "topic",
            "partition",
            (F.col("start") + F.greatest("done", F.lit(0))).alias("commit_offset"),
            F.lit(False).alias("removed"),
            F.col("timestamp").alias("effective_at"),
            F.col("offset").alias("log_offset"),
        )
    )


def progress_of(key: bytes, value: bytes | None) -> tuple[str, str, int, int, int] | None:
    """(group, topic id, partition, start offset, records done beyond it) of a record; None: deleted, or not known."""
    place = partition_key(bytes(key))
    if place is None or value is None:
        return None
    cls: type[Any] = ShareSnapshotValue if int.from_bytes(key[:2], "big") == SNAPSHOT else ShareUpdateValue
    raw = bytes(value)
    try:
        found = codec(cls, int.from_bytes(raw[:2], "big")).decode(raw, 2)[0]
    except (KafkaError, MalformedError, ValueError):
        return None
    return place.group, uuid_text(place.topic_id), place.partition, found.start_offset, found.delivery_complete_count


def _topic_names(offsets: DataFrame) -> DataFrame:
    """topic_id, topic: of the topics that share groups read."""
    kind = f"initializingTopics {_TOPICS}, initializedTopics {_TOPICS}"
    return (
        offsets.where("kind = 'ShareGroupStatePartitionMetadata' and not tombstone")
        .select(F.from_json("value_json", kind).alias("topics"))
        .select(F.explode(F.concat("topics.initializingTopics", "topics.initializedTopics")).alias("each"))
        .select(F.col("each.topicId").alias("topic_id"), F.col("each.topicName").alias("topic"))
        .distinct()
    )
