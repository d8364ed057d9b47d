"""Record types of `__consumer_offsets`, and the values of committed offsets. Group records: the rooms of groups/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from broker.coordinator.offsets.columns import Committed
from broker.coordinator.offsets.commit_batch import offset_key_prefix
from protocol.codegen import codec
from protocol.messages.coordinator_records import OffsetCommitValue, encode_record

if TYPE_CHECKING:
    from broker.turn.decision import Record

OFFSET_COMMIT_V0: Final = 0
OFFSET_COMMIT: Final = 1
GROUP_METADATA: Final = 2
CONSUMER_GROUP_METADATA: Final = 3
CONSUMER_GROUP_TYPES: Final = (3, 5, 6, 7, 8, 16)  # 4 is not written since Kafka 4.1, and not needed
SHARE_GROUP_METADATA: Final = 11
SHARE_GROUP_TYPES: Final = (10, 11, 12, 13, 14, 15)
STREAMS_GROUP_METADATA: Final = 17
STREAMS_GROUP_TYPES: Final = (17, 19, 20, 21, 22, 23)


def offset_value(committed: Committed) -> bytes:
    """The value of an offset record, in the version that Kafka chooses.

    Version 1 alone has an expiry time; it has no leader epoch and no topic id.
    """
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    return encode_record(value, 4 if committed.expire_timestamp_ms < 0 else 1)


def committed_value(value: bytes) -> Committed:
    """Decode an OffsetCommitValue of any version."""
    version = int.from_bytes(value[:2], "big")
    record, _ = codec(OffsetCommitValue, version).decode(value, 2)
    return Committed(
        record.offset,
        record.leader_epoch,
        record.metadata,
        record.commit_timestamp,
        record.expire_timestamp,
        record.topic_id,
    )


def offset_tombstones(group_id: str, partitions: Mapping[str, Iterable[int]]) -> list[Record]:
    """The records that delete committed offsets."""
    return [
        (prefix + partition.to_bytes(4, "big", signed=True), None)
        for topic, indexes in partitions.items()
        for prefix in (offset_key_prefix(group_id, topic),)
        for partition in indexes
    ]
