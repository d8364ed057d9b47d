"""Where a job's rows go: a table at --output, counted again once written, or JSON lines on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH: Final = "batch"


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
    reader = spark.read.format(kind)
    if kind == "parquet":
        reader = reader.schema(rows.schema)  # a table without rows has no file that would tell
    count = int(given.get["rows"])
    check_rows(path, count, reader.load(path).count())
    return count


def write_part(spark: SparkSession, rows: DataFrame, path: str, kind: str, batch: int) -> None:
    """Replace what a micro-batch has added to a table, which has its number as a column `batch`.

    Errors:  PipelineError: the part does not have as many rows as were given to it.
    """
    if kind == "parquet":
        write(spark, rows, f"{path}/{BATCH}={batch}", kind)
        return
    given, is_part = Observation(), f"{BATCH} = {batch}"
    part = rows.withColumn(BATCH, F.lit(batch)).observe(given, F.count(F.lit(1)).alias("rows"))
    part.write.format(kind).partitionBy(BATCH).mode("overwrite").option("replaceWhere", is_part).save(path)
    check_rows(path, int(given.get["rows"]), spark.read.format(kind).load(path).where(is_part).count())


def check_rows(path: str, expected: int, found: int) -> None:
    """Errors: PipelineError: the two differ."""
    if expected != found:
        raise PipelineError(f"{path} has {found} rows where {expected} were written: it is not complete")
