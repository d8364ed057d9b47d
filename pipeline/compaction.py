"""Live and dead bytes of each segment of a compacted log, and what a cleaning would win: DataFrame to DataFrame.

A record is dead when a later one has its key, when its transaction was aborted, or when a compacted log has no use for
it: no key. What an open transaction has written is live and makes nothing dead yet. A tombstone stays until its time
is over; markers are counted apart. Bytes are those of the log: a batch's are shared out among its records by their
size, so compressed batches count as compressed; its header belongs to the records that stay, if any do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.commits import with_end
from protocol.record_batch import HEADER_BYTES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STAYS: Final = ("live", "tombstone", "marker")
DEAD: Final = ("superseded", "aborted", "keyless")


def keyed(rows: DataFrame) -> DataFrame:
    """The view `raw` or `offsets`, reduced to what compaction looks at, with the record's key as `_key`."""
    if "key" in rows.columns:
        key, tombstone = F.col("key"), F.col("value").isNull()
    else:
        commit = F.struct("group", "commit_topic", "commit_partition")
        key = F.when(F.col("kind").isNotNull(), F.to_json(F.struct("key_version", "key_json", commit.alias("commit"))))
        key, tombstone = key.cast("binary"), F.col("tombstone")
    return rows.select(
        "log", "topic", "partition", "segment", "offset", "timestamp", "batch_base_offset", "batch_size",
        "record_size", "producer_id", "transactional", "control", key.alias("_key"), tombstone.alias("_tombstone"),
    )  # fmt: skip


def fates(rows: DataFrame) -> DataFrame:
    """Each record of `keyed` with `fate` (live, tombstone, superseded, aborted, keyless, marker) and its `bytes`."""
    producers = with_end(rows.where(F.col("producer_id") >= 0))
    others = rows.where(F.col("producer_id") < 0).withColumns({
        "end": F.lit(None).cast("string"),
        "end_offset": F.lit(None).cast("long"),
        "end_timestamp": F.lit(None).cast("timestamp"),
    })  # fmt: skip
    ended = others.unionByName(producers)
    aborted = F.col("transactional") & F.col("end").eqNullSafe("ABORT")
    decided = ~F.col("transactional") | F.col("end").eqNullSafe("COMMIT")
    counts = F.col("control").isNull() & decided & F.col("_key").isNotNull()
    by_key = Window.partitionBy("log", F.when(counts, F.col("_key")))
    last = F.max(F.when(counts, F.col("offset"))).over(by_key)
    fate = (
        F.when(F.col("control").isNotNull(), "marker")
        .when(aborted, "aborted")
        .when(F.col("_key").isNull(), "keyless")
        .when(counts & (F.col("offset") < last), "superseded")
        .when(F.col("_tombstone"), "tombstone")
        .otherwise("live")
    )
    batch = Window.partitionBy("log", "segment", "batch_base_offset")
    share = F.col("record_size") / F.sum("record_size").over(batch)
    stays = F.col("fate").isin(*STAYS)
    stay = F.count_if(stays).over(batch)
    of_header = F.when(stay == 0, HEADER_BYTES / F.count(F.lit(1)).over(batch)).when(stays, HEADER_BYTES / stay)
    size = (F.col("batch_size") - HEADER_BYTES) * share + F.coalesce(of_header, F.lit(0))
    return ended.withColumn("fate", fate).withColumn("bytes", size)


def segments(records: DataFrame) -> DataFrame:
    """One row a segment: its records and bytes by fate, and whether a cleaning may touch it at all.

    `won_bytes`: what a cleaning would give back now: what is dead in segments that are no longer written to.
    """

    def size(*fates: str) -> Column:
        return F.round(F.sum(F.when(F.col("fate").isin(*fates), F.col("bytes")).otherwise(0))).cast("long")

    def number(*fates: str) -> Column:
        return F.count_if(F.col("fate").isin(*fates))

    found = records.groupBy("log", "topic", "partition", "segment").agg(
        F.count(F.lit(1)).alias("records"),
        number(*DEAD).alias("dead_records"),
        F.round(F.sum("bytes")).cast("long").alias("bytes"),
        size("live").alias("live_bytes"),
        size("tombstone").alias("tombstone_bytes"),
        size("marker").alias("marker_bytes"),
        size(*DEAD).alias("dead_bytes"),
        size("aborted").alias("aborted_bytes"),
    )
    active = F.max("segment").over(Window.partitionBy("log")) == F.col("segment")
    return found.withColumn("active", active).withColumn(
        "won_bytes", F.when(F.col("active"), F.lit(0).cast("long")).otherwise(F.col("dead_bytes"))
    )
