"""The job `resets`: who set the offsets of a group back or ahead, and when: commits that go back, jumps, removals.

momus pipeline resets --input ./data
momus pipeline resets --input ./archive --group billing --since 2026-01-31T12:00:00
momus pipeline resets --input kafka://127.0.0.1:9092        # of a running broker, by Kafka's protocol
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.connection_options import add_client_arguments
from pipeline.engine import F
from pipeline.jobs.time_argument import time_argument
from pipeline.live.live_source import open_input
from pipeline.output import emit
from pipeline.transforms import commits
from pipeline.transforms.globs import matches
from pipeline.transforms.resets import resets

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

READS_BROKER: Final = True
FOR_BOTH: Final = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument("--group", metavar="GLOB", help="only these groups")
    parser.add_argument("--topic", metavar="GLOB", help="only offsets of these topics")
    parser.add_argument("--since", type=time_argument, metavar="TIME", help="from this time on")
    parser.add_argument("--until", type=time_argument, metavar="TIME", help="up to this time")
    add_client_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Print or write rows of transforms.resets.resets; returns 0. Errors: PipelineError."""
    open_input(spark, args)
    changes = commits.effective(tables.offsets(spark, args.input, commits.COLUMNS))
    for column in ("group", "topic"):
        if pattern := getattr(args, column):
            changes = changes.where(matches(column, pattern))
    rows = resets(commits.history(changes))
    if args.since:
        rows = rows.where(F.col("time") >= F.lit(args.since))
    if args.until:
        rows = rows.where(F.col("time") <= F.lit(args.until))
    emit(spark, rows.orderBy("time", "group", "topic", "partition"), args)
    return 0
