"""What is to be copied: topics as the metadata log describes them, records that count, and where offsets map to.

The target's partitions are written by one producer each and hold nothing else, so they are numbered from 0 without a
gap: a record's offset there is the number of records before it that were kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.audit.log_coverage import batches
from pipeline.audit.transactions import with_transaction_end
from pipeline.files import open_directory
from pipeline.transforms import commits
from protocol.messages.metadata_records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_record,
)
from protocol.record_batch import CONTROL, iter_batches, iter_records

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, Row

METADATA: Final = "__cluster_metadata"
# Columns that are looked at: of the metadata log, of the view `offsets`, and of a record's place and itself.
METADATA_RECORDS: Final = ("offset", "control", "value")
COMMITS: Final = (*commits.DECIDING, "commit_offset", "commit_metadata")
LOCATION_COLUMNS: Final = (
    "log", "topic", "partition", "batch_base_offset", "batch_last_offset", "offset", "timestamp", "control",
)  # fmt: skip
RECORDS: Final = (*LOCATION_COLUMNS, "key", "value", "headers")
_TOPIC_CONFIG: Final = 2  # the type of a config resource
# ReadOptions that name brokers of the source.
_LOCAL: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


@dataclass(slots=True)
class Topic:
    """A topic of the source; configs holds only what was set for it."""

    name: str
    partitions: int = 0
    configs: dict[str, str] = field(default_factory=dict)


def topics_of(values: Iterable[bytes]) -> dict[str, Topic]:
    """The topics that metadata records leave standing, by name."""
    found: dict[str, Topic] = {}
    names: dict[bytes, str] = {}
    for value in values:
        match decode_record(value):
            case TopicRecord(name=name, topic_id=topic_id):
                names[topic_id] = name
                found[name] = Topic(name, configs=found[name].configs if name in found else {})
            case PartitionRecord(topic_id=topic_id, partition_id=index) if topic_id in names:
                topic = found[names[topic_id]]
                topic.partitions = max(topic.partitions, index + 1)
            case ConfigRecord(resource_type=kind, resource_name=name, name=key, value=text) if kind == _TOPIC_CONFIG:
                configs = found.setdefault(name, Topic(name)).configs
                if text is None:
                    configs.pop(key, None)
                elif key not in _LOCAL:
                    configs[key] = text
            case RemoveTopicRecord(topic_id=topic_id) if topic_id in names:
                found.pop(names.pop(topic_id), None)
            case _:
                continue
    return {name: topic for name, topic in found.items() if topic.partitions}


def metadata_values(raw: DataFrame, path: str) -> Iterator[bytes]:
    """The records of the metadata log in order, from its newest image on; raw: that log's."""
    start = -1
    for begin, value in _image(path):
        start = begin
        yield value
    rows = raw.where(F.col("control").isNull() & (F.col("offset") >= start)).orderBy("offset").select("value")
    for row in rows.toLocalIterator():
        if row["value"]:
            yield bytes(row["value"])


def _image(path: str) -> Iterator[tuple[int, bytes]]:
    """What KRaft's newest image of the metadata holds: (the offset it reaches to, record)."""
    from pyarrow import fs

    files, root = open_directory(path)
    where = fs.FileSelector(f"{root}/{METADATA}-0", allow_not_found=True)
    images = sorted(info.path for info in files.get_file_info(where) if info.path.endswith(".checkpoint"))
    if not images:
        return
    begin = int(images[-1].rpartition("/")[2].split("-")[0])
    with files.open_input_stream(images[-1]) as stream:
        content = stream.read()
    for position, header in iter_batches(content):
        if not header.attributes & CONTROL:
            for record in iter_records(memoryview(content)[position : position + header.length + 12]):
                if record.value:
                    yield begin, bytes(record.value)


def matching_topics(topics: dict[str, Topic], patterns: Iterable[str]) -> dict[str, Topic]:
    """The topics that a glob names; internal ones never."""
    wanted = tuple(patterns)
    return {
        name: topic
        for name, topic in sorted(topics.items())
        if not name.startswith("__") and any(fnmatchcase(name, pattern) for pattern in wanted)
    }


def uncommitted(raw: DataFrame) -> DataFrame:
    """The batches of transactions that were aborted or are still open."""
    return (
        with_transaction_end(batches(raw.where("transactional")))
        .where("ended_as is null or ended_as != 'COMMIT'")
        .select("log", F.col("offset").alias("batch_base_offset"), F.lit(True).alias("uncommitted"))
    )


def marked(raw: DataFrame, left_out: DataFrame) -> DataFrame:
    """Records with `kept`: whether a read_committed consumer sees them at the end. raw: LOCATION_COLUMNS or RECORDS.

    Not kept: markers, and the records of batches to be left out, those of `uncommitted`.
    """
    return raw.join(left_out, ["log", "batch_base_offset"], "left").select(
        "log",
        "topic",
        "partition",
        "offset",
        "batch_last_offset",
        F.unix_millis("timestamp").alias("timestamp_ms"),
        *(name for name in RECORDS if name not in LOCATION_COLUMNS and name in raw.columns),
        F.col("control").isNotNull().alias("marker"),
        (F.col("control").isNull() & F.col("uncommitted").isNull()).alias("kept"),
    )


def counts(records: DataFrame) -> DataFrame:
    """One row a log of `marked`: its records, why some are not kept, and the least time among those that are."""
    return records.groupBy("log").agg(
        F.min("offset").alias("first_offset"),
        (F.max("batch_last_offset") + 1).alias("end_offset"),
        F.count_if("kept").alias("kept"),
        F.count_if("marker").alias("markers"),
        F.count_if(~F.col("kept") & ~F.col("marker")).alias("uncommitted"),
        F.min(F.when(F.col("kept"), F.struct("timestamp_ms", "offset"))).alias("oldest"),
    )


def positions(offsets: DataFrame, records: DataFrame, topics: Iterable[str]) -> DataFrame:
    """Where every group stands (rows of the view `offsets`), and where that is in the target."""
    named = list(topics)
    stand = commits.latest(commits.effective(offsets)).where(F.col("topic").isin(named)).select(
        "group",
        F.concat("topic", F.lit("-"), "partition").alias("log"),
        "topic",
        "partition",
        "commit_offset",
        "metadata",
    )  # fmt: skip
    here = stand.select("log").distinct()
    marks = stand.select("log", F.col("commit_offset").alias("offset"), F.lit(0).alias("one")).distinct()
    ones = (
        records.where("kept").join(F.broadcast(here), "log", "left_semi").select("log", "offset", F.lit(1).alias("one"))
    )
    before = Window.partitionBy("log").orderBy("offset", "one").rowsBetween(Window.unboundedPreceding, 0)
    numbered = (
        marks.unionByName(ones)
        .withColumn("target_offset", F.sum("one").over(before))
        .where("one = 0")
        .select("log", F.col("offset").alias("commit_offset"), "target_offset")
    )
    found: DataFrame = stand.join(numbered, ["log", "commit_offset"]).orderBy("group", "topic", "partition")
    return found


def in_order(records: DataFrame, logs: int) -> RDD[Row]:
    """What is kept, as an RDD: a log is never divided, and its records come in the order of their offsets."""
    columns = ("log", "topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")
    rows = records.where("kept").select(*columns)
    return rows.repartition(max(1, logs), "log").sortWithinPartitions("log", "offset").rdd
