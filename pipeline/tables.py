"""The three views of a log as DataFrames, whether they lie in a broker's data directory or in an archive of it.

An archive has one table a view (`raw`, `offsets`, `transactions`), Parquet or Delta, divided by log and day; a data
directory has directories TOPIC-PARTITION and is read by the data source `momus`. Jobs ask here and see no difference.
"""

from __future__ import annotations

from fnmatch import fnmatchcase, translate
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import DateType

from pipeline.errors import PipelineError
from pipeline.files import is_directory, join_path, read_json
from pipeline.schema import LOCATION_COLUMNS, TOPICS, VIEWS, spark_schema, view_fields
from pipeline.source.read_options import spark_options
from pipeline.transforms.missing_offsets import missing_reason, present_and_missing_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

DAY: Final = "day"  # of the record's timestamp, UTC
RANGED: Final = ("log", "topic", "partition", "offset")  # what coverage reads
ARCHIVE_STARTS: Final = (
    "_began"  # an archive's folder: where each log of a view stood when its first rows were archived
)


def offsets(spark: SparkSession, path: str, columns: Sequence[str] | None = None) -> DataFrame:
    """Every record of `__consumer_offsets`, decoded."""
    return view(spark, path, "offsets", columns=columns)


def transactions(spark: SparkSession, path: str, columns: Sequence[str] | None = None) -> DataFrame:
    """Every record of `__transaction_state`, decoded."""
    return view(spark, path, "transactions", columns=columns)


def raw(spark: SparkSession, path: str, topic: str = "*", columns: Sequence[str] | None = None) -> DataFrame:
    """The records of the topics that match a glob, as they are.

    An archive has the internal topics decoded: their keys, values and headers are null here, their places are not.
    """
    found = view(spark, path, "raw", topic, columns)
    if is_archive(path):
        for records in ("offsets", "transactions"):
            if fnmatchcase(TOPICS[records], topic):
                place = [name for name in found.columns if name in LOCATION_COLUMNS]
                part = view(spark, path, records, columns=place)
                found = found.unionByName(part, allowMissingColumns=True)
    return found


def view(
    spark: SparkSession, path: str, records: str, topic: str | None = None, columns: Sequence[str] | None = None
) -> DataFrame:
    """One view, with the columns of pipeline/schema.py or only these of them, in its order; without rows where there
    is nothing of it."""
    if not is_archive(path):
        return spark.read.format("momus").options(**spark_options(path, records, topic, columns)).load()
    return select_view(_table(spark, path, records), records, topic, columns)


def select_view(found: DataFrame, records: str, topic: str | None, columns: Sequence[str] | None) -> DataFrame:
    """Of an archive's table, the topics that match a glob, and the columns of `view`."""
    if topic not in (None, "*"):
        found = found.where(F.col("topic").rlike(f"^{translate(str(topic))}"))
    return found.select(*view_fields(records, columns).names)


def is_archive(path: str) -> bool:
    """Whether a path holds an archive's tables; a data directory's logs are all called TOPIC-PARTITION."""
    return any(is_directory(join_path(path, records)) for records in VIEWS)


def coverage(spark: SparkSession, path: str, *records: str) -> DataFrame:
    """Which offsets of each log there are, and which are missing and why: for views `offsets` and `transactions`
    unless others are named.

    log, topic, partition, from_offset, to_offset (exclusive), missing, reason (null for what is there):

    | reason    | the offsets went                                                               |
    |-----------|--------------------------------------------------------------------------------|
    | removed   | by the cleaner, retention or DeleteRecords: a data directory cannot tell when  |
    | before    | the same, before the archive began with this log                               |
    | unwaited  | the same, although the archive had begun: the broker did not wait for it       |
    """
    found = None
    for name in records or ("offsets", "transactions"):
        beginnings = archive_start_offsets(path, name) if is_archive(path) else None
        rows = view(spark, path, name, columns=RANGED).withColumn("last_offset", F.col("offset"))
        part, why = missing_reason(present_and_missing_ranges(rows.select(*RANGED, "last_offset")), beginnings)
        part = part.select(
            "log", "topic", "partition", "from_offset", "to_offset", "missing",
            F.when(F.col("missing"), why).alias("reason"),
        )  # fmt: skip
        found = part if found is None else found.unionByName(part)
    assert found is not None
    return found


def _table(spark: SparkSession, path: str, records: str) -> DataFrame:
    schema = spark_schema(records)
    table = join_path(path, records)
    if not is_directory(table):
        return spark.createDataFrame([], schema)
    if is_delta(table):
        require_delta(spark, table)
        return spark.read.format("delta").load(table).select(*schema.names)
    # Without the schema, Spark would take a log named like a date for one.
    read = spark.read.schema(spark_schema(records).add(DAY, DateType()))
    return read.parquet(table).select(*schema.names)


def is_delta(table: str) -> bool:
    """Whether a table is one of Delta Lake."""
    return is_directory(join_path(table, "_delta_log"))


def require_delta(spark: SparkSession, table: str) -> None:
    """Errors: PipelineError: the session has no Delta Lake."""
    if "delta" not in (spark.conf.get("spark.sql.extensions", "") or "").lower():
        raise PipelineError(f"{table} is a table of Delta Lake: add --format delta")


def archive_start_offsets(path: str, records: str) -> dict[str, int]:
    """Log -> the end of it when its first rows were archived."""
    found: dict[str, int] = read_json(join_path(path, f"{ARCHIVE_STARTS}/{records}.json")) or {}
    return found
