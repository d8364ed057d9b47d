"""Findings: their kinds, their columns, and how candidates become findings or doubts.

A candidate has the log position that proves it, the position that it contradicts, and `lost`, the number of missing
offsets that could explain it. Without any it is a finding, else a doubt; `why` says what else than missing records
makes it one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engine import F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

STALE_PRODUCER_EPOCH: Final = "stale-producer-epoch"
STALE_GENERATION: Final = "stale-generation"
STALE_MEMBER_EPOCH: Final = "stale-member-epoch"
OFFSET_REGRESSION: Final = "offset-regression"
DUPLICATE_SEQUENCE: Final = "duplicate-sequence"
MISSING_SEQUENCE: Final = "missing-sequence"
REORDERED_SEQUENCE: Final = "reordered-sequence"
HANGING_TRANSACTION: Final = "hanging-transaction"
TRANSACTION_WITHOUT_MARKER: Final = "transaction-without-marker"
MARKER_WITHOUT_TRANSACTION: Final = "marker-without-transaction"
MARKER_AGAINST_DECISION: Final = "marker-against-decision"
TRANSACTION_WITHOUT_RECORDS: Final = "transaction-without-records"
COMMIT_OUTSIDE_TRANSACTION: Final = "commit-outside-transaction"
INCOMPLETE_COMMIT: Final = "incomplete-commit"
SHARE_DELIVERY_LIMIT: Final = "share-delivery-limit"
SHARE_DELIVERED_AGAIN: Final = "share-delivered-again"
SHARE_UNREAD: Final = "share-unread"
TWO_OWNERS: Final = "two-owners"
EPOCH_REGRESSION: Final = "epoch-regression"
LEADER_EPOCH_REGRESSION: Final = "leader-epoch-regression"
COMMIT_BEYOND_END: Final = "commit-beyond-end"
PRODUCER_ID_TWICE: Final = "producer-id-twice"
TRANSACTION_VANISHED: Final = "transaction-vanished"
OVERLAPPING_BATCHES: Final = "overlapping-batches"
MISSING_RECORDS: Final = "missing-records"

# kind -> what it means
KINDS: Final = {
    STALE_PRODUCER_EPOCH: "a producer still wrote after it was replaced",
    STALE_GENERATION: "a member of an older generation still committed",
    STALE_MEMBER_EPOCH: "a member committed for a partition that it did not own at that epoch",
    OFFSET_REGRESSION: "a group went back: the records between were read again",
    DUPLICATE_SEQUENCE: "the same records were appended twice",
    MISSING_SEQUENCE: "records that the producer numbered are not in the log",
    REORDERED_SEQUENCE: "records were appended in another order than they were sent",
    HANGING_TRANSACTION: "no producer will end this transaction: read_committed consumers stop here",
    TRANSACTION_WITHOUT_MARKER: "the transaction is complete, but this partition has no marker of it",
    MARKER_WITHOUT_TRANSACTION: "a marker ends a transaction that no coordinator has",
    MARKER_AGAINST_DECISION: "the marker says the opposite of the coordinator's decision",
    TRANSACTION_WITHOUT_RECORDS: "a committed transaction names this partition, but none of its records is there",
    COMMIT_OUTSIDE_TRANSACTION: "offsets that belong to a transaction were committed outside of it",
    INCOMPLETE_COMMIT: "only a part of a commit is there",
    SHARE_DELIVERY_LIMIT: "a share group got a record more often than its limit allows",
    SHARE_DELIVERED_AGAIN: "a share group got a record again that was acknowledged or archived",
    SHARE_UNREAD: "a share group has archived or passed a record that no consumer got",
    TWO_OWNERS: "two members of a group own a partition at once",
    EPOCH_REGRESSION: "the generation or epoch of a group or member is below an earlier one",
    LEADER_EPOCH_REGRESSION: "a leader wrote with an epoch below that of an earlier leader",
    COMMIT_BEYOND_END: "a group has committed an offset that its log never had: records are lost, or will be skipped",
    PRODUCER_ID_TWICE: "two transactional ids have the same producer id",
    TRANSACTION_VANISHED: "a transaction is gone that was neither committed nor aborted as was decided",
    OVERLAPPING_BATCHES: "offsets of a log are there twice",
    MISSING_RECORDS: "offsets are missing in the middle of a log that nothing compacts",
}

# What makes a doubt, where it is not missing records: the column `why`.
UNKNOWN_PRODUCER: Final = "unknown-producer"
STOPPED: Final = "stopped"
NEWER: Final = "newer"
CLOCKS: Final = "clocks"
NAMED_BY_CLIENT: Final = "named-by-client"
TWICE: Final = "twice"
UNFINISHED: Final = "unfinished"
ANOTHER_TOPIC: Final = "another-topic"
NOT_SURE: Final = {
    UNKNOWN_PRODUCER: "a broker takes any first sequence of a producer that it does not know: if the topic was deleted "
    "and made again, or the producer's records were deleted, nothing is wrong",
    STOPPED: "the logs do not show that the broker ran long enough since then: it may end them at its next start",
    NEWER: "what belongs to them may have been written since",
    CLOCKS: "the clocks of two brokers may differ as much",
    NAMED_BY_CLIENT: "with transactions v1 a client names partitions, and need not write there",
    TWICE: "offsets of this log are there twice",
    ANOTHER_TOPIC: "they are older than the log's first record: the topic may have been deleted and made again since",
    UNFINISHED: "the log ends here, so the rest may still be written",
}

_COLUMNS: Final = {
    "log": "string",
    "segment": "bigint",
    "offset": "bigint",
    "timestamp": "timestamp",
    "producer_id": "bigint",
    "producer_epoch": "smallint",
    "transactional_id": "string",
    "group": "string",
    "proof_log": "string",
    "proof_offset": "bigint",
    "detail": "string",
    "lost": "bigint",
    "why": "string",
}


def findings(
    rows: DataFrame, kind: str, detail: Column, lost: Column | None = None, why: Column | None = None
) -> DataFrame:
    """Rows of a check as candidates of a kind; columns that the check does not have are null.

    lost: the number of missing offsets that could explain it, by default 0. why: one of NOT_SURE; null: that number.
    """
    named = rows.withColumn("detail", detail).withColumn("lost", F.lit(0) if lost is None else lost)
    named = named.withColumn("why", F.lit(None).cast("string") if why is None else why)
    made = [
        (F.col(f"`{name}`") if name in named.columns else F.lit(None)).cast(kind_of).alias(name)
        for name, kind_of in _COLUMNS.items()
    ]
    return named.select(F.lit(kind).alias("kind"), *made)


def no_findings(spark: SparkSession) -> DataFrame:
    """An empty table of candidates."""
    columns = ", ".join(f"`{name}` {kind}" for name, kind in _COLUMNS.items())
    return spark.createDataFrame([], f"kind string, {columns}")


def doubt_ambiguous_logs(candidates: DataFrame, ambiguous: DataFrame) -> DataFrame:
    """The candidates; those that rest on one of these logs (column `log`) become doubts."""
    logs = F.broadcast(ambiguous.select(F.col("log").alias("ambiguous")))
    rests_on = (F.col("log") == F.col("ambiguous")) | (F.col("proof_log") == F.col("ambiguous"))
    sound = candidates.join(logs, rests_on, "left_anti")
    return sound.unionByName(doubted(candidates.join(logs, rests_on, "left_semi"), TWICE))


def doubted(candidates: DataFrame, why: str) -> DataFrame:
    """Candidates that become doubts, for one of NOT_SURE where they were none before."""
    is_new = F.col("lost") == 0
    return candidates.withColumn("why", F.when(is_new, F.lit(why)).otherwise(F.col("why"))).withColumn(
        "lost", F.greatest("lost", F.lit(1))
    )


def proven(candidates: DataFrame) -> DataFrame:
    """The findings among candidates: those that no missing offset could explain."""
    return candidates.where("lost = 0").drop("lost", "why")


def doubts(candidates: DataFrame) -> DataFrame:
    """The other candidates counted, one row a kind, log and `why`, with the offset of the first."""
    return (
        candidates.where("lost > 0")
        .groupBy("kind", "log", "why")
        .agg(F.count(F.lit(1)).alias("undecided"), F.min("offset").alias("first_offset"))
    )
