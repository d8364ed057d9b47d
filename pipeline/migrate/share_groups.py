"""Where share groups are, by `__share_group_state`: the start offset of each partition, and what is done beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.audit.share_states import partition_key
from pipeline.audit.shares import STATE_TOPIC
from pipeline.decode.records import uuid_text
from pipeline.engine import F, Window
from pipeline.migrate import plan
from pipeline.report.share_progress import progress_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from pipeline.migrate.plan import Topic

COLUMNS: Final = ("log", "offset", "timestamp", "control", "key", "value")
_PLACE: Final = "struct<group: string, topic_id: string, partition: int>"
_STATE: Final = "struct<group: string, topic_id: string, partition: int, start: bigint, done: bigint>"


def share_positions(
    spark: SparkSession, path: str, records: DataFrame, topics: Iterable[Topic], as_of: datetime | None = None
) -> DataFrame | None:
    """The start offset of each share group and partition of these topics, and the target_offset that it maps to.

    records: rows of plan.marked. as_of: at that time, else now. None: there are no share groups.

    Shape:   group, log, topic, partition, start_offset, done (records beyond it that are done), target_offset.
    """
    rows = tables.raw(spark, path, STATE_TOPIC, COLUMNS).where("control is null and key is not null")
    if as_of is not None:
        rows = rows.where(F.col("timestamp") <= F.lit(as_of))
    place = F.udf(_place_of, _PLACE, useArrow=False)("key").alias("place")
    state = F.udf(progress_of, _STATE, useArrow=False)("key", "value").alias("state")
    found = rows.select("log", "offset", F.col("value").isNull().alias("is_gone"), place, state)
    found = found.where("place is not null").select("log", "offset", "is_gone", "place.*", "state.start", "state.done")
    found = found.localCheckpoint()
    names = [(uuid_text(each.topic_id), each.name) for each in topics]
    if found.isEmpty() or not names:
        return None
    key = ("log", "`group`", "topic_id", "partition")
    gone = F.max(F.when(F.col("is_gone"), F.col("offset"))).over(Window.partitionBy(*key))
    # An update may leave the start as it is: -1.
    start, is_set = F.col("start"), F.col("start") >= 0
    now = (
        found.withColumn("gone", F.coalesce(gone, F.lit(-1)))
        .where("offset > gone")
        .groupBy(*key)
        .agg(
            F.max_by(F.when(is_set, start), F.when(is_set, F.col("offset"))).alias("start_offset"),
            F.greatest(F.max_by("done", "offset"), F.lit(0)).alias("done"),
        )
        .where("start_offset is not null")
    )
    known = spark.createDataFrame(names, "topic_id string, topic string")
    current = now.drop("log").join(F.broadcast(known), "topic_id").drop("topic_id")
    current = current.withColumn("log", F.concat("topic", F.lit("-"), "partition")).localCheckpoint()
    marks = current.select("log", F.col("start_offset").alias("offset")).distinct()
    numbered = plan.counted_before(marks, records.where("kept").select("log", "offset")).select(
        "log", F.col("offset").alias("start_offset"), F.col("before").alias("target_offset")
    )
    return current.join(numbered, ["log", "start_offset"]).orderBy("group", "topic", "partition")


def _place_of(key: bytes) -> tuple[str, str, int] | None:
    place = partition_key(bytes(key))
    return None if place is None else (place.group, uuid_text(place.topic_id), place.partition)
