"""The coordinator's records in `__consumer_offsets`: Kafka's key and value schemas of groups and of what is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from broker.coordinator.offsets.columns import Committed
from broker.coordinator.offsets.commit_batch import offset_key_prefix
from protocol.codegen import codec
from protocol.messages.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    encode_record,
)

if TYPE_CHECKING:
    from broker.coordinator.groups.classic.group import ClassicGroup
    from broker.coordinator.groups.classic.member import Member
    from broker.coordinator.result import Record

OFFSET_COMMIT_V0: Final = 0
OFFSET_COMMIT: Final = 1
GROUP_METADATA: Final = 2
CONSUMER_GROUP_METADATA: Final = 3
CONSUMER_GROUP_TYPES: Final = (3, 5, 6, 7, 8, 16)  # 4 is no longer written since Kafka 4.1, and not needed
STREAMS_GROUP_METADATA: Final = 17
STREAMS_GROUP_TYPES: Final = (17, 19, 20, 21, 22, 23)

GROUP_METADATA_VERSION: Final = 3  # what Kafka writes; 4 would be flexible


def group_key(group_id: str) -> bytes:
    """The key of a group's GroupMetadata record."""
    return GROUP_METADATA.to_bytes(2, "big") + codec(GroupMetadataKey, 0).encode(GroupMetadataKey(group=group_id))


def group_tombstone(group_id: str) -> Record:
    """Deletes a classic group."""
    return group_key(group_id), None


def empty_group_record(group: ClassicGroup, generation_id: int, now_ms: int) -> Record:
    """The group has no members."""
    return _group_record(
        group.group_id,
        GroupMetadataValue(
            protocol_type=group.protocol_type,
            generation=generation_id,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=[],
        ),
    )


def stable_group_record(group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int) -> Record:
    """All members of the group's generation with their assignments; who has none in `assignments` gets empty bytes."""
    return _group_record(
        group.group_id,
        GroupMetadataValue(
            protocol_type=group.protocol_type,
            generation=group.generation_id,
            protocol=group.protocol_name,
            leader=group.leader,
            current_state_timestamp=now_ms,
            members=_members(group.members.values(), group.protocol_name, assignments),
        ),
    )


def _members(
    members: Iterable[Member], protocol_name: str | None, assignments: Mapping[str, bytes]
) -> list[MemberMetadata]:
    return [
        MemberMetadata(
            member_id=m.member_id,
            group_instance_id=m.group_instance_id,
            client_id=m.client_id,
            client_host=m.client_host,
            rebalance_timeout=m.rebalance_timeout_ms,
            session_timeout=m.session_timeout_ms,
            subscription=m.metadata(protocol_name),
            assignment=assignments.get(m.member_id, b""),
        )
        for m in members
    ]


def _group_record(group_id: str, value: GroupMetadataValue) -> Record:
    body = codec(GroupMetadataValue, GROUP_METADATA_VERSION).encode(value)
    return group_key(group_id), GROUP_METADATA_VERSION.to_bytes(2, "big") + body


def offset_value(committed: Committed) -> bytes:
    """The value of an offset record, in the version Kafka chooses.

    Only version 1 has room for an expiry, and none for leader epoch and topic id.
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
    """An OffsetCommitValue of any version."""
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
    """Deletes committed offsets."""
    return [
        (prefix + partition.to_bytes(4, "big", signed=True), None)
        for topic, indexes in partitions.items()
        for prefix in (offset_key_prefix(group_id, topic),)
        for partition in indexes
    ]
