"""Checks of producers' epochs and sequences: epochs that go back, sequences that come twice, not at all, or late.

Producers number their batches, coordinators do not: Apache Kafka's write base sequence 0 into every transactional batch
of `__consumer_offsets`.

Sequences count modulo 2**31. They are unrolled by adding up the signed distances between neighbours, so that a batch
can be compared with the highest sequence before it, and a late batch does not make all following ones wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.audit.findings import (
    CLOCKS,
    DUPLICATE_SEQUENCE,
    MISSING_SEQUENCE,
    REORDERED_SEQUENCE,
    STALE_PRODUCER_EPOCH,
    UNKNOWN_PRODUCER,
    findings,
)
from pipeline.audit.log_coverage import SEQUENCES
from pipeline.audit.transactions import GRACE_S
from pipeline.engine import F
from pipeline.transforms.running import LAST, MAX, MIN, SUM, Running, previous, with_running

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


OFFSETS_TOPIC: Final = "__consumer_offsets"
COORDINATOR_TOPICS: Final = (OFFSETS_TOPIC, "__transaction_state", "__share_group_state")


def stale_epochs(found: DataFrame) -> DataFrame:
    """Batches and markers whose producer had a higher epoch earlier in the same log. found: rows of `batches`.

    Shape:   candidates (findings.py), one a batch; the proof is the first batch with the highest epoch before.
    Source:  KIP-98: a producer is fenced by a higher epoch.
    """
    rows = (
        with_running(found.where("producer_id >= 0"), ("log", "producer_id"), {"known": _highest_epoch()})
        .where("producer_epoch < known.producer_epoch")
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", -F.col("known.minus"))
    )
    detail = F.format_string(
        "producer %d wrote with epoch %d after epoch %d at offset %d",
        "producer_id", "producer_epoch", "known.producer_epoch", "proof_offset",
    )  # fmt: skip  # several to a line
    return findings(rows, STALE_PRODUCER_EPOCH, detail)


def _highest_epoch() -> Running:
    """The highest epoch before a row, and the offset, negated, at which it came first."""
    return Running(MAX, F.struct("producer_epoch", (-F.col("offset")).alias("minus")))


def fenced_by_coordinator(states: DataFrame, data: DataFrame) -> DataFrame:
    """Writes with an epoch that the producer's coordinator had replaced, though their own log does not show it.

    states: rows of the view `transactions`; data: of with_transaction_end. In the coordinator's log the order decides.
    Elsewhere the brokers' clocks do: only records that a broker dated count, and less than GRACE_S is a doubt. Records
    that a marker has ended were on their way, or foreign_data has them.

    Shape:   candidates (findings.py), one a state or batch; the proof is the first record of a newer epoch.
    Source:  KIP-360, KIP-890: the coordinator raises the epoch to fence a producer.
    """
    told = states.where("kind = 'TransactionLog' and txn_producer_id >= 0").select(
        "log", "segment", "offset", "timestamp", "transactional_id", F.col("txn_producer_id").alias("producer_id"),
        F.col("txn_producer_epoch").alias("producer_epoch"),
    )  # fmt: skip  # several to a line
    rows = (
        with_running(told, ("log", "transactional_id", "producer_id"), {"known": _highest_epoch()})
        .where("producer_epoch < known.producer_epoch")
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", -F.col("known.minus"))
    )
    detail = F.format_string(
        "the coordinator of producer %d took a change with epoch %d after epoch %d",
        "producer_id", "producer_epoch", "known.producer_epoch",
    )  # fmt: skip  # several to a line
    return findings(rows, STALE_PRODUCER_EPOCH, detail).unionByName(_written_after_bump(told, data))


def _written_after_bump(told: DataFrame, data: DataFrame) -> DataFrame:
    bump = F.struct("timestamp", F.col("log").alias("proof_log"), F.col("offset").alias("proof_offset"))
    epochs = told.groupBy("producer_id", F.col("producer_epoch").alias("new_epoch")).agg(F.min(bump).alias("bump"))
    is_dated = (F.col("timestamp_type") == "LogAppendTime") | (F.col("topic") == OFFSETS_TOPIC)
    rows = (
        data.where(is_dated & F.col("ended_by").isNull())
        .join(epochs, "producer_id")
        .where("new_epoch > producer_epoch and bump.timestamp < timestamp")
        .groupBy("log", "segment", "offset", "timestamp", "producer_id", "producer_epoch")
        .agg(F.min(F.struct("bump", "new_epoch")).alias("first"))
        .select("*", "first.new_epoch", "first.bump.proof_log", "first.bump.proof_offset")
    )
    detail = F.format_string(
        "producer %d wrote with epoch %d after its coordinator had raised it to %d",
        "producer_id", "producer_epoch", "new_epoch",
    )  # fmt: skip  # several to a line
    since = F.unix_micros("timestamp") - F.unix_micros("first.bump.timestamp")
    is_sure = since > GRACE_S * 1_000_000
    why = F.when(~is_sure, F.lit(CLOCKS))
    return findings(rows, STALE_PRODUCER_EPOCH, detail, F.when(is_sure, 0).otherwise(1), why)


def sequence_faults(found: DataFrame) -> DataFrame:
    """Ranges of sequences of producers that are missing, appended twice, or appended late. found: rows of `batches`.

    Shape:   candidates (findings.py), one a batch; the proof is the batch that it repeats, or the highest one before.
    Units:   a sequence counts records of a producer epoch in a log, modulo 2**31.
    Source:  KIP-98.
    """
    rows = _unrolled(found.where(~F.col("topic").isin(*COORDINATOR_TOPICS)))
    late = rows.where("first <= highest")
    earlier = rows.select(
        "log",
        "producer_id",
        "producer_epoch",
        F.col("first").alias("other_first"),
        F.col("last").alias("other_last"),
        F.col("offset").alias("other_offset"),
    )
    same = ["log", "producer_id", "producer_epoch"]
    overlaps = (
        late.join(earlier, same)
        .where("other_offset < offset and other_first <= last and other_last >= first")
        .groupBy(*same, "offset")
        .agg(F.max("other_offset").alias("proof_offset"))
    )
    late = late.join(overlaps, [*same, "offset"], "left").withColumn("proof_log", F.col("log"))
    twice = late.where("proof_offset is not null")
    reordered = late.where("proof_offset is null").withColumn("proof_offset", F.col("highest_offset"))
    filled = reordered.select(*same, F.col("first").alias("late_first"), F.col("last").alias("late_last"))
    return (
        findings(twice, DUPLICATE_SEQUENCE, _text("%s were already appended at offset %d", "proof_offset"))
        .unionByName(findings(reordered, REORDERED_SEQUENCE, _text("%s came after higher ones", None)))
        .unionByName(_missing(rows, filled))
    )


def _unrolled(found: DataFrame) -> DataFrame:
    """Batches of data with unrolled first and last sequence, and the highest sequence before in the same epoch."""
    same = ("log", "producer_id", "producer_epoch")
    base, half = F.col("base_sequence"), SEQUENCES // 2
    step = F.pmod(base - F.col("previous") + half, F.lit(SEQUENCES)) - half
    own = found.where("producer_id >= 0")
    in_log = with_running(own, ("log", "producer_id"), {"in_log": previous(F.col("lost_before"))})
    in_log = in_log.withColumn("is_known", F.col("in_log").isNotNull())
    in_log = in_log.withColumn("in_log", F.coalesce("in_log.value", F.lit(0)))
    begun = {
        "begun": Running(MIN, F.struct("offset", "in_log"), inclusive=True),  # an epoch may begin with markers
        "previous": Running(LAST, base),
    }
    # Cut off from its plan: each running value computes what is below it twice.
    steps = (
        with_running(in_log, same, begun)
        .where("base_sequence is not null")
        .withColumn("step", F.coalesce(step, base))
        .localCheckpoint()
    )
    placed = (
        with_running(steps, same, {"first": Running(SUM, F.col("step"), inclusive=True)})
        .withColumn("last", F.col("first") + F.col("last_offset") - F.col("offset"))
        .localCheckpoint()
    )
    return (
        with_running(placed, same, {"top": Running(MAX, F.struct("last", "offset", "lost_before"))})
        .withColumn("highest", F.coalesce("top.last", F.lit(-1)))
        .withColumn("highest_offset", F.col("top.offset"))
        .withColumn("lost_since", F.col("lost_before") - F.coalesce("top.lost_before", "begun.in_log"))
    )


def _missing(rows: DataFrame, filled: DataFrame) -> DataFrame:
    """Jumps ahead, less the sequences that came later. `lost` is set where missing offsets could hold the records.

    The first batch of a producer in a log may have any sequence: its broker knows none before it, as in a topic that
    was made again while the producer ran.
    """
    same = ["log", "producer_id", "producer_epoch"]
    jumps = (
        rows.where("first > highest + 1")
        .withColumn("count", F.col("first") - F.col("highest") - 1)
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", F.col("highest_offset"))
    )
    inside = (F.col("late_first") > F.col("highest")) & (F.col("late_last") < F.col("first"))
    by_late = (
        jumps.join(filled, same)
        .where(inside)
        .groupBy(*same, "offset")
        .agg(F.sum(F.col("late_last") - F.col("late_first") + 1).alias("found_late"))
    )
    jumps = (
        jumps.join(by_late, [*same, "offset"], "left")
        .withColumn("count", F.col("count") - F.coalesce("found_late", F.lit(0)))
        .where("count > 0")
    )
    first = F.pmod(F.col("highest") + 1, F.lit(SEQUENCES))
    last = F.pmod(F.col("first") - 1, F.lit(SEQUENCES))
    detail = F.format_string(
        "sequences %d to %d of producer %d, epoch %d, are not in the log before this one: %d records",
        first, last, "producer_id", "producer_epoch", "count",
    )  # fmt: skip  # several to a line
    # Every record takes an offset: fewer missing offsets than missing records cannot explain them.
    lost = F.when(F.col("lost_since") >= F.col("count"), F.col("lost_since")).otherwise(F.lit(0))
    is_first = ~F.col("is_known")
    why = F.when(is_first & (lost == 0), F.lit(UNKNOWN_PRODUCER))
    return findings(jumps, MISSING_SEQUENCE, detail, F.when(is_first, F.greatest(lost, F.lit(1))).otherwise(lost), why)


def _text(what: str, place: str | None) -> Column:
    sequences = F.format_string(
        "sequences %d to %d of producer %d, epoch %d,",
        "base_sequence", F.pmod(F.col("last"), F.lit(SEQUENCES)), "producer_id", "producer_epoch",
    )  # fmt: skip  # several to a line
    return F.format_string(what, sequences, place) if place else F.format_string(what, sequences)
