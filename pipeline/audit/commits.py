"""Checks of commits: offsets that went back, and commits of which only a part is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.audit.findings import (
    CLOCKS,
    COMMIT_OUTSIDE_TRANSACTION,
    INCOMPLETE_COMMIT,
    OFFSET_REGRESSION,
    STALE_GENERATION,
    STALE_MEMBER_EPOCH,
    UNFINISHED,
    findings,
)
from pipeline.audit.transactions import GRACE_S, with_transaction_end
from pipeline.engine import F
from pipeline.transforms.missing_offsets import with_next
from pipeline.transforms.running import LAST, MAX, MIN, Running, with_running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The findings that need to know which member committed.
MEMBER_CHECKS: Final = (OFFSET_REGRESSION, STALE_GENERATION, STALE_MEMBER_EPOCH, COMMIT_OUTSIDE_TRANSACTION)
NAMES: Final = ("member_id", "generation", "client_id")  # of a commit's headers
# Why commits name no member: the column `why` of without_members.
BY_KAFKA: Final = "kafka"
BY_CLIENT: Final = "client"
SILENT: Final = {
    BY_KAFKA: "Apache Kafka writes none",
    BY_CLIENT: "their clients said neither a member nor a client id, or offsets.provenance was off",
}
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
    counted = rows.where("not transactional or ended_as = 'COMMIT'").withColumn(
        "effective_at", F.coalesce("ended_by", "offset")
    )
    later = {"next_at": Running(MIN, F.col("effective_at"), backwards=True)}
    return (
        with_running(counted, ("log", *PARTITION_KEY), later)
        .where("next_at is null or next_at > effective_at")
        .drop("next_at")
    )


def regressions(rows: DataFrame) -> DataFrame:
    """Commits of members below the committed offset. rows: of `effective`, with lost_before.

    A commit without a generation is an operator's, who may set a group back. Another topic id means another topic.

    Shape:   candidates (findings.py), one a commit; the proof is the commit before it.
    """
    one = F.struct("commit_offset", "offset", "tombstone", "lost_before", "commit_topic_id")
    found = (
        with_running(rows, ("log", *PARTITION_KEY), {"before": Running(LAST, one)})
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


def outside_transactions(rows: DataFrame, pairs: DataFrame) -> DataFrame:
    """Commits that a group should have made in a transaction and made outside of it. rows: of `commits`.

    * A member's commit without a transaction, between two commits of the same group and partition in transactions, that
      sets another offset than the transaction before it: such a group commits by itself what it means to commit with
      its output, as `enable.auto.commit` does. An operator's commit has no generation.
    * A commit of a transaction that had ended, which the marker of the producer's next one took along: the broker wrote
      it before that one began. pairs: of transactions.matched. By the brokers' clocks: below GRACE_S, a doubt.

    Shape:   candidates (findings.py), one a commit; the proof is the committed one before it, or the Prepare record.
    """
    return _plain_between(rows).unionByName(_before_their_transaction(rows, pairs))


def _plain_between(rows: DataFrame) -> DataFrame:
    key = ["log", *PARTITION_KEY]
    committed = F.col("transactional") & (F.col("ended_as") == "COMMIT") & ~F.col("tombstone")
    one = F.when(committed, F.struct("offset", "commit_offset"))
    around = {
        "before": Running(LAST, one),
        "after": Running(MAX, F.col("transactional"), inclusive=True, backwards=True),
    }
    mixed = rows.join(rows.where("transactional").select(*key).distinct(), key, "left_semi")
    found = (
        with_running(mixed, key, around)
        .where("not transactional and not tombstone and generation >= 0 and before is not null and after")
        .where("commit_offset != before.commit_offset")
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", F.col("before.offset"))
    )
    detail = F.format_string(
        "%s commits %s-%d in transactions, but %d without one",
        "group", "commit_topic", "commit_partition", "commit_offset",
    )  # fmt: skip  # several to a line
    return findings(found, COMMIT_OUTSIDE_TRANSACTION, detail)


def _before_their_transaction(rows: DataFrame, pairs: DataFrame) -> DataFrame:
    ends = pairs.select(
        "log",
        F.col("marker_offset").alias("ended_by"),
        "transactional_id",
        "started",
        F.col("coordinator_log").alias("proof_log"),
        F.col("prepared_offset").alias("proof_offset"),
    )
    found = rows.where("transactional").join(ends, ["log", "ended_by"]).where("timestamp < started")
    early = F.unix_micros("started") - F.unix_micros("timestamp")
    detail = F.format_string(
        "%s-%d of group %s was committed %s ms before the transaction of %s that ended it began",
        "commit_topic", "commit_partition", "group", F.format_string("%.0f", early / 1000), "transactional_id",
    )  # fmt: skip  # several to a line
    is_sure = early > GRACE_S * 1_000_000
    why = F.when(~is_sure, F.lit(CLOCKS))
    return findings(found, COMMIT_OUTSIDE_TRANSACTION, detail, F.when(is_sure, 0).otherwise(1), why)


def without_members(offsets: DataFrame) -> DataFrame:
    """The groups with commits that do not say who made them: log, group, commits, first_offset, why (one of SILENT).

    momus writes that into the headers of commits, Apache Kafka does not: where no commit has it, Kafka wrote. Without,
    MEMBER_CHECKS cannot be decided. A commit that names its client and no generation was made by an operator, outside
    of the group: that is known.
    """
    is_silent = F.coalesce(*(F.col(name).cast("string") for name in NAMES)).isNull()
    made = offsets.where((F.col("kind") == "OffsetCommit") & ~F.col("tombstone"))
    by_momus = made.agg(F.coalesce(F.bool_or(~is_silent), F.lit(False)).alias("by_momus"))
    return (
        made.where(is_silent)
        .groupBy("log", "group")
        .agg(F.count(F.lit(1)).alias("commits"), F.min("offset").alias("first_offset"))
        .crossJoin(F.broadcast(by_momus))
        .withColumn("why", F.when(F.col("by_momus"), F.lit(BY_CLIENT)).otherwise(F.lit(BY_KAFKA)))
        .drop("by_momus")
    )


def incomplete(offsets: DataFrame) -> DataFrame:
    """Commits over several batches with fewer or more records than their header says. offsets: with lost_before.

    A commit's id is the offset of its first record, so its records have consecutive offsets from there on.

    Shape:   candidates (findings.py), one a commit, at its first existing record, without a proof.
    """
    is_record = F.col("segment").isNotNull()
    ends = offsets.groupBy("log").agg(
        F.max(F.when(is_record, F.col("offset"))).alias("log_last"), F.count_if(~is_record).alias("end_rows")
    )
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
    next_lost = with_next(offsets.select("log", "offset", "lost_before"), "lost_before", "next_lost").select(
        "log", F.col("offset").alias("last_offset"), "next_lost"
    )
    rows = (
        runs.select("log", "commit_id", "commit_size", "there", "first.*", F.col("last").alias("last"))
        .join(ends, "log")
        .withColumn("last_offset", F.col("last.offset"))
        .join(next_lost, ["log", "last_offset"], "left")
    )
    # Missing within it, after it, or before it when its first record is missing.
    head = F.col("offset") - F.col("commit_id")
    lost = F.coalesce("next_lost", "last.lost_before") - F.col("lost_before") + head
    # Only the logs of a running broker have rows of their ends: there the rest may be written in the next moment.
    is_last = F.col("last_offset") == F.col("log_last")
    tail = F.when(is_last, ": the log ends here, so the rest may still be written").otherwise("")
    detail = F.format_string("a commit of %d records has %d%s", "commit_size", "there", tail)
    open_end = F.when(is_last & (F.col("end_rows") > 0), 1).otherwise(0)
    why = F.when((lost <= 0) & (open_end > 0), F.lit(UNFINISHED))
    return findings(rows, INCOMPLETE_COMMIT, detail, F.greatest(lost, open_end), why)
