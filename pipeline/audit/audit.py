"""The audit as a whole: the three views of the logs in, findings, doubts, coverage and transactions out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from pipeline.audit import commits as of_groups
from pipeline.audit import endings, members, sequences
from pipeline.audit import transactions as txns
from pipeline.audit.findings import but_for, doubts, sure
from pipeline.audit.places import batches, coverage, logs, renewed, with_lost
from pipeline.audit.places import missing as missing_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


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


def audit(raw: DataFrame, offsets: DataFrame, states: DataFrame, began: Mapping[str, int] | None = None) -> Audit:
    """raw must hold the batches of all logs, `__consumer_offsets` included; the others are the views of their names.

    began: of an archive, where its logs stood when it came to them. Each input is read once, and what is needed of it
    kept: batches, not records, of the data.
    """
    found, offsets, states = (_settled(rows) for rows in (batches(raw), with_lost(offsets), with_lost(states)))
    known = _settled(logs(found))
    data = _settled(txns.with_end(found))
    all_commits = of_groups.commits(offsets)
    told = _settled(txns.transactions(states))
    expected = txns.expected_markers(told)
    actual = txns.markers(found)
    pairs = _settled(txns.matched(expected, actual))
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
            endings.hanging(data, told, missing, known, states, newest(actual, offsets, states)),
            of_groups.regressions(of_groups.effective(all_commits)),
            of_groups.incomplete(offsets),
            members.stale_generations(by_group),
            members.stale_epochs(by_group, topic_ids.where("topic_id is not null").distinct()),
        ],
    )
    twice = _settled(renewed(found))
    candidates = _settled(but_for(candidates, twice))
    lacking = _settled(missing_ranges(found, expected, began))
    return Audit(
        findings=sure(candidates).orderBy("log", "offset", "kind"),
        doubts=doubts(candidates).orderBy("kind", "log"),
        coverage=coverage(known, lacking, twice).orderBy("log"),
        gaps=lacking.orderBy("log", "from_offset"),
        transactions=txns.details(told, pairs, data, all_commits),
    )


def _settled(rows: DataFrame) -> DataFrame:
    """The rows, computed, with the plan that made them forgotten.

    Each of these is asked for several times and joined with itself; Spark would copy and plan all that lies below
    each time: 22 s of 70 for the tests' logs.
    """
    return rows.localCheckpoint()


def newest(actual: DataFrame, offsets: DataFrame, states: DataFrame) -> DataFrame:
    """The last time that a broker, and not a client, wrote into a log: `newest`, one row."""
    times = [rows.select("timestamp") for rows in (actual, offsets, states)]
    return reduce(lambda one, other: one.unionByName(other), times).agg(F.max("timestamp").alias("newest"))
