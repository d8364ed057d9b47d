"""Jobs run on directories as the command line does, and logs of a broker that faults are added to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from job_kit import run
from made_logs import Logs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import tables
from pipeline.audit.audit import Audit
from pipeline.jobs import archive


def archived(spark: SparkSession, source: Path, output: Path, *words: str) -> Path:
    """An archive of a data directory as it is now."""
    assert run(archive, spark, source, output, *words) == 0
    return output


def logs_of(spark: SparkSession, directory: Path) -> Logs:
    """The logs that a broker has left, to be gone on with."""
    logs = Logs(directory)
    ends = tables.raw(spark, str(directory)).groupBy("log").agg(F.max("batch_last_offset").alias("last"))
    logs.ends = {row["log"]: row["last"] + 1 for row in ends.collect()}
    return logs


def rows_of(rows: DataFrame) -> list[Any]:
    """All rows, in an order that is the same for the same rows."""
    return sorted((row.asDict(recursive=True) for row in rows.collect()), key=str)


def contents(made: Audit) -> dict[str, list[Any]]:
    """Every table of an audit."""
    return {name: rows_of(table) for name, table in made.tables().items()}
