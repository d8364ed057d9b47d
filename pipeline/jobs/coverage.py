"""The job `coverage`: which offsets of each log are there, and which are missing and why.

momus pipeline coverage --input ./archive
momus pipeline coverage --input ./data --records raw
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.output import emit
from pipeline.schema import VIEWS

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

FOR_BOTH: Final = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument(
        "--records", choices=tuple(VIEWS), action="append", help="of these views [offsets and transactions]"
    )


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Print or write rows of tables.coverage; returns 0. Errors: PipelineError."""
    rows = tables.coverage(spark, args.input, *(args.records or ()))
    emit(spark, rows.orderBy("log", "from_offset"), args)
    return 0
