"""Checks of commits: offsets that went back, and commits of which only a part is there."""

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
    """Offset commits and tombstones of the view `offsets`.

    Transactional ones with the columns of with_transaction_end.
    """
    nothing = F.lit(None)
    plain = offsets.where("not transactional and control is null").select(
        "*",
        nothing.cast("smallint").alias("known_epoch"),
        nothing.cast("bigint").alias("ended_by"),
        nothing.cast("string").alias("ended_as"),
    )
    return plain.unionByName(with_transaction_end(offsets)).where("kind = 'OffsetCommit'")


def effective(rows: DataFrame) -> DataFrame:
    """The rows of `commits` that a reader could see: not aborted or open, nor overtaken before their marker."""
    later = (
        Window.partitionBy("log", *PARTITION_KEY).orderBy(F.desc("offset")).rowsBetween(Window.unboundedPreceding, -1)
    )
    return (
        rows.where("not transactional or ended_as = 'COMMIT'")
        .withColumn("effective_at", F.coalesce("ended_by", "offset"))
        .withColumn("next_at", F.min("effective_at").over(later))
        .where("next_at is null or next_at > effective_at")
        .drop("next_at")
    )


def regressions(rows: DataFrame) -> DataFrame:
    """Commits of members below the committed offset. rows: of `effective`, with lost_before.

    A commit without a generation is an operator's, who may set a group back. Another topic id means another topic.

    Shape:   candidates (findings.py), one a commit; the proof is the commit before it.
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
        "%s-%d went back from %d to %d", "commit_topic", "commit_partition", "before.commit_offset", "commit_offset"
    )
    return findings(found, OFFSET_REGRESSION, detail, F.col("lost_before") - F.col("before.lost_before"))


def incomplete(offsets: DataFrame) -> DataFrame:
    """Commits over several batches with fewer or more records than their header says. offsets: with lost_before.

    A commit's id is the offset of its first record, so its records have consecutive offsets from there on.

    Shape:   candidates (findings.py), one a commit, at its first existing record, without a proof.
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
    # Missing within it, behind it, or before it when its first record is missing.
    head = F.col("offset") - F.col("commit_id")
    lost = F.coalesce("next_lost", "last.lost_before") - F.col("lost_before") + head
    is_last = F.col("last_offset") == F.col("log_last")
    tail = F.when(is_last, ": the log ends here, so the rest may still be written").otherwise("")
    detail = F.format_string("a commit of %d records has %d%s", "commit_size", "there", tail)
    return findings(rows, INCOMPLETE_COMMIT, detail, lost)
