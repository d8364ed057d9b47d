"""The job `compaction`: live and dead bytes of each segment, and what a cleaning would free.

momus pipeline compaction --input ./data                             # the internal topics
momus pipeline compaction --input ./data --topics 'accounts*'        # compacted topics of your own
momus pipeline compaction --input ./data --follow --output ./bytes   # reads only segments that have changed
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.jobs import compaction_follow
from pipeline.output import emit
from pipeline.streaming.follow import add_follow_arguments
from pipeline.transforms import compaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument("--topics", metavar="GLOB", help="these instead of the internal topics")
    add_follow_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Print or write one row a segment; returns 0. Errors: PipelineError."""
    if args.follow:
        return compaction_follow.run(spark, args, compaction.keyed_views(args.topics))
    rows = report(spark, args.input, args.topics)
    emit(spark, rows.orderBy("log", "segment"), args)
    return 0


def report(spark: SparkSession, path: str, topics: str | None = None) -> DataFrame:
    """Rows of transforms.compaction.segments, of the internal topics or of the topics that match a glob."""

    def read(view: str) -> DataFrame:
        return tables.view(spark, path, view, topics, compaction.COLUMNS[view])

    return compaction.segments_of(read, topics)
