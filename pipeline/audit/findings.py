"""Findings: their kinds, their columns, and how candidates become findings or doubts.

A candidate has the log position that proves it, the position that it contradicts, and `lost`, the number of missing
offsets that could explain it. Without any it is a finding, else a doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

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
}


def findings(rows: DataFrame, kind: str, detail: Column, lost: Column | None = None) -> DataFrame:
    """Rows of a check as candidates of a kind; columns that the check does not have are null.

    lost: the number of missing offsets that could explain it, by default 0.
    """
    named = rows.withColumn("detail", detail).withColumn("lost", F.lit(0) if lost is None else lost)
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
    return sound.unionByName(
        candidates.join(logs, rests_on, "left_semi").withColumn("lost", F.greatest("lost", F.lit(1)))
    )


def proven(candidates: DataFrame) -> DataFrame:
    """The findings among candidates: those that no missing offset could explain."""
    return candidates.where("lost = 0").drop("lost")


def doubts(candidates: DataFrame) -> DataFrame:
    """The other candidates counted, one row a kind and log, with the offset of the first."""
    return (
        candidates.where("lost > 0")
        .groupBy("kind", "log")
        .agg(F.count(F.lit(1)).alias("undecided"), F.min("offset").alias("first_offset"))
    )
