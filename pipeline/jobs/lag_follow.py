"""The job `lag --follow`: reads new records, and reports the lag at moments that no record can change any more.

A moment is reported once every log has been read as far as it went when a record more than GRACE later existed. Before
that, micro-batches may have read one log further than another. A record that comes later still, with the time of a
reported moment (a producer's clock may show anything), counts from the next moment on. `momus pipeline lag` gives the
same results for the same moments and logs. An archive's tables have no end to compare with: each micro-batch reads all
that is there.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pipeline import tables
from pipeline.engine import F
from pipeline.errors import PipelineError
from pipeline.output_guard import grown_output
from pipeline.source.read_options import ReadOptions
from pipeline.source.stream_planner import StreamPlanner
from pipeline.streaming.follow import STATE_FORMAT, Folded, View, follow
from pipeline.streaming.position_table import STATE, read_position
from pipeline.transforms import lag as lags
from pipeline.transforms.lag_increments import EPOCH, MICRO, Moments, merge_new_rows, next_state, reportable_slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from pipeline.streaming.position_table import Ends

    Tables = dict[str, DataFrame]

GRACE: Final = timedelta(seconds=5)  # for clocks of broker, producers and this machine that differ, and sending a batch
STEP_S: Final = 60.0
_MOMENTS: Final = "step long, told long, newest long"  # the state's table `moments`: Unix microseconds


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Add the moments that can be reported to OUTPUT/lag, once or until stopped; returns 0.

    Errors:  PipelineError: see follow; or OUTPUT was begun with another --step.
    """
    if args.until or args.bootstrap_server:
        raise PipelineError("--follow reports every moment once it is over: use it without --until, --bootstrap-server")
    step = timedelta(seconds=args.step or STEP_S)
    _check_step(spark, grown_output(args), step)
    ends = args.ends or args.input
    progress = ReadProgress([args.input, ends])
    views = {
        "offsets": View("offsets", lags.COMMITS),
        "raw": View("raw", lags.RECORDS, path=ends),
    }
    steps = LagSteps(step, args.since, progress.complete_until, sums=args.sum)
    try:
        return follow(spark, args, views, steps.fold)
    finally:
        steps.persist()


def _check_step(spark: SparkSession, output: str, step: timedelta) -> None:
    """Errors: PipelineError: OUTPUT was begun with another --step; or see read_position."""
    done = read_position(output)
    if done is not None and done.batch >= 0:
        [row] = spark.read.format(STATE_FORMAT).load(f"{output}/{STATE}/batch={done.batch}/moments").collect()
        if row["step"] != step // MICRO:
            raise PipelineError(
                f"{output} was begun with --step {row['step'] / 1e6:g}: another step needs another --output"
            )


class EndsSnapshot(NamedTuple):
    """Where the logs of each path ended at a time; None for an archive."""

    time: datetime
    ends: dict[str, dict[str, int] | None]  # view -> key of a log -> offset


class ReadProgress:
    """Compares how far the logs have been read with where they ended at earlier times."""

    def __init__(self, paths: list[str]) -> None:
        """paths: of the view `offsets` and of the view `raw`."""
        self._planners: dict[str, StreamPlanner | None] = {}
        for path, records in zip(paths, ("offsets", "raw"), strict=True):
            is_archive = tables.is_archive(path)
            self._planners[records] = (
                None if is_archive else StreamPlanner(ReadOptions({"path": path, "records": records}))
            )
        self._pending = self._snapshot()

    def complete_until(self, reached: Ends) -> datetime | None:
        """A time at which the logs held no more than is read with this micro-batch; None: they held more."""
        now = self._snapshot()
        for snapshot in (now, self._pending):
            if all(_is_read(reached.get(view), ends, now.ends[view]) for view, ends in snapshot.ends.items()):
                self._pending = now
                return snapshot.time
        return None

    def _snapshot(self) -> EndsSnapshot:
        time = datetime.now(UTC)
        return EndsSnapshot(
            time, {view: None if planner is None else planner.log_ends() for view, planner in self._planners.items()}
        )


def _is_read(reached: dict[str, int] | None, ends: dict[str, int] | None, now: dict[str, int] | None) -> bool:
    """Whether a position is at or after the ends of the logs that still exist."""
    if ends is None or now is None:
        return True
    return all((reached or {}).get(log, 0) >= min(end, now[log]) for log, end in ends.items() if log in now)


class LagSteps:
    """Folds micro-batches into the table `lag`. `complete_until`: see ReadProgress."""

    def __init__(
        self,
        step: timedelta,
        since: datetime | None,
        complete_until: Callable[[Ends], datetime | None],
        *,
        sums: bool = False,
    ) -> None:
        self._step, self._since, self._complete_until = step, since, complete_until
        self._sums = sums
        self._persisted: list[DataFrame] = []

    def fold(self, rows: Tables, state: Tables, ends: Ends) -> Folded:
        """The new rows of the table `lag`, and the state of pipeline/transforms/lag_increments.py."""
        moments = self._moments(state)
        moments = moments._replace(newest=_newest(rows, moments.newest))
        found = merge_new_rows(rows, state)
        self.persist(found["changes"], found["records"])  # several tables are made of each
        until = self._until(moments, self._complete_until(ends))
        wanted = reportable_slots(moments, until, found["changes"])
        # A micro-batch that runs again must replace what it wrote before, so it writes a table, if an empty one.
        any_slot = lags.Slots(EPOCH, EPOCH, moments.step)
        lag = lags.lag_over_time(found["changes"], found["records"], wanted or any_slot)
        lag = lag if wanted else lag.where(F.lit(False))
        after = moments if until is None else moments._replace(reported=until)
        return Folded(
            next_state(found, after) | {"moments": _row(rows["offsets"].sparkSession, after)},
            {"lag": lags.sums(lag) if self._sums else lag},
        )

    def persist(self, *frames: DataFrame) -> None:
        """Keep these DataFrames in Spark's cache, and drop those of the last call."""
        for frame in self._persisted:
            frame.unpersist()
        self._persisted = [frame.persist() for frame in frames]

    def _moments(self, state: Tables) -> Moments:
        made = Moments(self._step)
        if not state:
            return made._replace(reported=made.before(self._since)) if self._since else made
        [row] = state["moments"].collect()
        return made._replace(reported=_time(row["told"]), newest=_time(row["newest"]))

    def _until(self, moments: Moments, complete: datetime | None) -> datetime | None:
        """The last moment that can be reported and was not; None: there is none."""
        if complete is None or moments.newest is None:
            return None
        until = moments.before(min(complete, moments.newest) - GRACE)
        return until if moments.reported is None or until > moments.reported else None


def _newest(rows: Tables, before: datetime | None) -> datetime | None:
    """The time of the newest record so far."""
    both = rows["offsets"].select("timestamp").unionByName(rows["raw"].select("timestamp"))
    [row] = both.select(F.unix_micros(F.max("timestamp"))).collect()
    found = [each for each in (_time(row[0]), before) if each is not None]
    return max(found, default=None)


def _row(spark: SparkSession, moments: Moments) -> DataFrame:
    micros: list[Any] = [None if at is None else (at - EPOCH) // MICRO for at in (moments.reported, moments.newest)]
    return spark.createDataFrame([(moments.step // MICRO, *micros)], _MOMENTS)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + micros * MICRO
