"""Writes a job's rows to a table at --output and counts them there, or prints them as JSON lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pipeline.engine import F, is_local
from pipeline.errors import PipelineError
from pipeline.local.output import local_rows, print_rows, write_rows
from pipeline.replacing import replaced

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession

BATCH: Final = "batch"


def emit(spark: SparkSession, rows: DataFrame, args: argparse.Namespace) -> int:
    """Write rows to a table at --output, replacing an earlier one at once, or print them; returns how many there were.

    Errors:  PipelineError: see check_output; or the table does not hold as many rows as were written.
    """
    if args.output is None and is_local():
        return print_rows(local_rows(rows))
    if args.output is None:
        count = 0
        for row in rows.select(F.to_json(F.struct("*"))).toLocalIterator():
            sys.stdout.write(f"{row[0]}\n")
            count += 1
        return count
    with replaced(args) as folder:
        return write(spark, rows, folder, args.format)


def write(spark: SparkSession, rows: DataFrame, path: str, kind: str) -> int:
    """Replace a table; returns its number of rows. Errors: PipelineError: it does not hold as many as were written."""
    if is_local():
        return write_rows(local_rows(rows), path)
    from pyspark.sql import Observation  # 70 ms, and absent where only the local engine is

    given = Observation()
    rows.observe(given, F.count(F.lit(1)).alias("rows")).write.format(kind).mode("overwrite").save(path)
    reader = spark.read.format(kind)
    if kind == "parquet":
        reader = reader.schema(rows.schema)  # an empty table has no file to read the schema from
    count = int(given.get["rows"])
    check_rows(path, count, reader.load(path).count())
    return count


def write_part(spark: SparkSession, rows: DataFrame, path: str, kind: str, batch: int) -> None:
    """Replace the rows that one micro-batch added to a table; the column `batch` has its number.

    Errors:  PipelineError: the part does not hold as many rows as were written.
    """
    if kind == "parquet":
        write(spark, rows, f"{path}/{BATCH}={batch}", kind)
        return
    from pyspark.sql import Observation  # 70 ms, as above

    given, is_part = Observation(), f"{BATCH} = {batch}"
    part = rows.withColumn(BATCH, F.lit(batch)).observe(given, F.count(F.lit(1)).alias("rows"))
    part.write.format(kind).partitionBy(BATCH).mode("overwrite").option("replaceWhere", is_part).save(path)
    check_rows(path, int(given.get["rows"]), spark.read.format(kind).load(path).where(is_part).count())


def check_rows(path: str, expected: int, found: int) -> None:
    """Check a row count. Errors: PipelineError: the two numbers differ."""
    if expected != found:
        raise PipelineError(f"{path} has {found} rows, but {expected} were written: it is incomplete")
