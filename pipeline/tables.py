"""The three views of the logs as DataFrames, whether of a data directory, an archive or a running broker.

An archive has one table a view (`raw`, `offsets`, `transactions`), Parquet or Delta, partitioned by log and day. A data
directory has directories TOPIC-PARTITION and is read by the data source `momus`, a running broker by `momus-live`, of
which a session reads one cut (pipeline/live/live_source.py).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from pipeline.broker_address import is_broker
from pipeline.engine import F, is_local
from pipeline.errors import PipelineError
from pipeline.files import is_directory, join_path, read_json
from pipeline.local import views
from pipeline.schema import LOCATION_COLUMNS, TOPICS, VIEWS, spark_schema, view_fields
from pipeline.source.archived_topics import earlier_topics, of_newest_topics
from pipeline.source.metadata_log import described_partitions
from pipeline.source.read_options import ReadOptions, spark_options
from pipeline.transforms.globs import matches
from pipeline.transforms.missing_offsets import missing_reason, present_and_missing_ranges

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SKIP_DAMAGED: Final = "momus.skipDamaged"  # a setting of the session
DAY: Final = "day"  # of the record's timestamp, UTC
OFFSET_COLUMNS: Final = ("log", "topic", "partition", "offset")  # what coverage reads
ARCHIVE_STARTS: Final = "_began"  # folder in an archive: the end of each log when its first rows were archived


def offsets(
    spark: SparkSession, path: str, columns: Sequence[str] | None = None, until: datetime | None = None
) -> DataFrame:
    """Every record of `__consumer_offsets`, decoded. until: those that are an hour later may be left out."""
    return view(spark, path, "offsets", columns=columns, until=until)


def transactions(spark: SparkSession, path: str, columns: Sequence[str] | None = None) -> DataFrame:
    """Every record of `__transaction_state`, decoded."""
    return view(spark, path, "transactions", columns=columns)


def raw(
    spark: SparkSession,
    path: str,
    topic: str = "*",
    columns: Sequence[str] | None = None,
    without: Mapping[str, Collection[int]] | None = None,
    ends: Mapping[str, int] | None = None,
) -> DataFrame:
    """The records of the topics that match a glob, undecoded. without, ends: see view.

    An archive holds the internal topics decoded: their rows have null keys, values and headers here.
    """
    found = view(spark, path, "raw", topic, columns, without=without, ends=ends)
    if is_archive(path):
        for records in ("offsets", "transactions"):
            if fnmatchcase(TOPICS[records], topic):
                location = [name for name in found.columns if name in LOCATION_COLUMNS]
                part = view(spark, path, records, columns=location)
                found = found.unionByName(part, allowMissingColumns=True)
    return found


def view(
    spark: SparkSession,
    path: str,
    records: str,
    topic: str | None = None,
    columns: Sequence[str] | None = None,
    until: datetime | None = None,
    without: Mapping[str, Collection[int]] | None = None,
    ends: Mapping[str, int] | None = None,
) -> DataFrame:
    """One view, with the columns of pipeline/schema.py or only the named ones, in that order.

    It is empty if there is nothing of it. Of an archive, the rows of the newest topic of each log. until: of a data
    directory, records that are an hour later may be left out: see segment_files.up_to; without: those of these
    segments, key of a log (topic_ids.py) to base offsets; ends: of a data directory, the logs that are read, each up to
    its offset.

    Errors:  PipelineError: it is a table of Delta Lake and the session has no Delta Lake.
    """
    if is_broker(path):
        return live_view(spark, records, topic, columns)
    if not is_archive(path):
        if is_local():
            local: Any = spark
            return views.local_view(local, path, records, topic, columns, until, without, ends)  # type: ignore[return-value]  # local.frame's
        skip = spark.conf.get(SKIP_DAMAGED, "false") == "true"
        options = spark_options(
            path, records, topic, columns, skip_damaged=skip, until=until, without=without, ends=ends
        )
        return spark.read.format("momus").options(**options).load()
    return select_view(archived(spark, path, records), path, records, topic, columns)


def select_view(
    found: DataFrame, path: str, records: str, topic: str | None, columns: Sequence[str] | None
) -> DataFrame:
    """Of the rows of an archive's table those of `view`, with its columns."""
    if topic not in (None, "*"):
        found = found.where(matches("topic", str(topic)))
    if earlier := earlier_topics(path):
        known = found.sparkSession.createDataFrame(earlier, "earlier_log string, earlier_id string")
        same = (F.col("log") == F.col("earlier_log")) & F.col("topic_id").eqNullSafe(F.col("earlier_id"))
        found = found.join(F.broadcast(known), same, "left_anti")
    return found.select(*view_fields(records, columns).names)


def live_view(
    spark: SparkSession,
    records: str,
    topic: str | None = None,
    columns: Collection[str] | None = None,
    without: Collection[str] = (),
) -> DataFrame:
    """One view of the cut that is registered, with the columns of pipeline/schema.py or only the named ones.

    topic: a glob; without: names of topics that are left out.
    """
    if is_local():
        local: Any = spark
        return views.live_view(local, records, topic, columns, without)  # type: ignore[return-value]  # local.frame's
    names = {"columns": ",".join(columns or ()), "without": ",".join(without)}
    return spark.read.format("momus-live").options(records=records, topic=topic or "", **names).load()


def is_archive(path: str) -> bool:
    """Whether a path holds an archive's tables rather than the TOPIC-PARTITION directories of a data directory."""
    return not is_broker(path) and any(is_directory(join_path(path, records)) for records in VIEWS)


def coverage(spark: SparkSession, path: str, *records: str) -> DataFrame:
    """Which offsets of each log are there, and which are missing and why. Default: views `offsets` and `transactions`.

    One row a range: log, topic, partition, from_offset, to_offset (exclusive), missing, and reason, null for a range
    that is there:

    | reason    | the offsets were removed                                                          |
    |-----------|-----------------------------------------------------------------------------------|
    | removed   | by the cleaner, retention or DeleteRecords: a data directory cannot tell when     |
    | before    | likewise, before the archive began with this log                                  |
    | unwaited  | likewise, after the archive began: the broker did not wait for it                 |
    """
    found = None
    for name in records or ("offsets", "transactions"):
        beginnings = archive_start_offsets(path, name) if is_archive(path) else None
        rows = view(spark, path, name, columns=OFFSET_COLUMNS).withColumn("last_offset", F.col("offset"))
        part, why = missing_reason(present_and_missing_ranges(rows.select(*OFFSET_COLUMNS, "last_offset")), beginnings)
        part = part.select(
            "log", "topic", "partition", "from_offset", "to_offset", "missing",
            F.when(F.col("missing"), why).alias("reason"),
        )  # fmt: skip  # several to a line
        found = part if found is None else found.unionByName(part)
    assert found is not None
    return found


def archived(spark: SparkSession, path: str, records: str) -> DataFrame:
    """All rows of an archive's table, with the columns of the view; empty where there is no table.

    Errors:  PipelineError: it is a table of Delta Lake and the session has no Delta Lake.
    """
    if is_local():
        names = VIEWS[records].names
        local: Any = spark
        return views.archived_view(local, path, records, names)  # type: ignore[return-value]  # local.frame's
    from pyspark.sql.types import DateType  # 60 ms, and absent where only the local engine is

    schema = spark_schema(records)
    table = join_path(path, records)
    if not is_directory(table):
        return spark.createDataFrame([], schema)
    if is_delta(table):
        require_delta(spark, table)
        return with_all_columns(spark.read.format("delta").load(table), schema)
    # Without the schema, Spark would infer a date from the name of a log that looks like one.
    read = spark.read.schema(spark_schema(records).add(DAY, DateType()))
    return read.parquet(table).select(*schema.names)


def with_all_columns(found: DataFrame, schema: StructType) -> DataFrame:
    """Rows with the columns of a schema; those that an older table lacks are null."""
    return found.select(
        *(F.col(f.name) if f.name in found.columns else F.lit(None).cast(f.dataType).alias(f.name) for f in schema)
    )


def is_delta(table: str) -> bool:
    """Whether a table is a table of Delta Lake."""
    return is_directory(join_path(table, "_delta_log"))


def require_delta(spark: SparkSession, table: str) -> None:
    """Check the session. Errors: PipelineError: it has no Delta Lake."""
    if "delta" not in (spark.conf.get("spark.sql.extensions", "") or "").lower():
        raise PipelineError(f"{table} is a Delta Lake table: add --format delta")


def archive_start_offsets(path: str, records: str) -> dict[str, int]:
    """Log -> its end offset when its first rows were archived. Offsets removed below it were removed before that."""
    return of_newest_topics(path, starts_by_key(path, records), min)


def starts_by_key(path: str, records: str) -> dict[str, int]:
    """The same by the keys of logs (source/topic_ids.py), those of earlier topics included."""
    found: dict[str, int] = read_json(join_path(path, f"{ARCHIVE_STARTS}/{records}.json")) or {}
    return found


def log_floors(path: str) -> list[tuple[str, int, int]]:
    """(topic, partition, offset) of the logs of a data directory: below that offset no record is to come.

    It is the end of a log that has no record, 0 where it was never written. Of an archive nothing is known: an empty
    list.
    """
    if is_broker(path) or is_archive(path):
        return []
    options = ReadOptions(spark_options(path, "raw"))
    starts = options.log_starts()
    found = {f"{topic}-{partition}": 0 for topic, partition in described_partitions(path)}
    for each in options.segments():
        found[each.log] = max(each.base_offset, starts.get(each.log, 0))
    places = {log: log.rpartition("-") for log in found}
    return [(place[0], int(place[2]), found[log]) for log, place in places.items()]
