"""Where a job's rows go: a table at --output, counted again once written, or JSON lines on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def emit(spark: SparkSession, rows: DataFrame, output: str | None, kind: str) -> int:
    """Write rows as Parquet or Delta, or print them; how many there were.

    Errors:  PipelineError: the table does not have as many rows as were written.
    """
    if output is None:
        count = 0
        for row in rows.select(F.to_json(F.struct("*"))).toLocalIterator():
            sys.stdout.write(f"{row[0]}\n")
            count += 1
        return count
    return write(spark, rows, output, kind)


def write(spark: SparkSession, rows: DataFrame, path: str, kind: str) -> int:
    """Replace a table; how many rows it has now. Errors: PipelineError: not as many as were given to it."""
    given = Observation()
    rows.observe(given, F.count(F.lit(1)).alias("rows")).write.format(kind).mode("overwrite").save(path)
    count = int(given.get["rows"])
    check_rows(path, count, spark.read.format(kind).schema(rows.schema).load(path).count())
    return count


def check_rows(path: str, expected: int, found: int) -> None:
    """Errors: PipelineError: the two differ."""
    if expected != found:
        raise PipelineError(f"{path} has {found} rows where {expected} were written: it is not complete")
