"""Checks of how transactions ended: missing, wrong and stray markers, and transactions that never end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.audit.findings import (
    HANGING_TRANSACTION,
    MARKER_AGAINST_DECISION,
    MARKER_WITHOUT_TRANSACTION,
    NAMED_BY_CLIENT,
    STALE_PRODUCER_EPOCH,
    STOPPED,
    TRANSACTION_WITHOUT_MARKER,
    TRANSACTION_WITHOUT_RECORDS,
    findings,
)
from pipeline.audit.transactions import COMPLETE, GRACE_S, KEY
from pipeline.engine import F
from pipeline.transforms.running import previous, with_running

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

UNREAD: Final = 2**62  # the number of missing offsets of a log that is not there at all


def wrong_markers(pairs: DataFrame, known: DataFrame) -> DataFrame:
    """Markers that say the opposite of the coordinator's decision. known: rows of log_coverage.log_summaries.

    With transactions v2 (KIP-890) an epoch belongs to one transaction, so marker and transaction match for sure.
    Before, they are matched by their number, which holds only if no record is missing.

    Shape:   candidates (findings.py), one a marker; the proof is the coordinator's Prepare record.
    """
    lost = known.select("log", "log_lost")
    rows = (
        pairs.where("control != decision")
        .join(lost, "log", "left")
        .join(lost.toDF("coordinator_log", "coordinator_lost"), "coordinator_log", "left")
        .withColumn("offset", F.col("marker_offset"))
        .withColumn("right_epoch", F.col("producer_epoch"))
        .withColumn("producer_epoch", F.col("marker_epoch"))
        .withColumn("proof_log", F.col("coordinator_log"))
        .withColumn("proof_offset", F.col("prepared_offset"))
    )
    detail = F.format_string("the marker says %s, but the coordinator decided %s", "control", "decision")
    is_alone = F.coalesce(F.col("marker_epoch") > F.col("right_epoch"), F.lit(False))
    missing = F.when(is_alone, 0).otherwise(F.col("log_lost") + F.col("coordinator_lost"))
    return findings(rows, MARKER_AGAINST_DECISION, detail, missing)


def unmarked(expected: DataFrame, pairs: DataFrame) -> DataFrame:
    """The partitions of complete transactions that have no marker of them. Rows of expected_markers and `matched`."""
    return expected.where(F.col("state").isin(*COMPLETE)).join(pairs.select(*KEY, "log"), [*KEY, "log"], "left_anti")


def unmarked_partitions(missing: DataFrame, data: DataFrame, known: DataFrame) -> DataFrame:
    """Partitions without the marker of a complete transaction. missing: rows of `unmarked`; known: of log_summaries.

    Shape:   candidates (findings.py), one a partition, at the record that completes the transaction; the proof is the
             transaction's first data in the partition.
    """
    first = F.min_by(F.struct("offset", "lost_before"), "offset")
    begun = data.groupBy("log", "producer_id", "producer_epoch").agg(first.alias("data"))
    rows = (
        missing.join(known.drop("topic"), "log", "left")
        .join(begun, ["log", "producer_id", "producer_epoch"], "left")
        .withColumnRenamed("log", "proof_log")
        .withColumn("proof_offset", F.col("data.offset"))
        .withColumn("log", F.col("coordinator_log"))
        .withColumn("segment", F.col("coordinator_segment"))
        .withColumn("offset", F.col("completed_offset"))
        .withColumn("timestamp", F.col("decided"))
    )
    # With transactions v2 an epoch has one transaction, so its data were written in this one. Before, they may be those
    # of a later one, and what is missing before them counts too.
    is_v2 = F.coalesce(F.col("marker_epoch") > F.col("producer_epoch"), F.lit(False))
    before = F.when(is_v2, F.coalesce("data.lost_before", F.lit(0))).otherwise(0)
    # A log that begins after the decision belongs to another topic of the same name, unless it has data of this
    # transaction. Before transactions v2, its data may be those of a later one.
    no_data = F.col("data").isNull() | ~is_v2
    younger = no_data & (F.col("first_timestamp") > F.col("decided"))
    lost = F.when(F.col("end_offset").isNull() | younger, F.lit(UNREAD)).otherwise(F.col("log_lost") - before)
    what = ("transactional_id", "proof_log", "decision")
    detail = F.format_string("%s is complete, but %s has no %s marker of it", *what)
    return findings(rows, TRANSACTION_WITHOUT_MARKER, detail, lost)


def stray_markers(actual: DataFrame, pairs: DataFrame, states: DataFrame) -> DataFrame:
    """Markers that match no transaction of any coordinator.

    actual: rows of transactions.markers; pairs: of `matched`; states: of the view `transactions`, with lost_before.

    Shape:   candidates (findings.py), one a marker, without a proof.
    """
    rows = (
        actual.join(pairs.select("log", F.col("marker_offset").alias("offset")), ["log", "offset"], "left_anti")
        .join(_homes(states), "producer_id", "left")
        .crossJoin(F.broadcast(_lost_states(states)))
    )
    detail = F.format_string(
        "a %s marker of producer %d, epoch %d, but no coordinator had such a transaction here",
        "control", "producer_id", "producer_epoch",
    )  # fmt: skip  # several to a line
    return findings(rows, MARKER_WITHOUT_TRANSACTION, detail, F.coalesce("home_lost", "all_lost"))


def without_records(pairs: DataFrame, actual: DataFrame, data: DataFrame) -> DataFrame:
    """Partitions that a committed transaction names and that have no record of it.

    pairs: rows of `matched`; actual: of transactions.markers; data: of with_transaction_end. Its records are after the
    producer's marker before, and before that of the end. With transactions v2 (KIP-890: the marker's epoch is the next
    one) a broker adds a partition when it takes records for it. Before, clients add it: then it is only a doubt.

    Shape:   candidates (findings.py), one a partition, at the marker; the proof is the coordinator's Prepare record.
    """
    before = {"before": previous(F.col("lost_before"))}
    since = F.col("lost_before") - F.coalesce("before.value", F.lit(0))
    between = with_running(actual.select("log", "producer_id", "offset", "lost_before"), ("log", "producer_id"), before)
    between = between.select("log", F.col("offset").alias("marker_offset"), since.alias("between"))
    written = data.select("log", F.col("ended_by").alias("marker_offset")).distinct()
    rows = (
        pairs.where("decision = 'COMMIT' and control = 'COMMIT'")
        .join(written, ["log", "marker_offset"], "left_anti")
        .join(between, ["log", "marker_offset"])
        .withColumn("offset", F.col("marker_offset"))
        .withColumn("right_epoch", F.col("producer_epoch"))
        .withColumn("producer_epoch", F.col("marker_epoch"))
        .withColumn("proof_log", F.col("coordinator_log"))
        .withColumn("proof_offset", F.col("prepared_offset"))
    )
    is_v2 = F.coalesce(F.col("marker_epoch") > F.col("right_epoch"), F.lit(False))
    detail = F.format_string("%s was committed, but has no record here", "transactional_id")
    lost = F.when(is_v2, F.col("between")).otherwise(F.greatest("between", F.lit(1)))
    why = F.when(~is_v2 & (F.col("between") <= 0), F.lit(NAMED_BY_CLIENT))
    return findings(rows, TRANSACTION_WITHOUT_RECORDS, detail, lost, why)


def foreign_data(data: DataFrame, pairs: DataFrame) -> DataFrame:
    """Data with another epoch than the transaction whose marker ended it.

    data: rows of with_transaction_end; pairs: of `matched`.

    Shape:   candidates (findings.py), one a batch; the proof is the coordinator's Prepare record.
    """
    ends = pairs.select(
        "log",
        F.col("marker_offset").alias("ended_by"),
        "transactional_id",
        F.col("producer_epoch").alias("right_epoch"),
        F.col("coordinator_log").alias("proof_log"),
        F.col("prepared_offset").alias("proof_offset"),
    )
    rows = (
        data.join(ends, ["log", "ended_by"])
        .where("producer_epoch != right_epoch")
        .where("known_epoch is null or known_epoch <= producer_epoch")  # else sequences.stale_epochs reports it
    )
    detail = F.format_string(
        "producer %d wrote with epoch %d into a transaction of epoch %d", "producer_id", "producer_epoch", "right_epoch"
    )
    return findings(rows, STALE_PRODUCER_EPOCH, detail)


def hanging(
    data: DataFrame, found: DataFrame, missing: DataFrame, known: DataFrame, states: DataFrame, running: DataFrame
) -> DataFrame:
    """Open data whose transaction will never end.

    data: of with_transaction_end; found: of `transactions`; missing: of `unmarked`; known: of log_summaries; running:
    the row of `running`. A coordinator that was down ends what has timed out when it is there again: it is a doubt as
    long as the logs do not show a broker that ran on for LONG_S after the time-out.

    Shape:   candidates (findings.py), one a producer and log, at its first open record; the proof is the coordinator's
             last record of the transaction, if it has one.
    Units:   a transaction has timed out after its timeout_ms and GRACE_S seconds, by the brokers' clocks.
    """
    last = F.max_by(F.struct("state", "producer_id", "producer_epoch", "started", "timeout_ms", "decided"), "number")
    now = found.groupBy("coordinator_log", "transactional_id").agg(
        last.alias("txn"), F.max_by("partitions", "number").alias("partitions"), F.max("last_offset").alias("at")
    )
    named = now.select(
        F.col("txn.producer_id").alias("producer_id"),
        F.explode("partitions").alias("place"),
        "transactional_id",
        "txn",
        F.col("coordinator_log").alias("proof_log"),
        F.col("at").alias("proof_offset"),
    ).withColumn("log", F.concat("place.topic", F.lit("-"), "place.partition"))
    first = F.min_by(F.struct("offset", "segment", "timestamp", "producer_epoch", "lost_before"), "offset")
    opened = (
        data.where("ended_by is null")
        .groupBy("log", "producer_id")
        .agg(first.alias("first"))
        .select("log", "producer_id", "first.*")
    )
    reported = missing.select("log", "producer_id").distinct()
    rows = (
        opened.join(reported, ["log", "producer_id"], "left_anti")
        .join(named, ["log", "producer_id"], "left")
        .join(_homes(states), "producer_id", "left")
        .crossJoin(F.broadcast(_lost_states(states)))
        .crossJoin(F.broadcast(running))
        .join(known.select("log", "log_lost"), "log")
        .withColumn("state", _open_state())
        .withColumn("due", _due())
        .where("state is not null")
    )
    lost = F.col("log_lost") - F.col("lost_before") + F.coalesce("home_lost", "all_lost")
    detail = F.format_string(
        "producer %d, epoch %d, has records from here on without a marker: %s", "producer_id", "producer_epoch", "state"
    )
    late = F.col("due").isNotNull() & ~F.coalesce(F.col("ran_until") > F.col("due"), F.lit(False))
    why = F.when(late & (lost == 0), F.lit(STOPPED))
    return findings(rows, HANGING_TRANSACTION, detail, F.when(late, F.greatest(lost, F.lit(1))).otherwise(lost), why)


def _due() -> Column:
    """By when a coordinator that runs has ended the transaction; null: it does not depend on the time."""
    txn = F.col("txn")
    grace, timeout = GRACE_S * 1_000_000, txn["timeout_ms"].cast("bigint") * 1000
    timed_out = F.timestamp_micros(F.unix_micros(txn["started"]) + timeout + grace)
    decided = F.timestamp_micros(F.unix_micros(txn["decided"]) + grace)
    return F.when((txn["state"] == "Ongoing") & (txn["producer_epoch"] == F.col("producer_epoch")), timed_out).when(
        txn["state"].isin("PrepareCommit", "PrepareAbort"), decided
    )


def _open_state() -> Column:
    """Why open data will stay open; null: its transaction is in progress."""
    txn = F.col("txn")
    late = slow = F.col("newest") > _due()
    return (
        F.when(txn.isNull(), F.lit("no coordinator has such a transaction"))
        .when(
            (txn["state"] == "Ongoing") & (txn["producer_epoch"] == F.col("producer_epoch")),
            F.when(late, F.lit("it has timed out but was not aborted")),
        )
        .when(txn["state"].isin("PrepareCommit", "PrepareAbort"), F.when(slow, F.lit("it was decided but not ended")))
        .otherwise(F.lit("its coordinator has no open transaction"))
    )


def _homes(states: DataFrame) -> DataFrame:
    """producer_id, home_lost: the number of missing offsets in the log of its coordinator."""
    lost = states.groupBy("log").agg(F.max("lost_before").alias("home_lost"))
    return (
        states.where("txn_producer_id is not null")
        .select("log", F.col("txn_producer_id").alias("producer_id"))
        .distinct()
        .join(lost, "log")
        .groupBy("producer_id")
        .agg(F.max("home_lost").alias("home_lost"))
    )


def _lost_states(states: DataFrame) -> DataFrame:
    """One row, all_lost: the number of missing offsets in all coordinators' logs; UNREAD when there are no logs."""
    lost = states.groupBy("log").agg(F.max("lost_before").alias("lost"))
    return lost.agg(F.coalesce(F.sum("lost"), F.lit(UNREAD)).alias("all_lost"))
