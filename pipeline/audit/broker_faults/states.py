"""Checks of the states that a transaction coordinator wrote: transactions that vanish, and producer ids used twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.audit.findings import PRODUCER_ID_TWICE, TRANSACTION_VANISHED, findings
from pipeline.engine import F
from pipeline.transforms.running import previous, with_running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REMOVED: Final = "nothing"  # the tombstone of a transactional id
# state -> those that cannot follow: the transaction, or the decision on it, would be gone.
_NEVER_AFTER: Final = {
    "Ongoing": ("Empty", "CompleteCommit", "CompleteAbort", "Dead", _REMOVED),
    "PrepareCommit": ("Empty", "Ongoing", "PrepareAbort", "CompleteAbort", "Dead", _REMOVED),
    "PrepareAbort": ("Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "Dead", _REMOVED),
}


def vanished(states: DataFrame) -> DataFrame:
    """Transactions that were neither committed nor aborted and are gone, or were decided twice.

    states: rows of the view `transactions`, with lost_before.

    Shape:   candidates (findings.py), one a record that cannot follow; the proof is the record before it.
    Source:  the states of Kafka's TransactionMetadata and what may precede each.
    """
    one = F.struct("now", "offset", "lost_before", "txn_producer_id", "txn_producer_epoch")
    told = states.where("kind = 'TransactionLog'").withColumn("now", F.coalesce("txn_state", F.lit(_REMOVED)))
    rows = with_running(told, ("log", "transactional_id"), {"prior": previous(one)}).withColumn(
        "prior", F.col("prior.value")
    )
    wrong = F.lit(False)
    for state, never in _NEVER_AFTER.items():
        wrong |= (F.col("prior.now") == state) & F.col("now").isin(*never)
    found = (
        rows.where(wrong)
        .withColumn("producer_id", F.col("prior.txn_producer_id"))
        .withColumn("producer_epoch", F.col("prior.txn_producer_epoch"))
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", F.col("prior.offset"))
    )
    detail = F.format_string(
        "%s of producer %d, epoch %d, was %s, and then %s",
        "transactional_id", "producer_id", "producer_epoch", "prior.now", "now",
    )  # fmt: skip  # several to a line
    return findings(found, TRANSACTION_VANISHED, detail, F.col("lost_before") - F.col("prior.lost_before"))


def shared_producer_ids(states: DataFrame) -> DataFrame:
    """Producer ids that two transactional ids have. states: rows of the view `transactions`.

    Shape:   candidates (findings.py), one a further transactional id, at its first record with the producer id; the
             proof is the first record of the first one.
    Source:  KIP-98: a producer id is allotted once.
    """
    place = F.struct("timestamp", "log", "offset", "segment", "txn_producer_epoch")
    firsts = (
        states.where("kind = 'TransactionLog' and txn_producer_id >= 0")
        .groupBy(F.col("txn_producer_id").alias("producer_id"), "transactional_id")
        .agg(F.min(place).alias("place"))
    )
    owners = firsts.groupBy("producer_id").agg(
        F.min(F.struct("place", "transactional_id")).alias("owner"), F.count(F.lit(1)).alias("ids")
    )
    rows = (
        firsts.join(owners.where("ids > 1"), "producer_id")
        .where("transactional_id != owner.transactional_id")
        .select(
            "producer_id",
            "transactional_id",
            "place.timestamp",
            "place.log",
            "place.offset",
            "place.segment",
            F.col("place.txn_producer_epoch").alias("producer_epoch"),
            F.col("owner.place.log").alias("proof_log"),
            F.col("owner.place.offset").alias("proof_offset"),
            F.col("owner.transactional_id").alias("owner"),
        )
    )
    detail = F.format_string(
        "producer %d is that of %s, and was that of %s", "producer_id", "transactional_id", "owner"
    )
    return findings(rows, PRODUCER_ID_TWICE, detail)
