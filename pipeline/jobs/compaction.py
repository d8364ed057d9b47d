"""The job `compaction`: live and dead bytes of each segment, and what a cleaning would win.

momus pipeline compaction --input ./data                             # the internal topics
momus pipeline compaction --input ./data --topics 'accounts*'        # a topic that is compacted
momus pipeline compaction --input ./data --follow --output ./bytes   # only segments that have changed are read
"""

from __future__ import annotations

import argparse
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline import tables
from pipeline.jobs import compaction_follow
from pipeline.output import emit
from pipeline.streaming.follow import add_follow_arguments
from pipeline.transforms import compaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.jobs.compaction_follow import Keyed

NEEDS_KAFKA: Final = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What only this job knows."""
    parser.add_argument("--topics", metavar="GLOB", help="these instead of the internal topics")
    add_follow_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Print or write one row a segment."""
    if args.follow:
        return compaction_follow.run(spark, args, views_of(args.topics))
    rows = report(spark, args.input, args.topics)
    emit(spark, rows.orderBy("log", "segment"), args.output, args.format)
    return 0


def report(spark: SparkSession, path: str, topics: str | None = None) -> DataFrame:
    """The segments of the internal topics, or of those that match a glob."""
    columns = compaction.COLUMNS
    rows = [keyed(tables.view(spark, path, name, topics, columns[name])) for name, keyed in views_of(topics).items()]
    found = reduce(lambda one, other: one.unionByName(other), rows)
    return compaction.segments(compaction.shares(compaction.parts(compaction.fates(found))))


def views_of(topics: str | None) -> dict[str, Keyed]:
    """What is looked at, and how its records have keys."""
    if topics is not None:
        return {"raw": compaction.with_record_key}
    return {"offsets": compaction.with_record_key, "transactions": transaction_rows}


def transaction_rows(rows: DataFrame, *others: str) -> DataFrame:
    """The view `transactions` as compaction sees it: one key a transactional id and record type."""
    none = F.lit(None)
    named = rows.withColumns({"group": F.col("transactional_id"), "commit_topic": none.cast("string")})
    return compaction.with_record_key(named.withColumn("commit_partition", none.cast("int")), *others)
