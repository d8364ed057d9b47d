"""Which offsets of logs are missing, as ranges, and why. The archive's coverage and the audit share these functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engine import F, Window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

# Offsets are ordered block by block, so that no task holds a whole log. Segments would not do as blocks: an archive has
# rows of the same segment from before and after it was merged with others.
BLOCK_OFFSETS: Final = 1 << 20
REMOVED, BEFORE, UNWAITED, ABSENT = "removed", "before", "unwaited", "absent"
CLEANED, DELETED, HOLE = "cleaned", "deleted", "hole"  # of a directory whose cleaner says which logs it cleaned


def block_of(offset: str | Column = "offset") -> Column:
    """The number of the block that holds an offset."""
    value = F.col(offset) if isinstance(offset, str) else offset
    return F.floor(value / F.lit(BLOCK_OFFSETS))


def with_expected(spans: DataFrame) -> DataFrame:
    """Spans with `expected`, the end of all spans before it in the log, or 0.

    spans: rows with log, offset, last_offset (inclusive). offset > expected means that offsets are missing between.
    """
    before = Window.partitionBy("log", "block").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    blocks_before = Window.partitionBy("log").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    reach = F.max(F.col("last_offset") + 1)
    rows = spans.withColumn("block", block_of())
    blocks = (
        rows.groupBy("log", "block")
        .agg(reach.alias("reach"))
        .withColumn("reached", F.coalesce(F.max("reach").over(blocks_before), F.lit(0)))
        .drop("reach")
    )
    return (
        rows.withColumn("inside", reach.over(before))
        .join(F.broadcast(blocks), ["log", "block"])
        .withColumn("expected", F.greatest("inside", "reached"))
        .drop("block", "inside", "reached")
    )


def with_next(rows: DataFrame, column: str, name: str) -> DataFrame:
    """Rows with `name`: the value of a column in the next row of its log, by offset; null in a log's last row."""
    inside = Window.partitionBy("log", "block").orderBy("offset")
    numbered = rows.withColumn("block", block_of())
    first = F.min_by(F.struct(F.col(column).alias("value")), F.col("offset"))
    after = F.lead("first").over(Window.partitionBy("log").orderBy("block"))
    blocks = numbered.groupBy("log", "block").agg(first.alias("first")).select("log", "block", after.alias("after"))
    return (
        numbered.withColumn("inside", F.lead(F.struct(F.col(column).alias("value"))).over(inside))
        .join(blocks, ["log", "block"])
        .withColumn(name, F.coalesce("inside", "after").getField("value"))
        .drop("block", "inside", "after")
    )


def missing_ranges(spans: DataFrame) -> DataFrame:
    """The missing ranges before and between the spans: log, topic, partition, from_offset, to_offset (exclusive)."""
    return (
        with_expected(spans)
        .where("offset > expected")
        .select("log", "topic", "partition", F.col("expected").alias("from_offset"), F.col("offset").alias("to_offset"))
    )


def present_and_missing_ranges(spans: DataFrame) -> DataFrame:
    """All ranges up to the last span, missing and present ones, with a column `missing`; else as missing_ranges."""
    missing = missing_ranges(spans)
    place = ("log", "topic", "partition")
    ends = spans.groupBy(*place).agg((F.max("last_offset") + 1).alias("end"))
    zero = F.lit(0).cast("bigint")
    borders = missing.unionByName(ends.select(*place, zero.alias("from_offset"), zero.alias("to_offset")))
    following = F.lead("from_offset").over(Window.partitionBy("log").orderBy("to_offset", "from_offset"))
    present = (
        borders.withColumn("following", following)
        .join(ends, list(place))
        .select(*place, F.col("to_offset").alias("from_offset"), F.coalesce("following", "end").alias("to_offset"))
        .where("from_offset < to_offset")
    )
    return missing.withColumn("missing", F.lit(True)).unionByName(present.withColumn("missing", F.lit(False)))


def missing_reason(rows: DataFrame, began: Mapping[str, int] | None) -> tuple[DataFrame, Column]:
    """(rows, a column over them that says why the offsets from `from_offset` on are missing).

    rows: with log and from_offset. began: tables.archive_start_offsets of an archive; None: it is a data directory.
    """
    if began is None:
        return rows, F.lit(REMOVED)
    starts = rows.sparkSession.createDataFrame(list(began.items()), "log string, began long")
    is_before = F.col("from_offset") < F.col("began")
    return rows.join(F.broadcast(starts), "log", "left"), F.when(is_before, BEFORE).otherwise(UNWAITED)
