"""Logs of share groups as no broker writes them, and a fault with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from made_logs import Logs

from broker.coordinator.share.state import Key
from protocol.codegen import codec
from protocol.messages.coordinator_records import encode_record
from protocol.messages.metadata_records import ConfigRecord
from protocol.messages.metadata_records import encode_record as metadata_value
from protocol.messages.share_group_records import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
)
from protocol.messages.share_group_records import (
    ShareGroupStatePartitionMetadataValueTopicPartitionsInfo as TopicPartitionsInfo,
)
from protocol.record import encode_records
from protocol.record_batch import assemble_batch, build_batch
from storage.files.checkpoints import uuid_text

STATE = "__share_group_state-0"
METADATA = "__cluster_metadata-0"


class Fault(NamedTuple):
    """kind at offset of STATE (None: no finding), its sentence, its proof there, if it has one.

    lost: missing offsets between the two, which make a doubt of it.
    """

    kind: str | None
    offset: int = 0
    says: str = ""
    proof: int | None = None
    lost: int = 0


class ShareLogs(Logs):
    """With share groups and their topics, each with an id of its own."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.written: dict[int, tuple[int, int]] = {}  # offset of STATE -> its segment and time

    def write(self, record: Any) -> int:
        at_ms = self.tick()
        place = self.append(STATE, build_batch([record], timestamp_ms=at_ms), 1)
        self.written[place] = max(int(path.stem) for path in (self.directory / STATE).glob("*.log")), at_ms
        return place

    def thinned(self, log: str, count: int) -> None:
        """A batch of which the cleaner has left the first record."""
        section, at_ms = encode_records([(b"k", b"v")], self.tick(), self.now_ms)
        batch = assemble_batch(
            section, base_offset=0, leader_epoch=0, attributes=0, last_offset_delta=count - 1, base_timestamp=at_ms,
            max_timestamp=at_ms, producer_id=-1, producer_epoch=-1, base_sequence=-1, record_count=1,
        )  # fmt: skip  # several to a line
        self.append(log, batch, count)

    def topic(self, name: str, other_id: bytes | None = None, *, partition: int = 0, initialized: bool = True) -> Key:
        """A topic that a group of the same name reads; its directory says other_id."""
        topic_id = name.encode().ljust(16, b"\0")
        key = ShareGroupStatePartitionMetadataKey(group_id=name)
        info = TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=[0, 1])
        value = ShareGroupStatePartitionMetadataValue(
            initializing_topics=[] if initialized else [info],
            initialized_topics=[info] if initialized else [],
            deleting_topics=[],
        )
        raw = key.API_KEY.to_bytes(2, "big") + codec(type(key), 0).encode(key)
        batch = build_batch([(raw, encode_record(value, 0))], timestamp_ms=self.tick())
        self.append("__consumer_offsets-0", batch, 1)
        folder = self.directory / f"{name}-{partition}"
        folder.mkdir()
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_text(other_id or topic_id)}\n")
        return Key(name, topic_id, partition)

    def limit(self, group: str, value: str | None) -> None:
        record = ConfigRecord(resource_type=32, resource_name=group, name="share.delivery.count.limit", value=value)
        self.append(METADATA, build_batch([(None, metadata_value(record, 0))], timestamp_ms=self.tick()), 1)
