"""Reads what the checks of share groups need from a data directory or an archive, beside the three views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.audit.log_coverage import with_lost_before
from pipeline.audit.share_states import partition_key
from pipeline.audit.shares import (
    COLUMNS,
    HIGHEST_BROKER_LIMIT,
    HIGHEST_GROUP_LIMIT,
    MOST_KEY,
    STATE_TOPIC,
    ShareInput,
    limits_from,
)
from pipeline.engine import F
from pipeline.files import join_path, open_directory
from pipeline.source.log_starts import starts_of
from pipeline.source.metadata_log import METADATA
from pipeline.source.topic_ids import read_topic_id
from protocol.errors import KafkaError, MalformedError
from protocol.messages.metadata_records import ConfigRecord, decode_record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP: Final = 32  # a resource type
LIMIT: Final = "share.delivery.count.limit"
_SETTING: Final = "struct<group: string, value: string>"


def share_input(spark: SparkSession, path: str, most_deliveries: int | None = None) -> ShareInput:
    """Read it. most_deliveries: the highest delivery limit that any group had; None: by `__cluster_metadata`."""
    records = with_lost_before(tables.raw(spark, path, STATE_TOPIC, COLUMNS)).localCheckpoint()
    is_archive = tables.is_archive(path)
    is_whole = not is_archive and starts_of(path).was_clean

    def topic_id_of(log: str) -> str | None:
        return _topic_id(path, log)

    if most_deliveries is not None:
        return ShareInput(records, {}, most_deliveries, topic_id_of, is_whole)
    if records.isEmpty():
        return ShareInput(records, {}, HIGHEST_GROUP_LIMIT, topic_id_of, is_whole)
    metadata = with_lost_before(tables.raw(spark, path, METADATA, ("log", "offset", "timestamp", "value")))
    ends = metadata.groupBy("log").agg(F.max("lost_before").alias("lost")).collect()
    is_known = not is_archive and len(ends) == 1 and ends[0]["lost"] == 0
    others = HIGHEST_BROKER_LIMIT if is_known else HIGHEST_GROUP_LIMIT
    setting = F.udf(_limit_setting, _SETTING, useArrow=False)("value").alias("setting")
    settings = (
        metadata.select("timestamp", setting).where("setting is not null").select("timestamp", "setting.*").collect()
    )
    limits = limits_from(settings, _since(records) if settings else {}, others, is_whole=is_known)
    return ShareInput(records, limits, others, topic_id_of, is_whole)


def _limit_setting(value: bytes | None) -> tuple[str, str | None] | None:
    """(group, its delivery limit; None: deleted) of a record of `__cluster_metadata`; None: it sets something else."""
    record = _metadata_record(value)
    if isinstance(record, ConfigRecord) and (record.resource_type, record.name) == (GROUP, LIMIT):
        return record.resource_name, record.value
    return None


def _metadata_record(value: bytes | None) -> object:
    try:
        return None if value is None else decode_record(bytes(value))
    except (KafkaError, MalformedError, ValueError, IndexError):
        return None  # of a later version, or a control record


def _since(records: DataFrame) -> dict[str, object]:
    """Group -> time of its first record."""
    first = (
        records.where("key is not null")
        .groupBy(F.substring("key", 3, MOST_KEY).alias("partition_key"))
        .agg(F.min("timestamp").alias("first"))
    )
    found: dict[str, object] = {}
    for row in first.collect():
        key = partition_key(b"\0\0" + bytes(row["partition_key"]))
        if key is not None:
            found[key.group] = min(found.get(key.group, row["first"]), row["first"])
    return found


def _topic_id(path: str, log: str) -> str | None:
    """What `partition.metadata` in a log's directory says."""
    return read_topic_id(*open_directory(join_path(path, log)))
