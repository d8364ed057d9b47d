"""The audit as a whole: from the three views of the logs to findings, doubts, coverage, gaps and transactions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.audit import commits as group_commits
from pipeline.audit import endings, members, sequences
from pipeline.audit import transactions as txns
from pipeline.audit.broker_faults import owners
from pipeline.audit.broker_faults import states as coordinators
from pipeline.audit.broker_faults.logs import commits_beyond_end, log_faults
from pipeline.audit.broker_faults.running_time import running
from pipeline.audit.findings import NEWER, doubt_ambiguous_logs, doubted, doubts, proven
from pipeline.audit.log_coverage import (
    BATCH_COLUMNS,
    absent_logs,
    batches,
    before_ends,
    coverage,
    log_gaps,
    log_summaries,
    recreated_logs,
    with_end_rows,
    with_lost_before,
)
from pipeline.audit.sequences import COORDINATOR_TOPICS
from pipeline.audit.shares import ShareInput, share_findings
from pipeline.engine import F
from pipeline.schema import TOPICS
from pipeline.transforms.missing_offsets import BLOCK_OFFSETS
from pipeline.transforms.running import plain_windows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import DataFrame

FEW_ROWS: Final = BLOCK_OFFSETS  # of a log, that one task sorts as a whole
# The columns that are needed of each view.
COLUMNS: Final = {
    "raw": BATCH_COLUMNS,
    "offsets": (
        "log", "segment", "batch_base_offset", "batch_records", "offset", "timestamp", "leader_epoch", "producer_id",
        "producer_epoch", "transactional", "control", "kind",
        "tombstone", "group", "commit_topic", "commit_partition", "commit_offset", "commit_topic_id", "member_id",
        "instance_id", "generation", "client_id", "commit_id", "commit_size", "key_json", "value_json",
    ),
    "transactions": (
        "log", "segment", "offset", "timestamp", "leader_epoch", "kind", "transactional_id", "txn_producer_id",
        "txn_producer_epoch", "txn_state", "txn_timeout_ms", "txn_partitions", "txn_start", "txn_update",
    ),
}  # fmt: skip  # several to a line


@dataclass(frozen=True, slots=True)
class Audit:
    """The result.

    findings      one row each, with the log position that proves it; none that missing records could explain
    undecided     one row a case that missing records could explain, as in findings, with `lost`, their number
    doubts        the same counted: one row a kind and log
    coverage      one row a log: what of it was there
    gaps          one row a range of missing offsets, with the reason
    transactions  one row each, with markers, data and offsets
    unnamed       one row a log and group with commits that name no member: what needs one cannot be decided there
    is_live       the logs grew meanwhile: cases beyond the first look at their ends are undecided
    """

    findings: DataFrame
    undecided: DataFrame
    doubts: DataFrame
    coverage: DataFrame
    gaps: DataFrame
    transactions: DataFrame
    unnamed: DataFrame
    is_live: bool = False

    def tables(self) -> dict[str, DataFrame]:
        """All of them, by the name of the table to write."""
        return {
            "findings": self.findings,
            "undecided": self.undecided,
            "doubts": self.doubts,
            "coverage": self.coverage,
            "gaps": self.gaps,
            "transactions": self.transactions,
            "unnamed": self.unnamed,
        }


class AuditInput(NamedTuple):
    """What the checks read.

    batches   of all logs
    offsets   rows of `__consumer_offsets`
    states    rows of `__transaction_state`; all three with lost_before
    known     rows of log_coverage.log_summaries
    twice     rows of log_coverage.recreated_logs
    shares    of share groups; None: they are not audited
    cleaned   the logs that the cleaner has been at; None: not known
    is_archive  the rows are those of an archive, where one table may be ahead of another
    is_whole  batches without a producer are there too
    """

    batches: DataFrame
    offsets: DataFrame
    states: DataFrame
    known: DataFrame
    twice: DataFrame
    shares: ShareInput | None = None
    cleaned: Collection[str] | None = None
    is_archive: bool = False
    is_whole: bool = True


class CheckResults(NamedTuple):
    """The candidates for findings, and the tables that the checks made on the way."""

    candidates: DataFrame
    transactions: DataFrame
    expected: DataFrame
    pairs: DataFrame
    data: DataFrame
    commits: DataFrame


class ArchiveFacts(NamedTuple):
    """What an archive or a running broker knows about its logs.

    starts    the end of each log when its archive began; None: it is no archive
    complete  the offset of each below which nothing that belongs to its records is still to come
    """

    starts: Mapping[str, int] | None
    complete: Mapping[str, int]


def audit(
    raw: DataFrame,
    offsets: DataFrame,
    states: DataFrame,
    archived: ArchiveFacts | None = None,
    shares: ShareInput | None = None,
    ends: DataFrame | None = None,
    cleaned: Collection[str] | None = None,
) -> Audit:
    """Audit rows of the three views with COLUMNS. archived: None for a data directory.

    raw must hold all logs, `__consumer_offsets` and `__transaction_state` included. Each input is read once; of raw,
    batches are kept and not records. ends: rows of log, topic, partition, end (an offset) of every log, where they are
    known; None: a log ends with its last record that is there. cleaned: see AuditInput.
    """
    if ends is not None:
        offsets = with_end_rows(offsets, ends.where(F.col("topic") == TOPICS["offsets"]))
        states = with_end_rows(states, ends.where(F.col("topic") == TOPICS["transactions"]))
    parts = batches(raw, ends=ends), with_lost_before(offsets), with_lost_before(states)
    found, offsets, states = map(materialized, parts)
    known, twice = materialized(log_summaries(found)), materialized(recreated_logs(found))
    seen = AuditInput(
        found, offsets, states, known, twice, shares, cleaned, is_archive=archived is not None and ends is None
    )
    made = run_checks(seen) if archived is None else _run_checks_below(seen, archived.complete)
    began = None if archived is None else archived.starts
    missing = materialized(log_gaps(found, found, began, cleaned).unionByName(absent_logs(found, made.expected)))
    return Audit(
        findings=proven(made.candidates).orderBy("log", "offset", "kind"),
        undecided=made.candidates.where("lost > 0").orderBy("log", "offset", "kind"),
        doubts=doubts(made.candidates).orderBy("kind", "log"),
        coverage=coverage(seen.known, missing, seen.twice).orderBy("log"),
        gaps=missing.orderBy("log", "from_offset"),
        transactions=txns.details(made.transactions, made.pairs, made.data, made.commits),
        unnamed=group_commits.without_members(offsets).orderBy("log", "group"),
    )


def run_checks(seen: AuditInput, limits: DataFrame | None = None) -> CheckResults:
    """Run all checks. limits: see `running`."""
    with plain_windows(wanted=_longest(seen.known) <= FEW_ROWS):
        return _run_checks(seen, limits)


def _longest(known: DataFrame) -> int:
    """The most rows that the checks read of one log: records of coordinators' logs, batches of the others."""
    rows = F.when(F.col("topic").isin(*COORDINATOR_TOPICS), F.col("records")).otherwise(F.col("batches"))
    return int(known.agg(F.max(rows)).collect()[0][0] or 0)


def _run_checks(seen: AuditInput, limits: DataFrame | None) -> CheckResults:
    all_batches, offsets, states, known, twice, shares = seen[:6]
    data = materialized(txns.with_transaction_end(all_batches))
    all_commits = group_commits.commits(offsets)
    decided = materialized(txns.transactions(states))
    expected = txns.expected_markers(decided)
    actual = txns.markers(all_batches)
    pairs = materialized(txns.matched(expected, actual))
    missing = endings.unmarked(expected, pairs)
    by_group = members.with_group(offsets)
    counted = materialized(group_commits.effective(all_commits))
    topic_ids = all_commits.select(F.col("commit_topic").alias("topic"), F.col("commit_topic_id").alias("topic_id"))
    candidates = reduce(
        lambda one, other: one.unionByName(other),
        [
            sequences.stale_epochs(all_batches),
            sequences.fenced_by_coordinator(states, data),
            sequences.sequence_faults(all_batches),
            endings.wrong_markers(pairs, known),
            endings.unmarked_partitions(missing, data, known),
            endings.stray_markers(actual, pairs, states),
            endings.without_records(pairs, actual, data),
            endings.foreign_data(data, pairs),
            endings.hanging(data, decided, missing, known, states, running(actual, offsets, states, limits=limits)),
            group_commits.regressions(counted),
            commits_beyond_end(counted, known, is_archive=seen.is_archive),
            group_commits.outside_transactions(all_commits, pairs),
            group_commits.incomplete(offsets),
            members.stale_generations(by_group),
            owners.two_owners(offsets),
            owners.epochs_back(offsets),
            coordinators.vanished(states),
            coordinators.shared_producer_ids(states),
            members.stale_epochs(by_group, topic_ids.where("topic_id is not null").distinct()),
            share_findings(shares, all_batches, data, offsets),
        ],
    )
    candidates = doubt_ambiguous_logs(candidates, twice)
    if seen.is_whole and not seen.is_archive:
        candidates = candidates.unionByName(log_faults(all_batches, seen.cleaned))
    return CheckResults(materialized(candidates), decided, expected, pairs, data, all_commits)


def _run_checks_below(seen: AuditInput, ends: Mapping[str, int]) -> CheckResults:
    """Run all checks.

    Candidates beyond the complete offsets become doubts, as one view may be ahead of another there.
    """
    rows = [(row["log"], ends.get(row["log"], 0)) for row in seen.known.select("log").collect()]
    limits = seen.known.sparkSession.createDataFrame(rows, "at string, end long")
    made = run_checks(seen, limits)
    inside = before_ends(before_ends(made.candidates, limits), limits, "proof_log", "proof_offset")
    beyond = doubted(made.candidates.exceptAll(inside), NEWER)
    return made._replace(candidates=materialized(inside.unionByName(beyond)))


def materialized(rows: DataFrame) -> DataFrame:
    """The rows, computed and cut off from the plan that made them.

    Each of these tables is used several times and joined with itself, and Spark would copy and optimise the whole plan
    below it each time: 22 s of 70 for the tests' logs.
    """
    return rows.localCheckpoint()
