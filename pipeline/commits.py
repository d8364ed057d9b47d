"""Which commits of `__consumer_offsets` took effect, when, and what was committed at any time: DataFrame to DataFrame.

A commit outside of a transaction counts from its own record, one within a transaction from the COMMIT marker that
ends it, and never if there is none. A pending offset becomes the committed one only if nothing later in the log was
committed before its marker came. A tombstone counts from its record, in a transaction or not, and takes with it what is
pending below it. A commit over several batches counts when all of it is there. So at any time the committed offset is
that of the last record, by (log, offset), among those that count by then.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY: Final = ("log", "group", "topic", "partition")
_MARKERS: Final = ("COMMIT", "ABORT")


def whole(rows: DataFrame) -> DataFrame:
    """Without the parts of commits over several batches: what a crash left, or what is being written."""
    # Nearly every commit is one batch. Only the others are shuffled: a window over all would hold a whole log at once.
    spanned = F.col("commit_id").isNotNull() & (F.col("producer_id") < 0)
    span = Window.partitionBy("log", "commit_id", "commit_size")
    counted = rows.where(spanned).withColumn("_records", F.count(F.lit(1)).over(span))
    complete = counted.where(F.col("_records") == F.col("commit_size")).drop("_records")
    return rows.where(~spanned).unionByName(complete)


def with_end(rows: DataFrame) -> DataFrame:
    """Each record with `end`, `end_offset`, `end_timestamp` of the first marker of its producer behind it; null:
    none."""
    after = Window.partitionBy("log", "producer_id").orderBy("offset").rowsBetween(1, Window.unboundedFollowing)
    is_marker = F.col("control").isin(*_MARKERS)

    def next_marker(column: str) -> Column:
        return F.first(F.when(is_marker, F.col(column)), ignorenulls=True).over(after)

    return (
        rows.withColumn("end", next_marker("control"))
        .withColumn("end_offset", next_marker("offset"))
        .withColumn("end_timestamp", next_marker("timestamp"))
    )


def effective(rows: DataFrame) -> DataFrame:
    """One row a commit or removal that counts, from the view `offsets`.

    effective_offset and effective_at: where in the log and when it began to count.
    """
    commits = F.col("kind").isin("OffsetCommit", "LegacyOffsetCommit")
    plain = whole(rows.where(commits & (F.col("producer_id") < 0)))
    sent = rows.where((F.col("producer_id") >= 0) & (commits | F.col("control").isNotNull()))
    ended = with_end(sent).where(commits & (F.col("tombstone") | (F.col("end") == "COMMIT")))
    at_once = F.col("tombstone") | F.col("end_offset").isNull()
    counted = plain.withColumns({
        "end_offset": F.lit(None).cast("long"),
        "end_timestamp": F.lit(None).cast("timestamp"),
    }).unionByName(ended.drop("end"))  # fmt: skip
    return counted.select(
        "log",
        F.col("group"),
        F.col("commit_topic").alias("topic"),
        F.col("commit_partition").alias("partition"),
        "commit_offset",
        F.col("commit_leader_epoch").alias("leader_epoch"),
        F.col("commit_metadata").alias("metadata"),
        F.col("commit_topic_id").alias("topic_id"),
        F.col("tombstone").alias("removed"),
        F.when(at_once, F.col("timestamp")).otherwise(F.col("end_timestamp")).alias("effective_at"),
        F.when(at_once, F.col("offset")).otherwise(F.col("end_offset")).alias("effective_offset"),
        F.col("offset").alias("log_offset"),
        "commit_timestamp",
        "expire_timestamp",
        "transactional",
        "producer_id",
        "producer_epoch",
        "member_id",
        "instance_id",
        "generation",
        "client_id",
    )


def undecided(rows: DataFrame) -> DataFrame:
    """The records that later ones may still make count: of open transactions, and of commits not whole yet."""
    commits = F.col("kind").isin("OffsetCommit", "LegacyOffsetCommit") & ~F.col("tombstone")
    sent = rows.where((F.col("producer_id") >= 0) & (commits | F.col("control").isNotNull()))
    pending = with_end(sent).where(commits & F.col("end").isNull()).drop("end", "end_offset", "end_timestamp")
    spanned = rows.where(commits & (F.col("producer_id") < 0) & F.col("commit_id").isNotNull())
    span = Window.partitionBy("log", "commit_id", "commit_size")
    parts = (
        spanned.withColumn("_records", F.count(F.lit(1)).over(span))
        .withColumn("_last", F.max("offset").over(span))
        .join(rows.groupBy("log").agg(F.max("offset").alias("_end")), "log")
        .where((F.col("_records") < F.col("commit_size")) & (F.col("_last") == F.col("_end")))
        .drop("_records", "_last", "_end")
    )
    return pending.unionByName(parts)


def history(changes: DataFrame) -> DataFrame:
    """The changes that could be seen: without pending offsets that something later in the log had overtaken."""
    by_effect = Window.partitionBy(*KEY).orderBy("effective_offset", "log_offset")
    ahead = F.max("log_offset").over(by_effect.rowsBetween(Window.unboundedPreceding, -1))
    at_once = F.lead("effective_offset").over(by_effect)  # of one transaction, the last counts
    marked = changes.withColumn("_ahead", ahead).withColumn("_next", at_once)
    overtaken = F.col("_ahead") > F.col("log_offset")
    seen = F.coalesce(~overtaken, F.lit(True)) & ~F.col("_next").eqNullSafe(F.col("effective_offset"))
    return marked.where(seen).drop("_ahead", "_next")


def latest(changes: DataFrame, as_of: datetime | None = None) -> DataFrame:
    """What is committed, now or at a time: one row a group, topic and partition."""
    if as_of is not None:
        changes = changes.where(F.col("effective_at") <= F.lit(as_of))
    return last_changes(changes).where(~F.col("removed")).drop("removed")


def last_changes(changes: DataFrame) -> DataFrame:
    """The last change of every group, topic and partition, removals too."""
    key = ("log", "`group`", "topic", "partition")
    columns = [name for name in changes.columns if name not in KEY]
    newest = F.max_by(F.struct(*columns), F.col("log_offset")).alias("_newest")
    return changes.groupBy(*key).agg(newest).select(*key, "_newest.*").select(*changes.columns)


def diff(changes: DataFrame, since: datetime, until: datetime | None = None) -> DataFrame:
    """What differs between two times: one row a group, topic and partition whose committed offset is another one."""
    shown = ("commit_offset", "effective_at", "member_id", "instance_id", "generation", "client_id")
    names = ("log", "`group`", "topic", "partition")
    before = latest(changes, since).select(*names, F.struct(*shown).alias("before"))
    after = latest(changes, until).select(*names, F.struct(*shown).alias("after"))
    both = before.join(after, list(KEY), "full_outer")
    old, new = F.col("before.commit_offset"), F.col("after.commit_offset")
    return both.where(~old.eqNullSafe(new)).select(
        *names,
        old.alias("offset_before"),
        new.alias("offset_after"),
        (new - old).alias("moved"),
        F.col("before.effective_at").alias("committed_before"),
        F.col("after.effective_at").alias("committed_after"),
        *(F.col(f"after.{name}").alias(name) for name in shown[2:]),
    )
