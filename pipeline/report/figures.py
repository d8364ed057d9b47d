"""The figures of the report: what the jobs' functions say, small enough to be drawn, as plain values.

Every chart is drawn from these, every table shows these, and the page carries them as JSON: there is no other number
on it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline import tables
from pipeline.jobs.audit import audit_of
from pipeline.jobs.compaction import report as compaction
from pipeline.jobs.lag import over_time, slots_of
from pipeline.transforms import commits
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
    """All of them; times are Unix milliseconds."""

    source: str
    made: int
    begin: int | None = None  # of the moments that lag and commits are told at
    end: int | None = None
    step_s: float = 0.0
    lag: dict[str, list[Point]] = field(default_factory=dict)  # group -> records behind, all topics
    commits: dict[str, list[Point]] = field(default_factory=dict)  # group -> commits a second
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

    def as_json(self) -> dict[str, Any]:
        """As the page carries them."""
        return asdict(self)


def figures(spark: SparkSession, path: str) -> Figures:
    """The figures of a data directory or an archive."""
    made = Figures(path, _millis(datetime.now(UTC)))
    changes = commits.effective(tables.offsets(spark, path, lags.COMMITS)).persist()
    slots = slots_of(changes, None, None, None)
    if slots is not None:
        made.begin = _millis(slots.first)
        made.end = _millis(slots.first + slots.count * slots.step)
        made.step_s = slots.step / timedelta(seconds=1)
        made.lag = series(lag_by_group(over_time(changes, tables.raw(spark, path, columns=lags.RECORDS), slots)))
        made.commits = series(commits_by_group(changes, slots))
        counted = changes.where("not removed").groupBy("group").count().orderBy("group")
        made.committed = {row["group"]: row["count"] for row in counted.collect()}
    made.rebalances = [tuple(row) for row in rebalances(tables.offsets(spark, path, GROUP_RECORDS)).collect()]
    _audit(made, spark, path)
    made.bytes = [tuple(row) for row in bytes_by_log(compaction(spark, path)).collect()]
    return made


def bytes_by_log(segments: DataFrame) -> DataFrame:
    """log, live, dead: the bytes of all its segments, the log with the most dead ones first."""
    dead = F.sum("dead_bytes")
    rows = segments.groupBy("log").agg((F.sum("bytes") - dead).alias("live"), dead.alias("dead"))
    return rows.orderBy(F.desc("dead"), "log")


def lag_by_group(lag: DataFrame) -> DataFrame:
    """time_ms, group, value: records behind in all topics whose ends are known."""
    return lag.groupBy(F.unix_millis("time").alias("time_ms"), F.col("consumergroup").alias("group")).agg(
        F.sum(lags.LAG).alias("value")
    )


def commits_by_group(changes: DataFrame, slots: lags.Slots) -> DataFrame:
    """time_ms, group, value: commits a second up to each moment since the one before."""
    step_s = slots.step / timedelta(seconds=1)
    return (
        changes.where("not removed")
        .groupBy(F.unix_millis(slots.time(slots.of(F.col("effective_at")))).alias("time_ms"), "group")
        .agg((F.count(F.lit(1)) / F.lit(step_s)).alias("value"))
    )


def series(rows: DataFrame) -> dict[str, list[Point]]:
    """Rows of time_ms, group, value as lines, by group."""
    found: dict[str, list[Point]] = {}
    for row in rows.where("value is not null").orderBy("group", "time_ms").collect():
        found.setdefault(row["group"], []).append((row["time_ms"], round(float(row["value"]), 3)))
    return found


def rebalances(offsets: DataFrame) -> DataFrame:
    """time_ms, group, protocol, epoch, members: every record of a group that gives it another generation or epoch."""
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
