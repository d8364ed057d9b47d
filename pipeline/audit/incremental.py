"""What an audit that goes on keeps of all it has read: new rows on top of it are the same to the checks as all rows.

State, as tables; it grows with the batches of producers and with commits, and not with what is in records:

    found, offsets, states    what the checks look at; no batches without a producer, no records of groups but those
                              that say who may commit
    covered                   view, log, covered, reach: offsets that rows have covered, and where they end
    known, twice, holes       rows of log_coverage.log_summaries, renewed and lacking
    told                      findings that were made
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    Tables = dict[str, DataFrame]

_PLACE: Final = ("kind", "log", "offset", "proof_log", "proof_offset")


class Step(NamedTuple):
    """What a step comes to: state, rows that are new in tables, and tables as they are now."""

    state: Tables
    added: Tables
    replaced: Tables


def step(rows: Tables, state: Tables, ends: Mapping[str, int] | None) -> Step:
    """New rows of the three views (raw, offsets, transactions) on top of what is kept of those before.

    ends: log -> an offset; what lies below is all there, in each log, and there is all that had been written by then
    in every other. Nothing is found beyond. None: no such ends are known, nothing is found yet.
    """
    seen, kept, holes = _onto(rows, state)
    told = state.get("told")
    found = no_findings(seen.found.sparkSession) if ends is None else _within(seen, ends)
    news = materialized(proven(found) if told is None else _but(proven(found), told))
    added = {"findings": news, "gaps": holes}
    replaced = {"coverage": coverage(seen.known, kept["holes"], seen.twice)}
    if ends is not None:
        replaced["doubts"] = doubts(found)
    now = news.select(*_PLACE)
    return Step(kept | {"told": now if told is None else told.unionByName(now)}, added, replaced)


def _onto(rows: Tables, state: Tables) -> tuple[AuditInput, Tables, DataFrame]:
    """All that the checks look at, the state it makes, and the gaps that are new."""
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
    covered = _both(*counts)
    places = ("log", "topic", "partition", "offset", "last_offset", "read_records", "batch_records")
    spans, known, twice = found.select(*places), log_summaries(found), recreated_logs(found)
    if before is not None:
        spans = spans.unionByName(_as_spans(before), allowMissingColumns=True)
        known, twice = (
            merge_summaries(state["known"], known),
            recreated_logs(spans).unionByName(state["twice"]).distinct(),
        )
        covered = (
            _both(before, covered)
            .groupBy("view", "log")
            .agg(F.sum("covered").alias("covered"), F.max("reach").alias("reach"))
        )
    holes = materialized(log_gaps(found, spans, None))
    kept = {
        "found": found.where("producer_id >= 0"),
        "offsets": _of_use(offsets),
        "states": states,
        "holes": holes,
    }
    kept = {name: materialized(part if not state else _both(state[name], part)) for name, part in kept.items()}
    kept |= {"covered": materialized(covered), "known": materialized(known), "twice": materialized(twice)}
    seen = AuditInput(kept["found"], kept["offsets"], kept["states"], kept["known"], kept["twice"])
    return seen, kept, holes


def _covered(before: DataFrame | None, view: str) -> DataFrame | None:
    return None if before is None else before.where(F.col("view") == view).select("log", "covered")


def _counted(rows: DataFrame, view: str, span: Column, last: Column) -> DataFrame:
    return (
        rows.groupBy("log")
        .agg(F.sum(span).alias("covered"), (F.max(last) + 1).alias("reach"))
        .select(F.lit(view).alias("view"), "log", "covered", "reach")
    )


def _as_spans(before: DataFrame) -> DataFrame:
    """All that was there of each log as one span."""
    topic = F.regexp_extract("log", "^(.*)-[0-9]+$", 1)
    return before.where("view = 'raw'").select(
        "log",
        topic.alias("topic"),
        F.regexp_extract("log", "-([0-9]+)$", 1).cast("int").alias("partition"),
        F.lit(0).cast("bigint").alias("offset"),
        (F.col("reach") - 1).alias("last_offset"),
    )


def _of_use(offsets: DataFrame) -> DataFrame:
    """Without the records that no check looks at: most of what groups write about themselves."""
    last = offsets.groupBy("log").agg(F.max("offset").alias("offset"))
    is_used = F.col("kind").isNull() | F.col("kind").isin("OffsetCommit", *GROUPS, *MEMBERS)
    used = is_used | F.col("commit_size").isNotNull()
    return offsets.where(used).unionByName(
        offsets.where(~used).join(last, ["log", "offset"], "left_semi").select(*offsets.columns)
    )


def _within(seen: AuditInput, ends: Mapping[str, int]) -> DataFrame:
    """Candidates whose place, and that of what they contradict, lie before the ends."""
    limits = seen.found.sparkSession.createDataFrame(list(ends.items()), "at string, end long")
    found = run_checks(seen, limits).candidates
    return materialized(before_ends(before_ends(found, limits), limits, "proof_log", "proof_offset"))


def _but(found: DataFrame, told: DataFrame) -> DataFrame:
    same = reduce(lambda one, other: one & other, (found[name].eqNullSafe(told[name]) for name in _PLACE))
    return found.join(told, same, "left_anti")


def _both(*parts: DataFrame) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), parts)
