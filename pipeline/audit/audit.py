"""The audit as a whole: the three views of the logs in, findings, doubts, coverage and transactions out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from pipeline.audit import commits as of_groups
from pipeline.audit import endings, members, sequences
from pipeline.audit import transactions as txns
from pipeline.audit.findings import doubt_ambiguous_logs, doubts, proven
from pipeline.audit.log_coverage import (
    BATCH_COLUMNS,
    absent_logs,
    batches,
    before_ends,
    coverage,
    log_gaps,
    log_summaries,
    recreated_logs,
    with_lost_before,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

# What is looked at of each view.
COLUMNS: Final = {
    "raw": BATCH_COLUMNS,
    "offsets": (
        "log", "segment", "offset", "timestamp", "producer_id", "producer_epoch", "transactional", "control", "kind",
        "tombstone", "group", "commit_topic", "commit_partition", "commit_offset", "commit_topic_id", "member_id",
        "instance_id", "generation", "client_id", "commit_id", "commit_size", "key_json", "value_json",
    ),
    "transactions": (
        "log", "segment", "offset", "timestamp", "kind", "transactional_id", "txn_producer_id",
        "txn_producer_epoch", "txn_state", "txn_timeout_ms", "txn_partitions", "txn_start", "txn_update",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Audit:
    """What came out.

    findings      one row each, with the log position that proves it; none that something missing could explain
    doubts        how many places of each kind and log something missing could explain
    coverage      one row a log: what of it was there
    gaps          one row a range of offsets that was not there, with the reason
    transactions  one row each, with markers, data and offsets
    """

    findings: DataFrame
    doubts: DataFrame
    coverage: DataFrame
    gaps: DataFrame
    transactions: DataFrame

    def tables(self) -> dict[str, DataFrame]:
        """By the name they are written under."""
        return {
            "findings": self.findings,
            "doubts": self.doubts,
            "coverage": self.coverage,
            "gaps": self.gaps,
            "transactions": self.transactions,
        }


class AuditInput(NamedTuple):
    """What the checks look at.

    found     batches of all logs
    offsets   rows of `__consumer_offsets`
    states    rows of `__transaction_state`; all three with lost_before
    known     rows of log_coverage.log_summaries
    twice     rows of log_coverage.recreated_logs
    """

    found: DataFrame
    offsets: DataFrame
    states: DataFrame
    known: DataFrame
    twice: DataFrame


class CheckResults(NamedTuple):
    """What the checks say, and what they made on their way."""

    candidates: DataFrame
    transactions: DataFrame
    expected: DataFrame
    pairs: DataFrame
    data: DataFrame
    commits: DataFrame


class ArchiveFacts(NamedTuple):
    """What is known of the logs of an archive: where each stood when it came to it, and where it is settled."""

    began: Mapping[str, int]
    settled: Mapping[str, int]


def audit(raw: DataFrame, offsets: DataFrame, states: DataFrame, archived: ArchiveFacts | None = None) -> Audit:
    """raw must hold the batches of all logs, `__consumer_offsets` included; the others are the views of their names.

    Each input is read once, and what is needed of it kept: batches, not records, of the data.
    """
    found, offsets, states = (
        materialized(rows) for rows in (batches(raw), with_lost_before(offsets), with_lost_before(states))
    )
    seen = AuditInput(found, offsets, states, materialized(log_summaries(found)), materialized(recreated_logs(found)))
    made = run_checks(seen) if archived is None else _as_settled(seen, archived.settled)
    began = None if archived is None else archived.began
    missing = materialized(log_gaps(found, found, began).unionByName(absent_logs(found, made.expected)))
    return Audit(
        findings=proven(made.candidates).orderBy("log", "offset", "kind"),
        doubts=doubts(made.candidates).orderBy("kind", "log"),
        coverage=coverage(seen.known, missing, seen.twice).orderBy("log"),
        gaps=missing.orderBy("log", "from_offset"),
        transactions=txns.details(made.transactions, made.pairs, made.data, made.commits),
    )


def run_checks(seen: AuditInput, limits: DataFrame | None = None) -> CheckResults:
    """Run all checks. limits: see `newest`."""
    found, offsets, states, known, twice = seen
    data = materialized(txns.with_transaction_end(found))
    all_commits = of_groups.commits(offsets)
    told = materialized(txns.transactions(states))
    expected = txns.expected_markers(told)
    actual = txns.markers(found)
    pairs = materialized(txns.matched(expected, actual))
    missing = endings.untold(expected, pairs)
    by_group = members.with_group(offsets)
    topic_ids = all_commits.select(F.col("commit_topic").alias("topic"), F.col("commit_topic_id").alias("topic_id"))
    candidates = reduce(
        lambda one, other: one.unionByName(other),
        [
            sequences.stale_epochs(found),
            sequences.sequence_faults(found),
            endings.wrong_markers(pairs, known),
            endings.untold_partitions(missing, data, known),
            endings.stray_markers(actual, pairs, states),
            endings.foreign_data(data, pairs),
            endings.hanging(data, told, missing, known, states, newest(actual, offsets, states, limits=limits)),
            of_groups.regressions(of_groups.effective(all_commits)),
            of_groups.incomplete(offsets),
            members.stale_generations(by_group),
            members.stale_epochs(by_group, topic_ids.where("topic_id is not null").distinct()),
        ],
    )
    return CheckResults(materialized(doubt_ambiguous_logs(candidates, twice)), told, expected, pairs, data, all_commits)


def _as_settled(seen: AuditInput, ends: Mapping[str, int]) -> CheckResults:
    """The checks, with doubts where one view of an archive may be further than another."""
    places = [(row["log"], ends.get(row["log"], 0)) for row in seen.known.select("log").collect()]
    limits = seen.known.sparkSession.createDataFrame(places, "at string, end long")
    made = run_checks(seen, limits)
    inside = before_ends(before_ends(made.candidates, limits), limits, "proof_log", "proof_offset")
    beyond = made.candidates.exceptAll(inside).withColumn("lost", F.greatest("lost", F.lit(1)))
    return made._replace(candidates=materialized(inside.unionByName(beyond)))


def materialized(rows: DataFrame) -> DataFrame:
    """The rows, computed, with the plan that made them forgotten.

    Each of these is asked for several times and joined with itself; Spark would copy and plan all that lies below
    each time: 22 s of 70 for the tests' logs.
    """
    return rows.localCheckpoint()


def newest(*rows: DataFrame, limits: DataFrame | None) -> DataFrame:
    """The last time that a broker, and not a client, wrote into a log: `newest`, one row."""
    times = [(part if limits is None else before_ends(part, limits)).select("timestamp") for part in rows]
    return reduce(lambda one, other: one.unionByName(other), times).agg(F.max("timestamp").alias("newest"))
