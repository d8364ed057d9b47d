"""The job `compaction`: live and dead bytes of each segment, and what a cleaning would win.

momus pipeline compaction --input ./data                             # the internal topics
momus pipeline compaction --input ./data --topics 'accounts*'        # a topic that is compacted
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline import compaction, tables
from pipeline.jobs.output import emit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEEDS_KAFKA: Final = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What only this job knows."""
    parser.add_argument("--topics", metavar="GLOB", help="these instead of the internal topics")


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Print or write one row a segment."""
    rows = report(spark, args.input, args.topics)
    emit(spark, rows.orderBy("log", "segment"), args.output, args.format)
    return 0


def report(spark: SparkSession, path: str, topics: str | None = None) -> DataFrame:
    """The segments of the internal topics, or of those that match a glob."""
    if topics is not None:
        kept = compaction.keyed(tables.view(spark, path, "raw", topics))
    else:
        kept = compaction.keyed(tables.offsets(spark, path)).unionByName(
            transaction_rows(tables.transactions(spark, path))
        )
    return compaction.segments(compaction.fates(kept))


def transaction_rows(rows: DataFrame) -> DataFrame:
    """The view `transactions` as compaction sees it: one key a transactional id and record type."""
    none = F.lit(None)
    return compaction.keyed(
        rows.withColumns({"group": F.col("transactional_id"), "commit_topic": none.cast("string")}).withColumn(
            "commit_partition", none.cast("int")
        )
    )
