"""Live and dead bytes of each segment of a compacted log, and what a cleaning would win: DataFrame to DataFrame.

A record is dead when a later one has its key, when its transaction was aborted, or when a compacted log has no use for
it: no key. What an open transaction has written is live and makes nothing dead yet. A tombstone stays until its time
is over; markers are counted apart. Bytes are those of the log: a batch's are shared out among its records by their
size, so compressed batches count as compressed; its header belongs to the records that stay, if any do.

What later records may still change is small: the newest record of every key and what open transactions have written.
`summary` keeps those, and the figures of all others, so that parts of a log can be looked at one after another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.transforms.commits import MARKERS, with_ending_marker
from protocol.record_batch import HEADER_BYTES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    Tables = dict[str, DataFrame]

_PLACED: Final = (
    "log", "topic", "partition", "segment", "offset", "timestamp", "batch_base_offset", "batch_size", "record_size",
    "producer_id", "transactional", "control",
)  # fmt: skip
_KEYED: Final = (*_PLACED, "kind", "tombstone", "key_version", "key_json")
# What is looked at of each view.
COLUMNS: Final = {
    "raw": (*_PLACED, "key", "value"),
    "offsets": (*_KEYED, "group", "commit_topic", "commit_partition"),
    "transactions": (*_KEYED, "transactional_id"),
}
SEGMENT_KEY: Final = ("log", "topic", "partition", "segment")
BATCH: Final = (*SEGMENT_KEY, "batch_base_offset", "batch_size")
STAYING_FATES: Final = ("live", "tombstone", "marker")
DEAD_FATES: Final = ("superseded", "aborted", "keyless")
UNITS: Final = 1 << 20  # of a byte: sums of whole numbers are the same in every order


def with_record_key(rows: DataFrame, *others: str) -> DataFrame:
    """The view `raw` or `offsets`, reduced to what compaction looks at, with the record's key as `_key`."""
    if "key" in rows.columns:
        key, tombstone = F.col("key"), F.col("value").isNull()
    else:
        commit = F.struct("group", "commit_topic", "commit_partition")
        key = F.when(F.col("kind").isNotNull(), F.to_json(F.struct("key_version", "key_json", commit.alias("commit"))))
        key, tombstone = key.cast("binary"), F.col("tombstone")
    return rows.select(*_PLACED, key.alias("_key"), tombstone.alias("_tombstone"), *others)


def fates(rows: DataFrame, *scope: str) -> DataFrame:
    """Each record of `keyed` with `fate` (live, tombstone, superseded, aborted, keyless, marker), and whether that is
    `open`: later records may change it. `scope`: what the rows are all of: logs, or segments of logs."""
    producers = with_ending_marker(rows.where(F.col("producer_id") >= 0))
    others = rows.where(F.col("producer_id") < 0).withColumns({
        "end": F.lit(None).cast("string"),
        "end_offset": F.lit(None).cast("long"),
        "end_timestamp": F.lit(None).cast("timestamp"),
    })  # fmt: skip
    ended = others.unionByName(producers)
    aborted = F.col("transactional") & F.col("end").eqNullSafe("ABORT")
    pending = F.col("control").isNull() & F.col("transactional") & F.col("end").isNull()
    counts = F.col("control").isNull() & ~aborted & ~pending & F.col("_key").isNotNull()
    by_key = Window.partitionBy(*(scope or ("log",)), F.when(counts, F.col("_key")))
    last = F.max(F.when(counts, F.col("offset"))).over(by_key)
    fate = (
        F.when(F.col("control").isNotNull(), "marker")
        .when(aborted, "aborted")
        .when(F.col("_key").isNull(), "keyless")
        .when(counts & (F.col("offset") < last), "superseded")
        .when(F.col("_tombstone"), "tombstone")
        .otherwise("live")
    )
    found = ended.withColumn("fate", fate).withColumn("open", F.col("fate").isin("live", "tombstone") | pending)
    return found.withColumn("pending", pending).drop("end", "end_offset", "end_timestamp")


def parts(records: DataFrame) -> DataFrame:
    """One row a batch and fate: its records, and their size before compression."""
    counts = F.count(F.lit(1)).alias("records"), F.sum("record_size").alias("size")
    return records.groupBy(*BATCH, "fate").agg(*counts)


def shares(parts: DataFrame) -> DataFrame:
    """One row a segment and fate of whole batches: records, and the bytes of the log they take, in UNITS."""
    both = F.sum("records").alias("records"), F.sum("size").alias("size")
    batch = Window.partitionBy("log", "segment", "batch_base_offset")
    stays = F.col("fate").isin(*STAYING_FATES)
    stay = F.sum(F.when(stays, F.col("records")).otherwise(0)).over(batch)
    of_header = F.when(stay == 0, F.col("records") / F.sum("records").over(batch)).when(stays, F.col("records") / stay)
    share = (F.col("batch_size") - HEADER_BYTES) * F.col("size") / F.sum("size").over(batch)
    taken = share + HEADER_BYTES * F.coalesce(of_header, F.lit(0))
    whole = parts.groupBy(*BATCH, "fate").agg(*both).withColumn("units", F.round(taken * UNITS).cast("long"))
    return totals(whole)


def totals(shares: DataFrame) -> DataFrame:
    """The sums of several of `shares`."""
    sums = F.sum("records").alias("records"), F.sum("units").alias("units")
    return shares.select(*SEGMENT_KEY, "fate", "records", "units").groupBy(*SEGMENT_KEY, "fate").agg(*sums)


def summary(rows: DataFrame, before: Tables | None, *scope: str) -> Tables:
    """Rows on top of what is known of the records before them, of logs or of segments (`scope`: see fates).

    `records`, those whose fate is open; `parts` of the batches they are in; `totals` of all other batches; `markers`,
    the first of each producer in each segment: it decides what is open in the segments before.
    """
    known = rows if before is None else rows.unionByName(before["records"])
    found = fates(known, *scope)
    # The marker of a decided record may not be there the next time, so it is no longer one of a transaction.
    records = found.where("open").withColumns({
        "producer_id": F.when(F.col("pending"), F.col("producer_id")).otherwise(F.lit(-1).cast("long")),
        "transactional": F.col("pending"),
    })  # fmt: skip
    done = parts(found.where("not open"))
    markers = rows.where(F.col("control").isin(*MARKERS))
    if before is not None:
        done = done.unionByName(before["parts"])
        markers = markers.unionByName(before["markers"])
    batches = ["log", "segment", "batch_base_offset"]
    unsettled = records.select(*batches).distinct()
    settled = shares(done.join(unsettled, batches, "left_anti").select(*done.columns))
    if before is not None:
        settled = totals(settled.unionByName(before["totals"]))
    first = F.min_by(F.struct(*rows.columns), "offset").alias("_first")
    return {
        "records": records.select(*rows.columns),
        "parts": done.join(unsettled, batches, "left_semi").select(*done.columns),
        "totals": settled,
        "markers": markers.groupBy("log", "segment", "producer_id").agg(first).select("_first.*"),
    }


def report(known: Tables) -> DataFrame:
    """The segments that summaries know of."""
    left = fates(known["records"].unionByName(known["markers"])).where(F.col("control").isNull())
    return segments(shares(parts(left).unionByName(known["parts"])).unionByName(known["totals"]))


def segments(shares: DataFrame) -> DataFrame:
    """One row a segment: its records and bytes by fate, and whether a cleaning may touch it at all.

    `won_bytes`: what a cleaning would give back now: what is dead in segments that are no longer written to.
    """

    def sum_of(column: str, *fates: str) -> Column:
        return F.sum(F.when(F.col("fate").isin(*fates), F.col(column)).otherwise(0))

    def size(*fates: str) -> Column:
        return F.round(sum_of("units", *fates) / UNITS).cast("long")

    found = shares.groupBy(*SEGMENT_KEY).agg(
        F.sum("records").alias("records"),
        sum_of("records", *DEAD_FATES).alias("dead_records"),
        size(*STAYING_FATES, *DEAD_FATES).alias("bytes"),
        size("live").alias("live_bytes"),
        size("tombstone").alias("tombstone_bytes"),
        size("marker").alias("marker_bytes"),
        size(*DEAD_FATES).alias("dead_bytes"),
        size("aborted").alias("aborted_bytes"),
    )
    active = F.max("segment").over(Window.partitionBy("log")) == F.col("segment")
    return found.withColumn("active", active).withColumn(
        "won_bytes", F.when(F.col("active"), F.lit(0).cast("long")).otherwise(F.col("dead_bytes"))
    )
