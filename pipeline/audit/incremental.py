"""The audit of new rows on top of the state that earlier ones left, as if all rows were audited at once.

The state consists of tables. It grows with the batches of producers and with commits, not with every record:

    found, offsets, states    the input of the checks, without batches that have no producer id and without records of
                              groups that do not say who may commit
    covered                   view, log, covered, reach: the number of offsets that rows covered, and their end
    known, twice, holes       rows of log_coverage.log_summaries, recreated_logs and log_gaps
    told                      the findings that were reported
    topics                    log, topic_id

A log whose topic was deleted and created again is audited as a new one: the state of the earlier topic is dropped.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.audit import commits as group_commits
from pipeline.audit.audit import AuditInput, materialized, run_checks
from pipeline.audit.findings import doubts, no_findings, proven
from pipeline.audit.log_coverage import (
    batches,
    before_ends,
    coverage,
    log_gaps,
    log_summaries,
    merge_summaries,
    recreated_logs,
    with_lost_before,
)
from pipeline.audit.members import GROUPS, MEMBERS
from pipeline.engine import F

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    Tables = dict[str, DataFrame]

_IDENTITY: Final = ("kind", "log", "offset", "proof_log", "proof_offset")  # of a finding


class Step(NamedTuple):
    """The result of a step: the new state, rows to add to tables, and tables to replace."""

    state: Tables
    added: Tables
    replaced: Tables


def step(rows: Tables, state: Tables, ends: Mapping[str, int] | None) -> Step:
    """Audit new rows of the three views (raw, offsets, transactions) on top of the state of earlier ones.

    ends: the complete offset of each log (pipeline/source/complete_offsets.py). Only findings whose positions are below
    are reported; the others are found again in a later step. None: nothing is complete, nothing is reported.
    """
    state = _without_earlier_topics(rows["raw"], state)
    seen, new_state, gaps = _merge_new_rows(rows, state)
    reported = state.get("told")
    found = no_findings(seen.batches.sparkSession) if ends is None else _candidates_below(seen, ends)
    new = materialized(proven(found) if reported is None else _without(proven(found), reported))
    added = {"findings": new, "gaps": gaps}
    replaced = {"coverage": coverage(seen.known, new_state["holes"], seen.twice)}
    replaced["unnamed"] = group_commits.without_members(seen.offsets)
    if ends is not None:
        replaced["doubts"] = doubts(found)
    now = new.select(*_IDENTITY)
    return Step(new_state | {"told": now if reported is None else reported.unionByName(now)}, added, replaced)


def _merge_new_rows(rows: Tables, state: Tables) -> tuple[AuditInput, Tables, DataFrame]:
    """(the input of the checks, the new state without `told`, the gaps in the new rows)."""
    before = state.get("covered")
    found = materialized(batches(rows["raw"], _covered(before, "raw")))
    offsets = materialized(with_lost_before(rows["offsets"], before=_covered(before, "offsets")))
    states = materialized(with_lost_before(rows["transactions"], before=_covered(before, "transactions")))
    span = F.col("last_offset") - F.col("offset") + 1
    one = F.lit(1).cast("bigint")
    counts = [_counted(found, "raw", span, F.col("last_offset"))]
    counts += [
        _counted(part, name, one, F.col("offset")) for name, part in (("offsets", offsets), ("transactions", states))
    ]
    covered = _union(*counts)
    span_columns = ("log", "topic", "partition", "offset", "last_offset", "read_records", "batch_records")
    spans, known, twice = found.select(*span_columns), log_summaries(found), recreated_logs(found)
    if before is not None:
        spans = spans.unionByName(_as_spans(before), allowMissingColumns=True)
        known = merge_summaries(state["known"], known)
        twice = recreated_logs(spans).unionByName(state["twice"]).distinct()
        covered = (
            _union(before, covered)
            .groupBy("view", "log")
            .agg(F.sum("covered").alias("covered"), F.max("reach").alias("reach"))
        )
    gaps = materialized(log_gaps(found, spans, None))
    new = {
        "found": found.where("producer_id >= 0"),
        "offsets": _needed_later(offsets),
        "states": states,
        "holes": gaps,
    }
    # State that an older version stored may lack a column.
    made = {
        name: materialized(part if not state else part.unionByName(state[name], allowMissingColumns=True))
        for name, part in new.items()
    }
    made |= {"covered": materialized(covered), "known": materialized(known), "twice": materialized(twice)}
    made["topics"] = materialized(_topics(rows["raw"], state.get("topics")))
    seen = AuditInput(made["found"], made["offsets"], made["states"], made["known"], made["twice"], is_whole=False)
    return seen, made, gaps


def _topics(raw: DataFrame, before: DataFrame | None) -> DataFrame:
    """log, topic_id, of the new rows and of logs that have none."""
    found = raw.groupBy("log").agg(F.first("topic_id").alias("topic_id"))
    return found if before is None else found.unionByName(before.join(found, "log", "left_anti"))


def _without_earlier_topics(raw: DataFrame, state: Tables) -> Tables:
    """The state without the rows of logs whose topic has another id than in the new rows."""
    if "topics" not in state:
        return state
    now = raw.select("log", F.col("topic_id").alias("id_now")).distinct()
    other = state["topics"].join(now, "log").where("topic_id != id_now").select("log").collect()
    logs = [row["log"] for row in other]
    if not logs:
        return state
    kept = {name: table.where(~F.col("log").isin(logs)) for name, table in state.items()}
    kept["told"] = kept["told"].where(F.col("proof_log").isNull() | ~F.col("proof_log").isin(logs))
    return kept


def _covered(before: DataFrame | None, view: str) -> DataFrame | None:
    return None if before is None else before.where(F.col("view") == view).select("log", "covered")


def _counted(rows: DataFrame, view: str, span: Column, last: Column) -> DataFrame:
    return (
        rows.groupBy("log")
        .agg(F.sum(span).alias("covered"), (F.max(last) + 1).alias("reach"))
        .select(F.lit(view).alias("view"), "log", "covered", "reach")
    )


def _as_spans(before: DataFrame) -> DataFrame:
    """All earlier rows of each log as one span from offset 0 on."""
    topic = F.regexp_extract("log", "^(.*)-[0-9]+$", 1)
    return before.where("view = 'raw'").select(
        "log",
        topic.alias("topic"),
        F.regexp_extract("log", "-([0-9]+)$", 1).cast("int").alias("partition"),
        F.lit(0).cast("bigint").alias("offset"),
        (F.col("reach") - 1).alias("last_offset"),
    )


def _needed_later(offsets: DataFrame) -> DataFrame:
    """Only the records that a check uses, and the last one of each log: most records of groups are not used."""
    last = offsets.groupBy("log").agg(F.max("offset").alias("offset"))
    is_used = F.col("kind").isNull() | F.col("kind").isin("OffsetCommit", *GROUPS, *MEMBERS)
    used = is_used | F.col("commit_size").isNotNull()
    return offsets.where(used).unionByName(
        offsets.where(~used).join(last, ["log", "offset"], "left_semi").select(*offsets.columns)
    )


def _candidates_below(seen: AuditInput, ends: Mapping[str, int]) -> DataFrame:
    """The candidates whose position, and that of their proof, are below the ends."""
    limits = seen.batches.sparkSession.createDataFrame(list(ends.items()), "at string, end long")
    found = run_checks(seen, limits).candidates
    return materialized(before_ends(before_ends(found, limits), limits, "proof_log", "proof_offset"))


def _without(found: DataFrame, reported: DataFrame) -> DataFrame:
    """The findings that were not reported yet."""
    same = reduce(lambda one, other: one & other, (found[name].eqNullSafe(reported[name]) for name in _IDENTITY))
    return found.join(reported, same, "left_anti")


def _union(*parts: DataFrame) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), parts)
