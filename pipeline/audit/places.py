"""Where things lie in the logs, and what is missing there: batches, gaps, and how much of a log was read at all.

A finding is made only if nothing that is missing could explain it. So every row carries `lost_before`: how many offsets
of its log, below its own, no row covers. Between two rows of a log nothing is missing when the two numbers are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEQUENCES: Final = 2**31  # they wrap to 0
DATA_KINDS: Final = ("COMMIT", "ABORT")


def batches(raw: DataFrame) -> DataFrame:
    """One row a record batch, however many of its records are left."""
    into = F.col("offset") - F.col("batch_base_offset")
    base = F.when(F.col("sequence") >= 0, F.pmod(F.col("sequence") - into, F.lit(SEQUENCES)))
    same = ("topic", "partition", "position", "producer_id", "producer_epoch", "transactional", "control")
    made = raw.groupBy("log", "segment", "batch_base_offset", "batch_last_offset").agg(
        *(F.first(name).alias(name) for name in (*same, "coordinator_epoch", "batch_records")),
        F.min(base).alias("base_sequence"),
        F.max("timestamp").alias("timestamp"),
        F.count(F.lit(1)).alias("read_records"),
    )
    return with_lost(
        made.withColumnRenamed("batch_base_offset", "offset").withColumnRenamed("batch_last_offset", "last_offset"),
        F.col("last_offset") - F.col("offset") + 1,
    )


def with_lost(rows: DataFrame, span: Column | None = None) -> DataFrame:
    """Rows of logs with `lost_before`; a row covers `span` offsets, from `offset` on.

    Summed up by segment, then over segments: no task ever has to hold a whole log.
    """
    one = F.lit(1).cast("bigint") if span is None else span
    before = Window.partitionBy("log", "segment").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    segments = (
        rows.groupBy("log", "segment")
        .agg(F.sum(one).alias("covered"))
        .withColumn(
            "covered_before",
            F.coalesce(
                F.sum("covered").over(
                    Window.partitionBy("log").orderBy("segment").rowsBetween(Window.unboundedPreceding, -1)
                ),
                F.lit(0),
            ),
        )
        .drop("covered")
    )
    inside = F.coalesce(F.sum(one).over(before), F.lit(0))
    return (
        rows.withColumn("inside", inside)
        .join(F.broadcast(segments), ["log", "segment"])
        .withColumn("lost_before", F.col("offset") - F.col("covered_before") - F.col("inside"))
        .drop("inside", "covered_before")
    )


def logs(found: DataFrame) -> DataFrame:
    """One row a log of `batches`: where it begins and ends, its first time, and how many offsets no batch covers."""
    last = F.max(F.struct("offset", "last_offset", "lost_before"))
    return found.groupBy("log").agg(
        F.first("topic").alias("topic"),
        F.min("offset").alias("start_offset"),
        (F.max("last_offset") + 1).alias("end_offset"),
        F.min("timestamp").alias("first_timestamp"),
        last["lost_before"].alias("log_lost"),
        F.sum(F.col("last_offset") - F.col("offset") + 1 - F.col("batch_records")).alias("lost_in_batches"),
        F.sum(F.col("read_records")).alias("records"),
        F.count(F.lit(1)).alias("batches"),
    )


def coverage(found: DataFrame) -> DataFrame:
    """What of each log was not there to be audited: before its start, and in gaps since.

    Gaps are what the cleaner removed, or an archive that came too late: a log alone does not tell which.
    """
    before = Window.partitionBy("log", "segment").orderBy("offset")
    edges = found.groupBy("log", "segment").agg(F.min("offset").alias("first"), F.max("last_offset").alias("last"))
    joints = edges.select(
        "log",
        (F.lag("last").over(Window.partitionBy("log").orderBy("segment")) + 1).alias("gap_first"),
        (F.col("first") - 1).alias("gap_last"),
    )
    inner = found.select(
        "log", (F.lag("last_offset").over(before) + 1).alias("gap_first"), (F.col("offset") - 1).alias("gap_last")
    )
    gaps = (
        joints.unionByName(inner)
        .where("gap_first <= gap_last")
        .groupBy("log")
        .agg(
            F.count(F.lit(1)).alias("gaps"),
            F.min(F.struct("gap_first", "gap_last")).alias("first_gap"),
        )
    )
    return (
        logs(found)
        .join(gaps, "log", "left")
        .select(
            "log",
            "topic",
            "start_offset",
            "end_offset",
            "batches",
            "records",
            (F.col("log_lost") - F.col("start_offset") + F.col("lost_in_batches")).alias("missing_inside"),
            F.coalesce("gaps", F.lit(0)).cast("bigint").alias("gaps"),
            F.col("first_gap.gap_first").alias("first_gap_from"),
            F.col("first_gap.gap_last").alias("first_gap_to"),
            ((F.col("log_lost") == 0) & (F.col("lost_in_batches") == 0)).alias("complete"),
        )
    )
