"""The figures of the report, as plain values: results of transforms/ and audit/, small enough to be drawn.

The page shows no other numbers: its charts and tables are made of these, and it carries them as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline import tables
from pipeline.audit.directory import audit_of
from pipeline.transforms import commits, compaction
from pipeline.transforms import lag as lags

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_FINDINGS: Final = 200
MOST_CHANGES: Final = 5000
GROUP_KINDS: Final = {
    "GroupMetadata": ("classic", "generation"),
    "ConsumerGroupMetadata": ("consumer", "epoch"),
    "StreamsGroupMetadata": ("streams", "epoch"),
}
GROUP_RECORDS: Final = ("log", "offset", "timestamp", "kind", "tombstone", "group", "value_json")  # of `rebalances`
OPEN: Final = "open"
OUTCOMES: Final = {"CompleteCommit": "committed", "CompleteAbort": "aborted"}

Point = tuple[int, float]  # Unix milliseconds, value


@dataclass(slots=True)
class Figures:
    """All figures of one page; times are Unix milliseconds."""

    source: str
    made: int
    begin: int | None = None  # of the times at which lag and commits are reported
    end: int | None = None
    step_s: float = 0.0
    lag: dict[str, list[Point]] = field(default_factory=dict)  # group -> records behind, all topics
    commits: dict[str, list[Point]] = field(default_factory=dict)  # group -> commits a second, from then on
    committed: dict[str, int] = field(default_factory=dict)  # group -> commits
    rebalances: list[tuple[int, str, str, int, int | None]] = field(default_factory=list)
    # time, group, protocol, generation or epoch, members (classic groups)
    outcomes: dict[str, int] = field(default_factory=dict)  # committed, aborted, open -> transactions
    outcomes_over_time: list[tuple[int, str]] = field(default_factory=list)  # when it ended, how
    findings: list[dict[str, Any]] = field(default_factory=list)
    findings_by_kind: dict[str, int] = field(default_factory=dict)
    undecided: list[dict[str, Any]] = field(default_factory=list)
    incomplete_logs: list[dict[str, Any]] = field(default_factory=list)
    logs: int = 0
    records: int = 0
    bytes: list[tuple[str, int, int]] = field(default_factory=list)  # log, live, dead; the most dead first

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last time of anything that is drawn over time; they differ."""
        lines = [*self.lag.values(), *self.commits.values()]
        times = [at for line in lines for at in (line[0][0], line[-1][0])]
        times += [at for at, *_ in self.rebalances] + [at for at, _ in self.outcomes_over_time]
        begin = min(times, default=self.made)
        return begin, max(max(times, default=self.made), begin + 1000)

    def as_json(self) -> dict[str, Any]:
        """For the JSON in the page."""
        return asdict(self)


def figures(spark: SparkSession, path: str) -> Figures:
    """The figures of a data directory or an archive. Errors: PipelineError: see audit_of."""
    made = Figures(path, _millis(datetime.now(UTC)))
    changes = commits.effective(tables.offsets(spark, path, lags.COMMITS)).persist()
    slots = lags.slots_of(changes, None, None, None)
    if slots is not None:
        made.begin = _millis(slots.first)
        made.end = _millis(slots.first + slots.count * slots.step)
        made.step_s = slots.step / timedelta(seconds=1)
        records = tables.raw(spark, path, columns=lags.RECORDS)
        made.lag = series(lag_by_group(lags.lag_over_time(changes, records, slots)))
        made.commits = with_gaps(series(commits_by_group(changes, slots)), slots.step // timedelta(milliseconds=1))
        counted = changes.where("not removed").groupBy("group").count().orderBy("group")
        made.committed = {row["group"]: row["count"] for row in counted.collect()}
    made.rebalances = [tuple(row) for row in rebalances(tables.offsets(spark, path, GROUP_RECORDS)).collect()]
    _audit(made, spark, path)
    segments = compaction.segments_of(lambda view: tables.view(spark, path, view, columns=compaction.COLUMNS[view]))
    made.bytes = [tuple(row) for row in bytes_by_log(segments).collect()]
    return made


def bytes_by_log(segments: DataFrame) -> DataFrame:
    """One row a log: log, live, dead, in bytes of all its segments; the log with the most dead bytes first."""
    dead = F.sum("dead_bytes")
    rows = segments.groupBy("log").agg((F.sum("bytes") - dead).alias("live"), dead.alias("dead"))
    return rows.orderBy(F.desc("dead"), "log")


def lag_by_group(lag: DataFrame) -> DataFrame:
    """time_ms, group, value: the lag in records, over all topics whose log ends are known."""
    return lag.groupBy(F.unix_millis("time").alias("time_ms"), F.col("consumergroup").alias("group")).agg(
        F.sum(lags.LAG).alias("value")
    )


def commits_by_group(changes: DataFrame, slots: lags.Slots) -> DataFrame:
    """time_ms, group, value: commits a second in each slot."""
    step_s = slots.step / timedelta(seconds=1)
    return (
        changes.where("not removed")
        .groupBy(F.unix_millis(slots.time(slots.of(F.col("effective_at")))).alias("time_ms"), "group")
        .agg((F.count(F.lit(1)) / F.lit(step_s)).alias("value"))
    )


def series(rows: DataFrame) -> dict[str, list[Point]]:
    """Rows of time_ms, group, value as one line of points a group."""
    found: dict[str, list[Point]] = {}
    for row in rows.where("value is not null").orderBy("group", "time_ms").collect():
        found.setdefault(row["group"], []).append((row["time_ms"], round(float(row["value"]), 3)))
    return found


def with_gaps(lines: dict[str, list[Point]], step_ms: int) -> dict[str, list[Point]]:
    """Values of slots, each at the end of its slot, as steps: each from the slot's beginning, and 0 where slots lack.

    The area under the steps is what was counted.
    """
    return {group: list(_steps(points, step_ms)) for group, points in lines.items()}


def _steps(points: list[Point], step_ms: int) -> Iterator[Point]:
    for (end, value), (following, _) in pairwise([*points, (-1, 0.0)]):
        yield end - step_ms, value
        if abs(following - step_ms - end) > 1:  # slots are rounded to milliseconds
            yield end, 0.0


def rebalances(offsets: DataFrame) -> DataFrame:
    """time_ms, group, protocol, epoch, members.

    One row a new generation or epoch of a group, the newest MOST_CHANGES.
    """
    kind, value = F.col("kind"), F.col("value_json")
    protocol = F.create_map(*(F.lit(text) for name, (text, _) in GROUP_KINDS.items() for text in (name, text)))
    epoch = F.coalesce(F.get_json_object(value, "$.generation"), F.get_json_object(value, "$.epoch")).cast("int")
    members = F.size(F.from_json(F.get_json_object(value, "$.members"), "array<struct<memberId: string>>"))
    before = F.lag("epoch").over(Window.partitionBy("log", "group").orderBy("offset"))
    return (
        offsets.where(kind.isin(*GROUP_KINDS) & ~F.col("tombstone"))
        .select(
            F.unix_millis("timestamp").alias("time_ms"),
            "group",
            protocol[kind].alias("protocol"),
            epoch.alias("epoch"),
            F.when(kind == "GroupMetadata", members).alias("members"),
            "log",
            "offset",
        )
        .withColumn("before", before)
        .where("before is null or before != epoch")
        .orderBy(F.desc("offset"))
        .limit(MOST_CHANGES)
        .orderBy("time_ms", "log", "offset")
        .select("time_ms", "group", "protocol", "epoch", "members")
    )


def _audit(made: Figures, spark: SparkSession, path: str) -> None:
    result = audit_of(spark, path)
    ended = result.transactions.select("state", F.unix_millis(F.coalesce("completed", "started")).alias("time_ms"))
    seen = [(row["time_ms"], OUTCOMES.get(row["state"], OPEN)) for row in ended.orderBy("time_ms").collect()]
    made.outcomes = dict(Counter(how for _, how in seen))
    made.outcomes_over_time = [(when, how) for when, how in seen if when is not None]
    counted = result.findings.groupBy("kind").count().orderBy("kind").collect()
    made.findings_by_kind = {row["kind"]: row["count"] for row in counted}
    made.findings = [_plain(row) for row in result.findings.limit(MOST_FINDINGS).collect()]
    made.undecided = [_plain(row) for row in result.doubts.collect()]
    coverage = result.coverage.collect()
    made.logs = len(coverage)
    made.records = sum(row["records"] for row in coverage)
    made.incomplete_logs = [_plain(row) for row in coverage if not row["complete"]]


def _plain(row: Any) -> dict[str, Any]:
    return {
        name: value.isoformat(sep=" ", timespec="milliseconds") if isinstance(value, datetime) else value
        for name, value in row.asDict().items()
    }


def _millis(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
