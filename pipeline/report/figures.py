"""The figures of the report, as plain values: results of transforms/ and audit/, small enough to be drawn.

The page shows no other numbers: its charts and tables are made of these, and it carries them as JSON. Time is cut into
slots, whose number does not grow with the logs, and of each table at most MOST_GROUPS groups are there: so the page of
a thousand groups and of a million has about the same size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pipeline import tables
from pipeline.audit.directory import audit_of
from pipeline.engine import F
from pipeline.report import groups
from pipeline.report.proof_records import places_of, records_at
from pipeline.report.share_progress import share_changes
from pipeline.source.log_starts import starts_of
from pipeline.transforms import commits, compaction
from pipeline.transforms import lag as lags
from pipeline.transforms.resets import resets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_GROUPS: Final = 1000
MOST_FINDINGS: Final = 200
MOST_LOGS: Final = 1000
MOST_RESETS: Final = 1000
MOST_TIMELINES: Final = 12
MOST_CHANGES: Final = 5000
END_SLOTS: Final = 480  # for the times at which transactions ended
OPEN: Final = "open"
OUTCOMES: Final = {"CompleteCommit": "committed", "CompleteAbort": "aborted"}
POSITION: Final = ("group", "topic", "partition", "commit_offset", "removed", "effective_at", "log_offset")

Point = tuple[int, float]  # Unix milliseconds, value


class Series(NamedTuple):
    """Values of the slots from `first` on; None: there is none."""

    first: int
    values: list[int | None]


@dataclass(slots=True)
class Figures:
    """All figures of one page; times are Unix milliseconds. Slot n ends at begin + n * step_s."""

    source: str
    made: int
    begin: int | None = None  # of the times at which lag and commits are reported
    end: int | None = None
    step_s: float = 0.0
    lag: dict[str, Series] = field(default_factory=dict)  # group -> records behind at the end of each slot, all topics
    without_lag: int = 0  # groups with commits of which no lag is known
    zone: str = "UTC"  # of the times that the page shows
    resets: list[dict[str, Any]] = field(default_factory=list)  # rows of transforms.resets, the latest first; at: time
    resets_total: int = 0
    reset_groups: int = 0
    resets_by: dict[str, int] = field(default_factory=dict)  # member, tool, unknown -> resets
    went_back: int = 0  # commits
    read_again: int = 0  # records, after commits that go back
    partitions: list[dict[str, Any]] = field(default_factory=list)  # lag at the last moment, the most first
    partitions_total: int = 0
    commits: dict[str, Series] = field(default_factory=dict)  # group -> commits in each slot
    commits_total: int = 0
    groups: list[dict[str, Any]] = field(default_factory=list)  # group, kind, changes, epoch, members, commits
    kinds: dict[str, int] = field(default_factory=dict)  # kind -> groups, all of them
    rebalances: list[tuple[int, str, int]] = field(default_factory=list)  # time, group, generation or epoch
    outcomes: dict[str, int] = field(default_factory=dict)  # committed, aborted, open -> transactions
    outcomes_over_time: list[tuple[int, str, int]] = field(default_factory=list)  # when they ended, how, how many
    old_transactions: int = 0  # committed ones of version 1
    findings: list[dict[str, Any]] = field(default_factory=list)
    findings_by_kind: dict[str, int] = field(default_factory=dict)
    records_named: list[dict[str, Any]] = field(default_factory=list)  # by the findings: see proof_records.shown
    undecided: list[dict[str, Any]] = field(default_factory=list)
    incomplete_logs: list[dict[str, Any]] = field(default_factory=list)
    unnamed: list[dict[str, Any]] = field(default_factory=list)  # groups whose commits name no member, by commits
    unnamed_groups: int = 0
    unnamed_commits: int = 0
    was_clean: bool = True  # the broker has stopped and written where its logs start
    logs: int = 0
    records: int = 0
    bytes: list[tuple[str, int, int]] = field(default_factory=list)  # log, live, dead; the most dead first

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last time of anything that is drawn over time; they differ."""
        times = [self.time(each.first) for each in self.lag.values()]
        times += [self.time(each.first - 1) for each in self.commits.values()]
        times += [
            self.time(each.first + len(each.values) - 1) for part in (self.lag, self.commits) for each in part.values()
        ]
        times += [at for at, *_ in self.rebalances] + [at for at, *_ in self.outcomes_over_time]
        begin = min(times, default=self.made)
        return begin, max(max(times, default=self.made), begin + 1000)

    def time(self, slot: int) -> int:
        """When a slot ends."""
        return (self.begin or 0) + round(slot * self.step_s * 1000)

    def lag_line(self, group: str) -> list[Point]:
        """The lag of a group; NaN where it is not known."""
        first, values = self.lag[group]
        nan = float("nan")
        return [(self.time(first + n), nan if value is None else float(value)) for n, value in enumerate(values)]

    def rate_line(self, group: str) -> list[Point]:
        """Commits a second as steps: the area below them is what was counted, and 0 where nothing was."""
        return list(self._steps(*self.commits[group]))

    def _steps(self, first: int, values: list[int | None]) -> Iterator[Point]:
        before: int | None = None
        for n, value in enumerate([*values, 0]):
            if value != before:
                yield self.time(first + n - 1), (value or 0) / (self.step_s or 1)
            before = value

    def as_json(self) -> dict[str, Any]:
        """For the JSON in the page. A Series is [first slot, [values]]."""
        return asdict(self)


def figures(spark: SparkSession, path: str, zone: str = "UTC") -> Figures:
    """The figures of a data directory or an archive. Errors: PipelineError: see audit_of."""
    made = Figures(path, _millis(datetime.now(UTC)), was_clean=starts_of(path).was_clean, zone=zone)
    changes = commits.effective(tables.offsets(spark, path, commits.COLUMNS)).persist()
    _resets(made, resets(commits.history(changes)))
    changes = changes.select(*POSITION)
    shared = share_changes(spark, path)
    moves = changes if shared is None else changes.unionByName(shared)
    records = tables.raw(spark, path, columns=lags.RECORDS)
    wanted = lags.of_interest(records, moves)
    slots = lags.slots_of(moves, None, None, None, lags.newest_record(wanted, datetime.now(UTC)))
    if slots is not None:
        made.begin = _millis(slots.first)
        made.step_s = slots.step / timedelta(seconds=1)
        made.end = made.time(slots.count)
        floors = spark.createDataFrame(tables.log_floors(path), "topic string, partition int, end long")
        lag = lags.lag_over_time(moves, records, slots, floors=floors, to_end=True)
        _series(made, lag, changes, slots)
        _partitions(made, lags.with_seconds(lag.where(F.col("time") == slots.time(F.lit(slots.count))), wanted))
    records_of_groups = tables.offsets(spark, path, groups.RECORDS)
    found = groups.groups(records_of_groups, changes).persist()
    made.kinds = {row["kind"]: row["count"] for row in found.groupBy("kind").count().orderBy("kind").collect()}
    made.groups = [row.asDict() for row in groups.top(found, MOST_GROUPS, "changes", "commits").collect()]
    _rebalances(made, groups.epochs(records_of_groups))
    _audit(made, spark, path)
    segments = compaction.segments_of(lambda view: tables.view(spark, path, view, columns=compaction.COLUMNS[view]))
    made.bytes = [tuple(row) for row in bytes_by_log(segments).limit(MOST_LOGS).collect()]
    return made


def bytes_by_log(segments: DataFrame) -> DataFrame:
    """One row a log: log, live, dead, in bytes of all its segments; the log with the most dead bytes first."""
    dead = F.sum("dead_bytes")
    rows = segments.groupBy("log").agg((F.sum("bytes") - dead).alias("live"), dead.alias("dead"))
    return rows.orderBy(F.desc("dead"), "log")


def series_of(points: list[Any], missing: int | None) -> Series:
    """Points (slot, value) in order, not in every slot, as a series. missing: the value of a slot without a point."""
    first, last = points[0][0], points[-1][0]
    values: list[int | None] = [missing] * (last - first + 1)
    for slot, value in points:
        values[slot - first] = value
    return Series(first, values)


def _series(made: Figures, lag: DataFrame, changes: DataFrame, slots: lags.Slots) -> None:
    behind = groups.lag_by_group(lag, slots).persist()
    counted = groups.commits_by_group(changes, slots).persist()
    for row in groups.top(behind, MOST_GROUPS, "most").collect():
        made.lag[row["group"]] = series_of(row["points"], None)
    for row in groups.top(counted, MOST_GROUPS, "total").collect():
        made.commits[row["group"]] = series_of(row["points"], 0)
    made.commits_total = counted.agg(F.sum("total")).collect()[0][0] or 0
    made.without_lag = counted.join(behind, "group", "left_anti").count()


def _partitions(made: Figures, lag: DataFrame) -> None:
    """lag: rows of lags.with_seconds at one time."""
    rows = lag.select(
        F.col("consumergroup").alias("group"),
        "topic",
        "partition",
        F.col(lags.OFFSET).alias("committed"),
        F.col(lags.END).alias("end"),
        F.col(lags.LAG).alias("lag"),
        F.col(lags.LAG_SECONDS).alias("seconds"),
    ).localCheckpoint()
    made.partitions_total = rows.count()
    first = rows.orderBy(F.desc("lag"), "group", "topic", "partition").limit(MOST_GROUPS)
    made.partitions = [row.asDict() for row in first.collect()]


def _resets(made: Figures, rows: DataFrame) -> None:
    found = rows.withColumn("at", F.unix_millis("time")).drop("time").localCheckpoint()
    by = found.groupBy("by").agg(F.count(F.lit(1)).alias("n")).orderBy("by").collect()
    made.resets_by = {row["by"]: row["n"] for row in by}
    made.resets_total = sum(made.resets_by.values())
    [counted] = found.agg(
        F.countDistinct("group").alias("groups"), F.count("again").alias("back"), F.sum("again").alias("again")
    ).collect()
    made.reset_groups, made.went_back, made.read_again = counted["groups"], counted["back"], counted["again"] or 0
    latest = found.orderBy(F.desc("at"), "group", "topic", "partition").limit(MOST_RESETS)
    made.resets = [row.asDict() for row in latest.collect()]


def _rebalances(made: Figures, epochs: DataFrame) -> None:
    drawn = [row["group"] for row in made.groups if row["changes"]][:MOST_TIMELINES]
    rows = epochs.where(F.col("is_new") & F.col("group").isin(drawn)).orderBy(F.desc("timestamp"), F.desc("offset"))
    newest = rows.select(F.unix_millis("timestamp").alias("at"), "group", "epoch").limit(MOST_CHANGES).collect()
    made.rebalances = [tuple(row) for row in reversed(newest)]


def _audit(made: Figures, spark: SparkSession, path: str) -> None:
    result = audit_of(spark, path)
    _outcomes(made, result.transactions)
    counted = result.findings.groupBy("kind").count().orderBy("kind").collect()
    made.findings_by_kind = {row["kind"]: row["count"] for row in counted}
    made.findings = [_plain(row) for row in result.findings.limit(MOST_FINDINGS).collect()]
    made.records_named = records_at(spark, path, places_of(made.findings))
    made.undecided = [_plain(row) for row in result.doubts.collect()]
    most = result.unnamed.orderBy(F.desc("commits"), "group", "log").limit(MOST_GROUPS)
    made.unnamed = [_plain(row) for row in most.collect()]
    [all_unnamed] = result.unnamed.agg(F.countDistinct("group"), F.coalesce(F.sum("commits"), F.lit(0))).collect()
    made.unnamed_groups, made.unnamed_commits = all_unnamed
    coverage = result.coverage.collect()
    made.logs = len(coverage)
    made.records = sum(row["records"] for row in coverage)
    made.incomplete_logs = [_plain(row) for row in coverage if not row["complete"]]


def _outcomes(made: Figures, transactions: DataFrame) -> None:
    """Count transactions by outcome and by the time of their end. Those of version 1 have the epoch of their marker."""
    how = F.create_map(*(F.lit(text) for each in OUTCOMES.items() for text in each))[F.col("state")]
    ended = F.unix_millis(F.coalesce("completed", "started"))
    is_old = (F.col("decision") == "COMMIT") & (F.col("marker_epoch") == F.col("producer_epoch"))
    rows = transactions.select(
        F.coalesce(how, F.lit(OPEN)).alias("how"), ended.alias("ended"), is_old.alias("is_old")
    ).localCheckpoint()
    found = rows.groupBy("how").agg(F.count(F.lit(1)).alias("n"), F.count_if("is_old").alias("old")).collect()
    made.outcomes = dict(Counter({row["how"]: row["n"] for row in found}))
    made.old_transactions = sum(row["old"] for row in found)
    [span] = rows.agg(F.min("ended").alias("first"), F.max("ended").alias("last")).collect()
    if span["first"] is None:
        return
    width = max(1, (span["last"] - span["first"]) // END_SLOTS)
    at = F.lit(span["first"]) + F.floor((F.col("ended") - span["first"]) / width) * width
    rows = rows.where("ended is not null").groupBy(at.alias("at"), "how").count().orderBy("at", "how")
    made.outcomes_over_time = [(row["at"], row["how"], row["count"]) for row in rows.collect()]


def _plain(row: Any) -> dict[str, Any]:
    return {
        name: value.isoformat(sep=" ", timespec="milliseconds") if isinstance(value, datetime) else value
        for name, value in row.asDict().items()
    }


def _millis(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
