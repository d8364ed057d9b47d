"""The job `lag`: how far every group was behind, over time.

    momus pipeline lag --input ./data                                    # 200 moments from the first commit to the last
    momus pipeline lag --input ./archive --since 2026-01-31T12:00:00 --until 2026-01-31T13:00:00 --step 60 --sum
    momus pipeline lag --input ./archive --bootstrap-server 127.0.0.1:9092     # the lag now, by the broker's log ends
    momus pipeline lag --input kafka://127.0.0.1:9092                          # a running broker, by Kafka's protocol
    momus pipeline lag --input ./data --follow --step 60 --output ./lag        # only what is new: OUTPUT/lag grows

Log ends are taken from the records of the topics: in the data directory, in the archive (`archive --topics`), or at
another path, --ends.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.connection_options import add_client_arguments, connect_with
from pipeline.errors import PipelineError
from pipeline.jobs import lag_follow
from pipeline.jobs.time_argument import time_argument
from pipeline.live.live_source import open_input
from pipeline.output import emit
from pipeline.streaming.follow import add_follow_arguments
from pipeline.transforms import commits
from pipeline.transforms import lag as lags

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READS_BROKER: Final = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument("--since", type=time_argument, metavar="TIME", help="the first moment [the first commit]")
    parser.add_argument("--until", type=time_argument, metavar="TIME", help="the last moment [the last commit]")
    parser.add_argument(
        "--step", type=float, metavar="SECONDS", help=f"between moments [for {lags.SLOTS} moments; --follow: 60]"
    )
    parser.add_argument("--sum", action="store_true", help="one row a group and topic")
    parser.add_argument("--ends", metavar="PATH", help="where the logs of the topics are [--input]")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="the lag now: ask this broker for log ends")
    add_client_arguments(parser)
    add_follow_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Print or write rows of transforms.lag.lag, or its sums; returns 0. Errors: PipelineError."""
    if args.follow:
        return lag_follow.run(spark, args)
    open_input(spark, args)
    independent = commits.all_independent(tables.offsets(spark, args.input, commits.DEPENDENCY_COLUMNS))
    changes = commits.effective(tables.offsets(spark, args.input, lags.COMMITS), independent=independent)
    if args.bootstrap_server:
        if args.since or args.until or args.step or args.ends:
            raise PipelineError(
                "a broker knows its log ends only as of now: use --bootstrap-server without --since, --until, --step, "
                "--ends"
            )
        connect_with(args)
        rows = now(spark, changes, args.bootstrap_server)
    else:
        slots = lags.slots_of(changes, args.since, args.until, args.step)
        if slots is None:
            return 0
        records = tables.raw(spark, args.ends or args.input, columns=lags.RECORDS)
        rows = lags.lag_over_time(changes, records, slots)
    rows = lags.sums(rows) if args.sum else rows
    labels = [name for name in ("time", *lags.LABELS) if name in rows.columns]
    emit(spark, rows.orderBy(*labels), args)
    return 0


def now(spark: SparkSession, changes: DataFrame, bootstrap: str) -> DataFrame:
    """The lag now, with the log ends that a broker reports."""
    from pipeline.group_offsets import end_offsets  # 9 ms

    moment = datetime.now(UTC)
    topics = [row["topic"] for row in commits.latest(changes).select("topic").distinct().collect()]
    found = [(t, p, end, 0) for (t, p), end in end_offsets(bootstrap, topics).items()]
    ends = spark.createDataFrame(found, f"topic string, partition int, {lags.END} long, slot int")
    slots = lags.Slots(moment, moment, timedelta(seconds=1))
    return lags.lag(lags.committed(changes, slots), ends, slots)
