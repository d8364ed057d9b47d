"""Checks of share groups: records delivered beyond the limit, again after their end, or archived and skipped unread.

The records of a share partition are walked in order (share_states.py). What they cannot prove is not reported: a record
that is archived may have been rejected, have come to the limit, belong to an aborted transaction, or been deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pipeline.audit.findings import (
    SHARE_DELIVERED_AGAIN,
    SHARE_DELIVERY_LIMIT,
    SHARE_UNREAD,
    findings,
    no_findings,
)
from pipeline.audit.share_states import AGAIN, BEYOND, SKIPPED, UNREAD, StateRecord, partition_key, walk
from pipeline.decode.records import uuid_text
from pipeline.engine import F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_KEY: Final = 1 << 20  # bytes
STATE_TOPIC: Final = "__share_group_state"
COLUMNS: Final = ("log", "segment", "offset", "timestamp", "control", "key", "value")  # of the view `raw`
HIGHEST_BROKER_LIMIT: Final = 10  # of group.share.delivery.count.limit
HIGHEST_GROUP_LIMIT: Final = 25  # of group.share.max.delivery.count.limit, which bounds share.delivery.count.limit
_KIND: Final = {
    AGAIN: SHARE_DELIVERED_AGAIN, BEYOND: SHARE_DELIVERY_LIMIT, UNREAD: SHARE_UNREAD, SKIPPED: SHARE_UNREAD,
}  # fmt: skip  # several to a line
_WRONG: Final = (  # the columns of Wrong, and where
    "what: string, offset: bigint, proof_offset: bigint, lost: bigint, first: bigint, last: bigint, detail: string, "
    "segment: bigint, timestamp: timestamp, group: string, topic_id: string, partition: int"
)


class ShareInput(NamedTuple):
    """What the checks read.

    records      of the topic STATE_TOPIC: COLUMNS and lost_before
    limits       group -> the highest delivery limit that it ever had
    others       the same of all other groups
    topic_id_of  of a log that is there, as Kafka prints it; None: not known
    is_whole     a record that was deleted from a partition is not among the rows
    """

    records: DataFrame
    limits: Mapping[str, int]
    others: int
    topic_id_of: Callable[[str], str | None]
    is_whole: bool


def limits_from(settings: Any, groups_since: Mapping[str, Any], others: int, *, is_whole: bool) -> dict[str, int]:
    """Group -> the highest limit that it ever had, by its settings.

    settings: rows of group, value (None: deleted), timestamp; groups_since: group -> time of its first record. Where
    they do not say it for the whole time, the limit may have been as high as that of the `others`.
    """
    said: dict[str, list[Any]] = {}
    for row in settings:
        said.setdefault(row["group"], []).append(row)
    made = {}
    for group, rows in said.items():
        values = [int(row["value"]) for row in rows if row["value"] is not None]
        first = min(row["timestamp"] for row in rows)
        known = is_whole and len(values) == len(rows) and group in groups_since and first <= groups_since[group]
        made[group] = max(values if known else [*values, others])
    return made


def share_findings(shares: ShareInput | None, batches: DataFrame, data: DataFrame, offsets: DataFrame) -> DataFrame:
    """The candidates (findings.py), one a record of STATE_TOPIC and fault.

    batches: rows of log_coverage.batches; data: the transactional ones with_transaction_end; offsets: of the view.
    """
    spark = batches.sparkSession
    if shares is None or shares.records.isEmpty():
        return no_findings(spark)
    walked = F.udf(partial(_walked, dict(shares.limits), shares.others), f"array<struct<{_WRONG}>>", useArrow=False)
    row = F.struct("offset", "lost_before", "key", "value", "segment", "timestamp")
    found = (
        shares.records.where("control is null and key is not null")
        .groupBy("log", F.substring("key", 3, MOST_KEY).alias("partition_key"))
        .agg(F.sort_array(F.collect_list(row)).alias("rows"))
        .select("log", F.explode(walked("rows")).alias("wrong"))
        .select("log", "wrong.*")
        .localCheckpoint()
    )
    proven = found.where(F.col("what") != SKIPPED)
    skipped = _still_there(found.where(F.col("what") == SKIPPED), batches, data, offsets, shares)
    parts = [
        findings(rows.where(F.col("what") == what), kind, F.col("detail"), F.col("lost"))
        for what, kind in _KIND.items()
        for rows in [
            (skipped if what == SKIPPED else proven).withColumn(
                "proof_log", F.when(F.col("proof_offset").isNotNull(), F.col("log"))
            )
        ]
    ]
    made = parts[0]
    for part in parts[1:]:
        made = made.unionByName(part)
    return made


def _walked(limits: Mapping[str, int], others: int, rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The records of one share partition, in order -> what is wrong, with the columns of _WRONG."""
    key = partition_key(rows[0]["key"])
    if key is None:
        return []
    by_offset = {row["offset"]: row for row in rows}
    records = (
        StateRecord(row["offset"], row["lost_before"], bytes(row["key"]), row["value"] and bytes(row["value"]))
        for row in rows
    )
    place = (key.group, uuid_text(key.topic_id), key.partition)
    return [
        (*wrong, by_offset[wrong.offset]["segment"], by_offset[wrong.offset]["timestamp"], *place)
        for wrong in walk(records, limits.get(key.group, others))
    ]


def _still_there(
    skipped: DataFrame, batches: DataFrame, data: DataFrame, offsets: DataFrame, shares: ShareInput
) -> DataFrame:
    """Of the ranges that start offsets passed, those with a record that a consumer should have got.

    A batch counts of which all records are there, outside of transactions or in one that committed. Of a topic that
    might be another one of the same name, or where records may have been deleted since, nothing can be decided. Of the
    ranges that one record passed, the first is reported.
    """
    if skipped.isEmpty():
        return skipped
    whole = "control is null and read_records = last_offset - offset + 1"
    columns = (F.col("log").alias("data_log"), F.col("offset").alias("from"), F.col("last_offset").alias("to"))
    there = batches.where(f"not transactional and {whole}").select(*columns)
    there = there.unionByName(data.where(f"ended_as = 'COMMIT' and {whole}").select(*columns))
    named = "topicId string, topicName string"
    kind = f"initializingTopics array<struct<{named}>>, initializedTopics array<struct<{named}>>"
    names = (
        offsets.where("kind = 'ShareGroupStatePartitionMetadata' and not tombstone")
        .select(F.from_json("value_json", kind).alias("topics"))
        .select(F.explode(F.concat("topics.initializingTopics", "topics.initializedTopics")).alias("topic"))
        .select(F.col("topic.topicId").alias("topic_id"), F.col("topic.topicName").alias("name"))
        .distinct()
    )
    there_in = (
        skipped.join(names, "topic_id")
        .withColumn("data_log", F.concat("name", F.lit("-"), F.col("partition").cast("string")))
        .join(there, "data_log")
        .where("`from` <= last and to >= first")
        .drop("from", "to")
    )
    others = [name for name in there_in.columns if name not in ("log", "offset", "first", "data_log")]
    found = (
        there_in.groupBy("log", "offset")
        .agg(F.min(F.struct("first", "data_log", *others)).alias("found"))
        .select("log", "offset", "found.*")
        .localCheckpoint()
    )
    logs = [row["data_log"] for row in found.select("data_log").distinct().collect()] if shares.is_whole else []
    sure = [(log, shares.topic_id_of(log)) for log in logs]
    known = found.sparkSession.createDataFrame(sure, "data_log string, id string")
    same = F.coalesce(F.col("id") == F.col("topic_id"), F.lit(False))
    return found.join(known, "data_log", "left").withColumn("lost", F.greatest("lost", F.when(same, 0).otherwise(1)))
