"""The job `lag --follow`: reads what is new in the logs, and tells the moments that nothing can change any more.

A moment is told once every log has been read as far as it went when a record of more than GRACE later was there. Until
then micro-batches may have read one log further than another, so all moments wait; records that come later still, with
times of told moments (a producer's clock may say anything), count from the next one on. `momus pipeline lag` says the
same of the same moments and the same logs. An archive has no ends to compare with: each look at it reads all there is.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.source.read_options import ReadOptions
from pipeline.source.stream_planner import StreamPlanner
from pipeline.streaming.checkpoint import committed_position, planned_position
from pipeline.streaming.follow import CHECKPOINT, STATE, Folded, View, follow
from pipeline.transforms import lag as lags
from pipeline.transforms.lag_increments import EPOCH, MICRO, Moments, merge_new_rows, next_state, reportable_slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Tables = dict[str, DataFrame]
    OverTime = Callable[[DataFrame, DataFrame, lags.Slots], DataFrame]

GRACE: Final = timedelta(seconds=5)  # between the clocks of broker, producers and this machine, and to send a batch
STEP_S: Final = 60.0
_MOMENTS: Final = "step long, told long, newest long"


def run(spark: SparkSession, args: argparse.Namespace, over_time: OverTime) -> int:
    """Add the moments that can be told to OUTPUT/lag, once or until stopped."""
    if args.until or args.bootstrap_server:
        raise PipelineError("--follow tells every moment once it is over: it goes without --until, --bootstrap-server")
    step = timedelta(seconds=args.step or STEP_S)
    _check_step(spark, args, step)
    ends = args.ends or args.input
    progress = ReadProgress([args.input, ends], f"{args.output}/{CHECKPOINT}")
    views = {
        "offsets": View("offsets", lags.COMMITS),
        "raw": View("raw", lags.RECORDS, path=ends),
    }
    steps = LagSteps(step, args.since, progress.complete_until, over_time, sums=args.sum)
    try:
        return follow(spark, args, views, steps.fold)
    finally:
        steps.keep()


def _check_step(spark: SparkSession, args: argparse.Namespace, step: timedelta) -> None:
    """Errors: PipelineError: what is there was told in other steps."""
    done = committed_position(f"{args.output}/{CHECKPOINT}") if args.output else None
    if done is not None:
        [row] = spark.read.format(args.format).load(f"{args.output}/{STATE}/batch={done[0]}/moments").collect()
        if row["step"] != step // MICRO:
            raise PipelineError(
                f"{args.output} was begun with --step {row['step'] / 1e6:g}: another step needs another --output"
            )


class EndsSnapshot(NamedTuple):
    """Where the logs of each path ended at a time; None: nobody knows."""

    time: datetime
    ends: list[dict[str, int] | None]


class ReadProgress:
    """How far logs have been read, held against where they ended."""

    def __init__(self, paths: list[str], checkpoint: str) -> None:
        self._planners: list[StreamPlanner | None] = []
        for path, records in zip(paths, ("offsets", "raw"), strict=True):
            is_archive = tables.is_archive(path)
            self._planners.append(
                None if is_archive else StreamPlanner(ReadOptions({"path": path, "records": records}))
            )
        self._checkpoint = checkpoint
        self._waiting = self._mark()

    def complete_until(self, batch: int) -> datetime | None:
        """A time by which the logs had no more than has been read with this micro-batch; None: it is not over yet."""
        position = planned_position(self._checkpoint, batch)
        # The first source is the view `offsets` and the last is `raw`; an archive may have more in between.
        reached = [position[0], position[-1]]
        now = self._mark()
        for mark in (now, self._waiting):
            if all(_behind(*each) for each in zip(reached, mark.ends, now.ends, strict=True)):
                self._waiting = now
                return mark.time
        return None

    def _mark(self) -> EndsSnapshot:
        time = datetime.now(UTC)
        return EndsSnapshot(time, [None if planner is None else planner.log_ends() for planner in self._planners])


def _behind(reached: dict[str, int] | None, ends: dict[str, int] | None, now: dict[str, int] | None) -> bool:
    """Whether a position is at or behind the ends of the logs that are still there."""
    if ends is None or now is None:
        return True
    return all((reached or {}).get(log, 0) >= min(end, now[log]) for log, end in ends.items() if log in now)


class LagSteps:
    """Folds micro-batches. `complete_until`: see ReadProgress."""

    def __init__(
        self,
        step: timedelta,
        since: datetime | None,
        complete_until: Callable[[int], datetime | None],
        over_time: OverTime,
        *,
        sums: bool = False,
    ) -> None:
        self._step, self._since, self._complete_until = step, since, complete_until
        self._over_time, self._sums = over_time, sums
        self._kept: list[DataFrame] = []

    def fold(self, rows: Tables, state: Tables, batch: int) -> Folded:
        """New rows on top of what earlier ones have left: table `lag` and the state of pipeline/lag_steps.py."""
        moments = self._moments(state)
        moments = moments._replace(newest=_newest(rows, moments.newest))
        found = merge_new_rows(rows, state)
        self.keep(found["changes"], found["records"])  # several tables are made of each
        until = self._until(moments, self._complete_until(batch))
        wanted = reportable_slots(moments, until, found["changes"])
        # A micro-batch that is done again must replace what it said, so it says something, if only nothing.
        one = lags.Slots(EPOCH, EPOCH, moments.step)
        told = self._over_time(found["changes"], found["records"], wanted or one)
        told = told if wanted else told.where(F.lit(False))
        after = moments if until is None else moments._replace(reported=until)
        return Folded(
            next_state(found, after) | {"moments": _row(rows["offsets"].sparkSession, after)},
            {"lag": lags.sums(told) if self._sums else told},
        )

    def keep(self, *frames: DataFrame) -> None:
        """Hold these, and no others any more."""
        for frame in self._kept:
            frame.unpersist()
        self._kept = [frame.persist() for frame in frames]

    def _moments(self, state: Tables) -> Moments:
        made = Moments(self._step)
        if not state:
            return made._replace(reported=made.before(self._since)) if self._since else made
        [row] = state["moments"].collect()
        return made._replace(reported=_time(row["told"]), newest=_time(row["newest"]))

    def _until(self, moments: Moments, complete_until: datetime | None) -> datetime | None:
        """The last moment that can be told, if there is one that was not."""
        if complete_until is None or moments.newest is None:
            return None
        until = moments.before(min(complete_until, moments.newest) - GRACE)
        return until if moments.reported is None or until > moments.reported else None


def _newest(rows: Tables, before: datetime | None) -> datetime | None:
    """The time of the newest record there has been."""
    both = rows["offsets"].select("timestamp").unionByName(rows["raw"].select("timestamp"))
    [row] = both.select(F.unix_micros(F.max("timestamp"))).collect()
    found = [each for each in (_time(row[0]), before) if each is not None]
    return max(found, default=None)


def _row(spark: SparkSession, moments: Moments) -> DataFrame:
    micros: list[Any] = [None if at is None else (at - EPOCH) // MICRO for at in (moments.reported, moments.newest)]
    return spark.createDataFrame([(moments.step // MICRO, *micros)], _MOMENTS)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + micros * MICRO
