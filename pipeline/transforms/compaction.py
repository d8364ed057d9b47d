"""Live and dead bytes of each segment of a compacted log, and what a cleaning would free: DataFrame to DataFrame.

A record is dead when a later record has its key, when its transaction was aborted, or when it has no key. A record of
an open transaction is live and makes no other record dead yet. Tombstones stay until delete.retention.ms is over, and
markers are counted apart. Bytes are those of the log: a batch's bytes are divided among its records by their size
before compression, and its header belongs to the records that stay, if any do.

Only few records may still change their fate: the newest record of every key and those of open transactions. `summary`
keeps these, and totals of all others, so that the parts of a log can be processed one after another.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pipeline.engine import F, Window
from pipeline.transforms.commits import MARKERS, with_ending_marker
from protocol.record_batch import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import Column, DataFrame

    Tables = dict[str, DataFrame]
    WithKey = Callable[..., DataFrame]  # with_record_key, for a view

_PLACED: Final = (
    "log", "topic", "partition", "segment", "offset", "timestamp", "batch_base_offset", "batch_size", "record_size",
    "producer_id", "transactional", "control",
)  # fmt: skip  # several to a line
_KEYED: Final = (*_PLACED, "kind", "tombstone", "key_version", "key_json")
# The columns that are needed of each view.
COLUMNS: Final = {
    "raw": (*_PLACED, "key", "value"),
    "offsets": (*_KEYED, "group", "commit_topic", "commit_partition"),
    "transactions": (*_KEYED, "transactional_id"),
}
SEGMENT_KEY: Final = ("log", "topic", "partition", "segment")
BATCH: Final = (*SEGMENT_KEY, "batch_base_offset", "batch_size")
STAYING_FATES: Final = ("live", "tombstone", "marker")
DEAD_FATES: Final = ("superseded", "aborted", "keyless")
UNITS: Final = 1 << 20  # to a byte: sums of integers do not depend on their order, as those of floats do


def with_record_key(rows: DataFrame, *others: str) -> DataFrame:
    """Rows of the view `raw` or `offsets` with the columns that compaction needs.

    The record's key is `_key` (binary).
    """
    if "key" in rows.columns:
        key, tombstone = F.col("key"), F.col("value").isNull()
    else:
        commit = F.struct("group", "commit_topic", "commit_partition")
        key = F.when(F.col("kind").isNotNull(), F.to_json(F.struct("key_version", "key_json", commit.alias("commit"))))
        key, tombstone = key.cast("binary"), F.col("tombstone")
    return rows.select(*_PLACED, key.alias("_key"), tombstone.alias("_tombstone"), *others)


def _with_transactional_id_key(rows: DataFrame, *others: str) -> DataFrame:
    """with_record_key for the view `transactions`: one key a transactional id and record type."""
    none = F.lit(None)
    named = rows.withColumns({"group": F.col("transactional_id"), "commit_topic": none.cast("string")})
    return with_record_key(named.withColumn("commit_partition", none.cast("int")), *others)


def keyed_views(topics: str | None) -> dict[str, WithKey]:
    """The views to read, by default those of the internal topics, each with the function that adds its keys."""
    if topics is not None:
        return {"raw": with_record_key}
    return {"offsets": with_record_key, "transactions": _with_transactional_id_key}


def union(parts: Iterable[DataFrame]) -> DataFrame:
    """The rows of all parts, which have the same columns."""
    return reduce(lambda one, other: one.unionByName(other), parts)


def segments_of(read: Callable[[str], DataFrame], topics: str | None = None) -> DataFrame:
    """Rows of `segments`, of the internal topics or of the topics that match a glob.

    read(view) gives the records of these topics with the columns COLUMNS[view].
    """
    records = union(with_key(read(view)) for view, with_key in keyed_views(topics).items())
    return segments(segment_shares(batch_parts(fates(records))))


def fates(rows: DataFrame, *scope: str) -> DataFrame:
    """Each record of `with_record_key` with `fate`, `open` and `pending`.

    fate: live, tombstone, superseded, aborted, keyless or marker. open: later records may still change the fate.
    pending: of an open transaction. scope: the columns that tell apart what the rows are complete for, by default
    whole logs ("log"), else segments ("log", "segment").
    """
    producers = with_ending_marker(rows.where(F.col("producer_id") >= 0))
    others = rows.where(F.col("producer_id") < 0).withColumns({
        "end": F.lit(None).cast("string"),
        "end_offset": F.lit(None).cast("long"),
        "end_timestamp": F.lit(None).cast("timestamp"),
    })  # fmt: skip  # one argument, no indent of its own
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


def batch_parts(records: DataFrame) -> DataFrame:
    """One row a batch and fate: number of records, and their size in bytes before compression."""
    counts = F.count(F.lit(1)).alias("records"), F.sum("record_size").alias("size")
    return records.groupBy(*BATCH, "fate").agg(*counts)


def segment_shares(parts: DataFrame) -> DataFrame:
    """One row a segment and fate, from all batch_parts of its batches: records, and their bytes of the log in UNITS."""
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
    """The sums of several segment_shares."""
    sums = F.sum("records").alias("records"), F.sum("units").alias("units")
    return shares.select(*SEGMENT_KEY, "fate", "records", "units").groupBy(*SEGMENT_KEY, "fate").agg(*sums)


def summary(rows: DataFrame, before: Tables | None, *scope: str) -> Tables:
    """The summary of rows on top of the summary `before` of earlier ones. scope: see fates.

    records  those whose fate is open
    parts    batch_parts of the batches they are in
    totals   totals of all other batches
    markers  the first of each producer in each segment: they end transactions that are open in earlier segments
    """
    known = rows if before is None else rows.unionByName(before["records"])
    found = fates(known, *scope)
    # A decided record must not look transactional the next time, as its marker may not be among the rows then.
    records = found.where("open").withColumns({
        "producer_id": F.when(F.col("pending"), F.col("producer_id")).otherwise(F.lit(-1).cast("long")),
        "transactional": F.col("pending"),
    })  # fmt: skip  # one argument, no indent of its own
    done = batch_parts(found.where("not open"))
    markers = rows.where(F.col("control").isin(*MARKERS))
    if before is not None:
        done = done.unionByName(before["parts"])
        markers = markers.unionByName(before["markers"])
    batches = ["log", "segment", "batch_base_offset"]
    open_batches = records.select(*batches).distinct()
    closed = segment_shares(done.join(open_batches, batches, "left_anti").select(*done.columns))
    if before is not None:
        closed = totals(closed.unionByName(before["totals"]))
    first = F.min_by(F.struct(*rows.columns), "offset").alias("_first")
    return {
        "records": records.select(*rows.columns),
        "parts": done.join(open_batches, batches, "left_semi").select(*done.columns),
        "totals": closed,
        "markers": markers.groupBy("log", "segment", "producer_id").agg(first).select("_first.*"),
    }


def report(known: Tables) -> DataFrame:
    """Rows of `segments` from a summary."""
    undecided = fates(known["records"].unionByName(known["markers"])).where(F.col("control").isNull())
    parts = batch_parts(undecided).unionByName(known["parts"])
    return segments(segment_shares(parts).unionByName(known["totals"]))


def segments(shares: DataFrame) -> DataFrame:
    """One row a segment, from its segment_shares: records and bytes by fate, and whether it is the active segment.

    won_bytes: what a cleaning would free now, which is the dead bytes of segments that are not active.
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
