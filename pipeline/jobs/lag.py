"""The job `lag`: how far every group was behind, over time.

    momus pipeline lag --input ./data                                    # 200 moments from the first commit to the last
    momus pipeline lag --input ./archive --since 2026-01-31T12:00:00 --until 2026-01-31T13:00:00 --step 60 --sum
    momus pipeline lag --input ./archive --bootstrap-server 127.0.0.1:9092     # one moment: now, by the broker's ends
    momus pipeline lag --input ./data --follow --step 60 --output ./lag        # only what is new: OUTPUT/lag grows

The ends of logs come from their records: of a data directory, of the topics that an archive has (`archive --topics`),
or of another place, --ends.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.jobs import lag_follow
from pipeline.jobs.time_argument import time_argument
from pipeline.output import emit
from pipeline.streaming.follow import add_follow_arguments
from pipeline.transforms import commits
from pipeline.transforms import lag as lags

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEEDS_KAFKA: Final = False
SLOTS: Final = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What only this job knows."""
    parser.add_argument("--since", type=time_argument, metavar="TIME", help="the first moment [the first commit]")
    parser.add_argument("--until", type=time_argument, metavar="TIME", help="the last moment [the last commit]")
    parser.add_argument(
        "--step", type=float, metavar="SECONDS", help=f"between moments [so that there are {SLOTS}; --follow: 60]"
    )
    parser.add_argument("--sum", action="store_true", help="one row a group and topic")
    parser.add_argument("--ends", metavar="PATH", help="where the logs of the topics are [--input]")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="the lag now: ask this broker for the ends")
    add_follow_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Print or write what was asked for."""
    if args.follow:
        return lag_follow.run(spark, args, over_time)
    independent = commits.all_independent(tables.offsets(spark, args.input, commits.DEPENDENCY_COLUMNS))
    changes = commits.effective(tables.offsets(spark, args.input, lags.COMMITS), independent=independent)
    if args.bootstrap_server:
        if args.since or args.until or args.step or args.ends:
            raise PipelineError("a broker knows the ends of its logs only now: --bootstrap-server goes without times")
        rows = now(spark, changes, args.bootstrap_server)
    else:
        slots = slots_of(changes, args.since, args.until, args.step)
        if slots is None:
            return 0
        rows = over_time(changes, tables.raw(spark, args.ends or args.input, columns=lags.RECORDS), slots)
    rows = lags.sums(rows) if args.sum else rows
    labels = [name for name in ("time", *lags.LABELS) if name in rows.columns]
    emit(spark, rows.orderBy(*labels), args.output, args.format)
    return 0


def over_time(changes: DataFrame, records: DataFrame, slots: lags.Slots) -> DataFrame:
    """Lag at every slot, by the ends that records tell."""
    named = changes.select("topic", "partition").distinct()
    places = records.select(*lags.RECORDS).join(F.broadcast(named), ["topic", "partition"], "left_semi")
    return lags.lag(lags.committed(changes, slots), lags.ends(places, slots), slots)


def now(spark: SparkSession, changes: DataFrame, bootstrap: str) -> DataFrame:
    """Lag by the ends that a broker tells."""
    from pipeline.group_offsets import end_offsets

    moment = datetime.now(UTC)
    topics = [row["topic"] for row in commits.latest(changes).select("topic").distinct().collect()]
    found = [(t, p, end, 0) for (t, p), end in end_offsets(bootstrap, topics).items()]
    told = spark.createDataFrame(found, f"topic string, partition int, {lags.END} long, slot int")
    slots = lags.Slots(moment, moment, timedelta(seconds=1))
    return lags.lag(lags.committed(changes, slots), told, slots)


def slots_of(
    changes: DataFrame, since: datetime | None, until: datetime | None, step_s: float | None
) -> lags.Slots | None:
    """The moments to tell of; None: nothing was ever committed."""
    [span] = changes.select(
        F.unix_micros(F.min("effective_at")).alias("first"), F.unix_micros(F.max("effective_at")).alias("last")
    ).collect()
    if span["first"] is None:
        return None
    first = since or datetime.fromtimestamp(0, UTC) + timedelta(microseconds=span["first"])
    last = until or datetime.fromtimestamp(0, UTC) + timedelta(microseconds=span["last"])
    step = timedelta(seconds=step_s) if step_s else max((last - first) / SLOTS, timedelta(seconds=1))
    return lags.Slots(first, last, step)
