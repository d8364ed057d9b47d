"""Where things lie in the logs, and what is missing there: batches, gaps, and how much of a log was read at all.

A finding is made only if nothing that is missing could explain it. So every row carries `lost_before`: how many offsets
of its log, below its own, no row covers. Between two rows of a log nothing is missing when the two numbers are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.transforms.missing_offsets import ABSENT, block_of, missing_ranges, missing_reason, with_expected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

SEQUENCES: Final = 2**31  # they wrap to 0
# What `batches` looks at of the view `raw`.
BATCH_COLUMNS: Final = (
    "log", "topic", "partition", "segment", "batch_base_offset", "batch_last_offset", "batch_records", "offset",
    "timestamp", "producer_id", "producer_epoch", "sequence", "transactional", "control",
)  # fmt: skip


def batches(raw: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """One row a record batch, however many of its records are left. `before`: see with_lost_before."""
    into = F.col("offset") - F.col("batch_base_offset")
    base = F.when(F.col("sequence") >= 0, F.pmod(F.col("sequence") - into, F.lit(SEQUENCES)))
    same = ("topic", "partition", "batch_records", "producer_id", "producer_epoch", "transactional", "control")
    made = raw.groupBy("log", "segment", "batch_base_offset", "batch_last_offset").agg(
        *(F.first(name).alias(name) for name in same),
        F.min(base).alias("base_sequence"),
        F.max("timestamp").alias("timestamp"),
        F.count(F.lit(1)).alias("read_records"),
    )
    return with_lost_before(
        made.withColumnRenamed("batch_base_offset", "offset").withColumnRenamed("batch_last_offset", "last_offset"),
        F.col("last_offset") - F.col("offset") + 1,
        before,
    )


def with_lost_before(rows: DataFrame, span: Column | None = None, before: DataFrame | None = None) -> DataFrame:
    """Rows of logs with `lost_before`; a row covers `span` offsets, from `offset` on.

    before: log, covered: how many offsets rows have covered that came before all of these.
    Summed up by runs of offsets, then over these: no task ever has to hold a whole log.
    """
    one = F.lit(1).cast("bigint") if span is None else span
    in_block = Window.partitionBy("log", "block").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    blocks_before = Window.partitionBy("log").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    rows = rows.withColumn("block", block_of())
    blocks = (
        rows.groupBy("log", "block")
        .agg(F.sum(one).alias("covered"))
        .withColumn("covered_before", F.coalesce(F.sum("covered").over(blocks_before), F.lit(0)))
        .drop("covered")
    )
    if before is not None:
        earlier = F.col("covered_before") + F.coalesce("covered", F.lit(0))
        blocks = blocks.join(F.broadcast(before), "log", "left").withColumn("covered_before", earlier).drop("covered")
    inside = F.coalesce(F.sum(one).over(in_block), F.lit(0))
    return (
        rows.withColumn("inside", inside)
        .join(F.broadcast(blocks), ["log", "block"])
        .withColumn("lost_before", F.col("offset") - F.col("covered_before") - F.col("inside"))
        .drop("block", "inside", "covered_before")
    )


def log_summaries(found: DataFrame) -> DataFrame:
    """One row a log of `batches`: where it begins and ends, its first time, and how many offsets no batch covers."""
    last = F.max(F.struct("offset", "last_offset", "lost_before"))
    return found.groupBy("log").agg(
        F.first("topic").alias("topic"),
        F.min("offset").alias("start_offset"),
        (F.max("last_offset") + 1).alias("end_offset"),
        F.min("timestamp").alias("first_timestamp"),
        last["lost_before"].alias("log_lost"),
        F.sum(F.col("read_records")).alias("records"),
        F.count(F.lit(1)).alias("batches"),
    )


def merge_summaries(one: DataFrame, other: DataFrame) -> DataFrame:
    """Rows of `logs` of two parts of the same logs as those of the whole."""
    return (
        one.unionByName(other)
        .groupBy("log")
        .agg(
            F.first("topic").alias("topic"),
            F.min("start_offset").alias("start_offset"),
            F.max("end_offset").alias("end_offset"),
            F.min("first_timestamp").alias("first_timestamp"),
            F.max_by("log_lost", "end_offset").alias("log_lost"),
            F.sum("records").alias("records"),
            F.sum("batches").alias("batches"),
        )
    )


def recreated_logs(found: DataFrame) -> DataFrame:
    """Logs of which offsets are there twice: `log`.

    An archive has them when a topic was deleted and made again; which rows belong together, nothing in them tells.
    """
    twice = with_expected(found).where("offset < expected").select("log")
    return twice.unionByName(found.where("read_records > batch_records").select("log")).distinct()


def log_gaps(found: DataFrame, spans: DataFrame, began: Mapping[str, int] | None) -> DataFrame:
    """Ranges of offsets that were not there to be audited: log, from_offset, to_offset (exclusive), missing, reason.

    Of a range from the first to the last offset of a batch some records are there. `spans`: what is there between
    ranges, `found` or more than it.
    """
    span = F.col("last_offset") + 1 - F.col("offset")
    between = missing_ranges(spans).withColumn("missing", F.col("to_offset") - F.col("from_offset"))
    within = found.where(span > F.col("read_records")).select(
        "log",
        F.col("offset").alias("from_offset"),
        (F.col("last_offset") + 1).alias("to_offset"),
        (span - F.col("read_records")).alias("missing"),
    )
    known, why = missing_reason(between.drop("topic", "partition").unionByName(within), began)
    return known.select("log", "from_offset", "to_offset", "missing", why.alias("reason"))


def absent_logs(found: DataFrame, expected: DataFrame) -> DataFrame:
    """The same for logs that transactions name (rows of `expected` with log) and of which there is nothing."""
    nothing = F.lit(None).cast("bigint")
    none_of_it = expected.select("log").distinct().join(found.select("log").distinct(), "log", "left_anti")
    ranges = [nothing.alias(name) for name in ("from_offset", "to_offset", "missing")]
    return none_of_it.select("log", *ranges, F.lit(ABSENT).alias("reason"))


def coverage(known: DataFrame, missing: DataFrame, twice: DataFrame) -> DataFrame:
    """What of each log was there to be audited. Rows of `logs`, `lacking` and `renewed`."""
    since = F.col("from_offset") >= F.col("start_offset")
    counted = (
        missing.join(known.select("log", "start_offset"), "log")
        .groupBy("log")
        .agg(F.sum(F.when(since, F.col("missing"))).alias("missing_inside"), F.count_if(since).alias("gaps"))
    )
    return (
        known.join(counted, "log", "left")
        .join(twice.withColumn("renewed", F.lit(True)), "log", "left")
        .select(
            "log",
            "topic",
            "start_offset",
            "end_offset",
            "batches",
            "records",
            F.coalesce("missing_inside", F.lit(0)).cast("bigint").alias("missing_inside"),
            F.coalesce("gaps", F.lit(0)).cast("bigint").alias("gaps"),
            F.coalesce("renewed", F.lit(False)).alias("renewed"),
            (F.col("gaps").isNull() & F.col("renewed").isNull()).alias("complete"),
        )
    )


def before_ends(rows: DataFrame, limits: DataFrame, log: str = "log", offset: str = "offset") -> DataFrame:
    """Rows whose place lies before the end of its log in `limits` (at, end); a log without one has no more to come."""
    is_beyond = (F.col(log) == F.col("at")) & (F.col(offset) >= F.col("end"))
    return rows.join(F.broadcast(limits), is_beyond, "left_anti")
