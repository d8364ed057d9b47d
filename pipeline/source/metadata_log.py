"""The metadata log `__cluster_metadata-0`: its newest snapshot, and the partitions of momus that it describes.

momus makes the folder of a partition with the first batch. Only the metadata log tells a partition that was never
written from one whose topic was deleted. Apache Kafka makes the folder with the partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyarrow import fs

from pipeline.files import open_directory
from pipeline.source.segment_ranges import scan
from protocol.messages.metadata_records import PartitionRecord, RemoveTopicRecord, TopicRecord, decode_record
from protocol.record_batch import CONTROL, iter_batches, iter_records

METADATA: Final = "__cluster_metadata"
_REGISTER_BROKER: Final = 27  # the record's type, its second byte


def newest_snapshot(path: str) -> Iterator[tuple[int, bytes]]:
    """The records of KRaft's newest metadata snapshot: (the end offset of the snapshot, value)."""
    files, root = open_directory(path)
    where = fs.FileSelector(f"{root}/{METADATA}-0", allow_not_found=True)
    snapshots = sorted(info.path for info in files.get_file_info(where) if info.path.endswith(".checkpoint"))
    if not snapshots:
        return
    begin = int(snapshots[-1].rpartition("/")[2].split("-")[0])
    with files.open_input_stream(snapshots[-1]) as stream:
        content = stream.read()
    for position, header in iter_batches(content):
        if not header.attributes & CONTROL:
            for record in iter_records(memoryview(content)[position : position + header.length + 12]):
                if record.value:
                    yield begin, bytes(record.value)


def described_partitions(path: str) -> set[tuple[str, int]]:
    """(topic, partition) of all that exist by the metadata log of a directory of momus; of Apache Kafka's, none.

    Kafka's log registers its brokers, and what it describes may be in the directory of another one.
    """
    names: dict[bytes, str] = {}
    found: dict[bytes, set[int]] = {}
    for value in _values(path):
        if value[1] == _REGISTER_BROKER:
            return set()
        match decode_record(value):
            case TopicRecord(name=name, topic_id=topic_id):
                names[topic_id] = name
            case PartitionRecord(topic_id=topic_id, partition_id=index) if topic_id in names:
                found.setdefault(topic_id, set()).add(index)
            case RemoveTopicRecord(topic_id=topic_id):
                found.pop(topic_id, None)
            case _:
                continue
    return {(names[topic_id], index) for topic_id, indexes in found.items() for index in indexes}


def _values(path: str) -> Iterator[bytes]:
    start = -1
    for begin, value in newest_snapshot(path):
        start = begin
        yield value
    for rows in scan(path, "raw", METADATA, ("offset", "control", "value")):
        for row in rows.to_pylist():
            if row["control"] is None and row["offset"] >= start and row["value"]:
                yield row["value"]
