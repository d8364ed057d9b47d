"""What groups committed: commits that count, offsets that went back, and commits of which only a part is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.audit.findings import INCOMPLETE_COMMIT, OFFSET_REGRESSION, findings
from pipeline.audit.transactions import with_transaction_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITION_KEY = ("group", "commit_topic", "commit_partition")


def commits(offsets: DataFrame) -> DataFrame:
    """Commits and their tombstones of the offsets view; transactional ones with `ended_by` and `ended_as`."""
    nothing = F.lit(None)
    plain = offsets.where("not transactional and control is null").select(
        "*",
        nothing.cast("smallint").alias("known_epoch"),
        nothing.cast("bigint").alias("ended_by"),
        nothing.cast("string").alias("ended_as"),
    )
    return plain.unionByName(with_transaction_end(offsets)).where("kind = 'OffsetCommit'")


def effective(rows: DataFrame) -> DataFrame:
    """Those of `commits` that readers ever saw: not aborted, not open, not beaten by a later one before its marker."""
    later = (
        Window.partitionBy("log", *PARTITION_KEY)
        .orderBy(F.desc("offset"))
        .rowsBetween(Window.unboundedPreceding, -1)
    )  # fmt: skip
    return (
        rows.where("not transactional or ended_as = 'COMMIT'")
        .withColumn("effective_at", F.coalesce("ended_by", "offset"))
        .withColumn("next_at", F.min("effective_at").over(later))
        .where("next_at is null or next_at > effective_at")
        .drop("next_at")
    )


def regressions(rows: DataFrame) -> DataFrame:
    """Members that committed less than what stood there. Rows of `effective`, with lost_before.

    Who names no generation is no member: that is how an operator sets a group back, and it is no finding. A topic with
    another id is another topic.
    """
    order = Window.partitionBy("log", *PARTITION_KEY).orderBy("offset")
    before = F.lag(F.struct("commit_offset", "offset", "tombstone", "lost_before", "commit_topic_id")).over(order)
    found = (
        rows.withColumn("before", before)
        .where("not tombstone and generation >= 0 and not before.tombstone")
        .where("commit_offset < before.commit_offset")
        .where("commit_topic_id is null or before.commit_topic_id is null or commit_topic_id = before.commit_topic_id")
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", F.col("before.offset"))
    )
    detail = F.format_string(
        "%s-%d went from %d back to %d", "commit_topic", "commit_partition", "before.commit_offset", "commit_offset"
    )
    return findings(found, OFFSET_REGRESSION, detail, F.col("lost_before") - F.col("before.lost_before"))


def incomplete(offsets: DataFrame) -> DataFrame:
    """Commits over several batches that are shorter or longer than they say. Rows with lost_before.

    A commit's number is the offset of its first record, so its records have the offsets from there on.
    """
    ends = offsets.groupBy("log").agg(F.max("offset").alias("log_last"))
    runs = (
        offsets.where("commit_size is not null")
        .groupBy("log", "commit_id", "commit_size")
        .agg(
            F.count(F.lit(1)).alias("there"),
            F.min_by(F.struct("segment", "offset", "timestamp", "group", "lost_before"), "offset").alias("first"),
            F.max_by(F.struct("offset", "lost_before"), "offset").alias("last"),
        )
        .where("there != commit_size")
    )
    following = Window.partitionBy("log").orderBy(F.desc("offset")).rowsBetween(Window.unboundedPreceding, -1)
    next_lost = offsets.select(
        "log",
        F.col("offset").alias("last_offset"),
        F.last("lost_before").over(following).alias("next_lost"),
    )
    rows = (
        runs.select("log", "commit_id", "commit_size", "there", "first.*", F.col("last").alias("last"))
        .join(ends, "log")
        .withColumn("last_offset", F.col("last.offset"))
        .join(next_lost, ["log", "last_offset"], "left")
    )
    # lost inside of it, behind it, or before it when its first record is not there
    head = F.col("offset") - F.col("commit_id")
    lost = F.coalesce("next_lost", "last.lost_before") - F.col("lost_before") + head
    is_last = F.col("last_offset") == F.col("log_last")
    tail = F.when(is_last, ": the log ends here, it may still be written").otherwise("")
    detail = F.format_string("a commit of %d records has %d%s", "commit_size", "there", tail)
    return findings(rows, INCOMPLETE_COMMIT, detail, lost)
