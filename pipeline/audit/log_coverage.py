"""What of the logs is there to be audited: batches, gaps, and how many offsets are missing before each row.

A finding is reported only if no missing record could explain it. So every row has `lost_before`: the number of offsets
of its log, below its own, that no row covers. Between two rows of a log nothing is missing if both numbers are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engine import F, Window
from pipeline.transforms.missing_offsets import (
    ABSENT,
    CLEANED,
    DELETED,
    HOLE,
    REMOVED,
    block_of,
    missing_ranges,
    missing_reason,
    with_expected,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import Column, DataFrame

SEQUENCES: Final = 2**31  # sequences wrap to 0 here
# The columns that `batches` needs of the view `raw`.
BATCH_COLUMNS: Final = (
    "log", "topic", "partition", "topic_id", "segment", "batch_base_offset", "batch_last_offset", "batch_records",
    "offset", "timestamp", "timestamp_type", "leader_epoch", "producer_id", "producer_epoch", "sequence",
    "transactional", "control",
)  # fmt: skip  # several to a line


# What the row of a log's end says beside its place: no check takes it for a batch.
_END: Final = {"producer_id": -1, "transactional": False, "control": "END"}


def batches(raw: DataFrame, before: DataFrame | None = None, ends: DataFrame | None = None) -> DataFrame:
    """One row a record batch of which any record is left, with lost_before. before: see with_lost_before.

    read_records is the number of records that are left, batch_records that in the batch's header. ends: as in audit;
    one more row, without records, marks the end of each log there. raw is read once.
    """
    into = F.col("offset") - F.col("batch_base_offset")
    base = F.when(F.col("sequence") >= 0, F.pmod(F.col("sequence") - into, F.lit(SEQUENCES)))
    same = (
        "topic", "partition", "topic_id", "timestamp_type", "leader_epoch", "batch_records", "producer_id",
        "producer_epoch", "transactional", "control",
    )  # fmt: skip  # several to a line
    made = raw.groupBy("log", "segment", "batch_base_offset", "batch_last_offset").agg(
        *(F.first(name).alias(name) for name in same),
        F.min(base).alias("base_sequence"),
        F.max("timestamp").alias("timestamp"),
        F.count(F.lit(1)).alias("read_records"),
    )
    found = (
        made.withColumnRenamed("batch_base_offset", "offset")
        .withColumnRenamed("batch_last_offset", "last_offset")
        .localCheckpoint()  # with_lost_before reads it twice
    )
    if ends is not None:
        place = ("log", "topic", "partition", F.col("end").alias("offset"), (F.col("end") - 1).alias("last_offset"))
        found = found.unionByName(
            ends.select(*place, *(F.lit(value).alias(name) for name, value in _END.items())), True
        )
    return with_lost_before(found, F.col("last_offset") - F.col("offset") + 1, before)


def with_end_rows(rows: DataFrame, ends: DataFrame) -> DataFrame:
    """Rows of a view, and one at the end of each log, whose other columns are null."""
    return rows.unionByName(ends.select("log", F.col("end").alias("offset")), allowMissingColumns=True)


def with_lost_before(rows: DataFrame, span: Column | None = None, before: DataFrame | None = None) -> DataFrame:
    """Rows with `lost_before`; a row covers `span` offsets from its `offset` on, by default one.

    before: rows of log, covered: the number of offsets that earlier rows, which come before all of these, have covered.
    Summed block by block, then over the blocks, so that no task holds a whole log.
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
    """One row a log, from rows of `batches`: its first and end offset, first timestamp, missing offsets (log_lost)."""
    last = F.max(F.struct("offset", "last_offset", "lost_before"))
    return found.groupBy("log").agg(
        F.first("topic").alias("topic"),
        F.max("topic_id").alias("topic_id"),
        F.max(F.when(F.col("read_records").isNotNull(), F.col("offset"))).alias("last_batch"),
        F.min("offset").alias("start_offset"),
        (F.max("last_offset") + 1).alias("end_offset"),
        F.min("timestamp").alias("first_timestamp"),
        last["lost_before"].alias("log_lost"),
        F.sum(F.col("read_records")).alias("records"),
        F.count("read_records").alias("batches"),
    )


def merge_summaries(one: DataFrame, other: DataFrame) -> DataFrame:
    """The log_summaries of logs from those of an earlier and a later part of them."""
    return (
        one.unionByName(other)
        .groupBy("log")
        .agg(
            F.first("topic").alias("topic"),
            F.max_by("topic_id", "end_offset").alias("topic_id"),
            F.max("last_batch").alias("last_batch"),
            F.min("start_offset").alias("start_offset"),
            F.max("end_offset").alias("end_offset"),
            F.min("first_timestamp").alias("first_timestamp"),
            F.max_by("log_lost", "end_offset").alias("log_lost"),
            F.sum("records").alias("records"),
            F.sum("batches").alias("batches"),
        )
    )


def recreated_logs(found: DataFrame) -> DataFrame:
    """The logs (column `log`) that have offsets twice.

    An archive has such logs when a topic was deleted and created again; the rows do not tell the two topics apart.
    """
    twice = with_expected(found).where("offset < expected").select("log")
    return twice.unionByName(found.where("read_records > batch_records").select("log")).distinct()


def log_gaps(
    found: DataFrame, spans: DataFrame, began: Mapping[str, int] | None, cleaned: Collection[str] | None = None
) -> DataFrame:
    """The ranges of missing offsets: log, from_offset, to_offset (exclusive), missing (their number), reason.

    A range from the first to the last offset of a batch has `missing` of its records missing. found: rows of `batches`;
    spans: rows that cover offset to last_offset, `found` or more. began: see missing_reason. cleaned: the logs that the
    cleaner has been at, where they are known.
    """
    span = F.col("last_offset") + 1 - F.col("offset")
    between = missing_ranges(spans).withColumn("missing", F.col("to_offset") - F.col("from_offset"))
    within = found.where(span > F.col("read_records")).select(
        "log",
        F.col("offset").alias("from_offset"),
        (F.col("last_offset") + 1).alias("to_offset"),
        (span - F.col("read_records")).alias("missing"),
    )
    ranges = between.drop("topic", "partition").unionByName(within)
    known, why = missing_reason(ranges, began)
    if began is None and cleaned is not None:
        is_cleaned, is_front = F.col("log").isin(*cleaned), F.col("from_offset") == 0
        why = (
            F.when(is_cleaned, F.when(is_front, F.lit(REMOVED)).otherwise(F.lit(CLEANED)))
            .when(is_front, F.lit(DELETED))
            .otherwise(F.lit(HOLE))
        )
    return known.select("log", "from_offset", "to_offset", "missing", why.alias("reason"))


def absent_logs(found: DataFrame, expected: DataFrame) -> DataFrame:
    """log_gaps for logs that rows of `expected` name in `log` but that are not there at all."""
    nothing = F.lit(None).cast("bigint")
    none_of_it = expected.select("log").distinct().join(found.select("log").distinct(), "log", "left_anti")
    ranges = [nothing.alias(name) for name in ("from_offset", "to_offset", "missing")]
    return none_of_it.select("log", *ranges, F.lit(ABSENT).alias("reason"))


def coverage(known: DataFrame, missing: DataFrame, twice: DataFrame) -> DataFrame:
    """The output table `coverage`: one row a log.

    known: rows of log_summaries; missing: of log_gaps; twice: of recreated_logs.
    """
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
    """Rows whose position is before the end of its log in limits (rows of at, end), or whose log has no row there."""
    is_beyond = (F.col(log) == F.col("at")) & (F.col(offset) >= F.col("end"))
    return rows.join(F.broadcast(limits), is_beyond, "left_anti")
