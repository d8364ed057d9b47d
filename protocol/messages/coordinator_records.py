"""Keys and values of `__consumer_offsets` and `__transaction_state`, as Kafka writes them.

A key is its record type as i16, then the key itself; a value is its version as i16, then the value itself. Those of
streams groups stand in streams_group_records.py. The message's API_KEY is the record type.
"""

from __future__ import annotations

import struct
from typing import Final, cast

from protocol.codegen import codec
from protocol.declare import Message, field, message, nested
from protocol.errors import MalformedError
from protocol.wire import Array, Bytes, Int8, Int16, Int32, Int64, String, Uuid


@message(api_key=0, versions="0")
class LegacyOffsetCommitKey(Message):
    """Key of an offset written by Kafka before 0.9."""

    group: str = field(String, "0")
    topic: str = field(String, "0")
    partition: int = field(Int32, "0")


@message(api_key=0, versions="0")
class LegacyOffsetCommitValue(Message):
    """Value of an offset written by Kafka before 0.9."""

    offset: int = field(Int64, "0")
    metadata: str = field(String, "0")
    commit_timestamp: int = field(Int64, "0")


@message(api_key=1, versions="0")
class OffsetCommitKey(Message):
    """Key of a committed offset."""

    group: str = field(String, "0")
    topic: str = field(String, "0")
    partition: int = field(Int32, "0")


@message(api_key=1, versions="0-4", flexible="4+")
class OffsetCommitValue(Message):
    """A committed offset.

    1 expiry; 2 drops it; 3 leader epoch; 4 topic id.
    """

    offset: int = field(Int64)
    leader_epoch: int = field(Int32, "3+", default=-1)
    metadata: str = field(String)
    commit_timestamp: int = field(Int64)
    expire_timestamp: int = field(Int64, "1", default=-1)
    topic_id: bytes = field(Uuid, "4+", tag=0, tagged="4+")


@message(api_key=2, versions="0")
class GroupMetadataKey(Message):
    """Key of a classic group."""

    group: str = field(String, "0")


@nested
class MemberMetadata(Message):
    member_id: str = field(String)
    group_instance_id: str | None = field(String, "3+", nullable="3+", default=None)
    client_id: str = field(String)
    client_host: str = field(String)
    rebalance_timeout: int = field(Int32, "1+", default=-1)
    session_timeout: int = field(Int32)
    subscription: bytes = field(Bytes)
    assignment: bytes = field(Bytes)


@message(api_key=2, versions="0-4", flexible="4+")
class GroupMetadataValue(Message):
    """A classic group with its members.

    1 rebalance timeout; 2 time of the state; 3 instance ids.
    """

    protocol_type: str = field(String)
    generation: int = field(Int32)
    protocol: str | None = field(String, nullable="0+")
    leader: str | None = field(String, nullable="0+")
    current_state_timestamp: int = field(Int64, "2+", default=-1)
    members: list[MemberMetadata] = field(Array(MemberMetadata))


@message(api_key=3, versions="0")
class ConsumerGroupMetadataKey(Message):
    """Key of a consumer group."""

    group_id: str = field(String, "0")


@message(api_key=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue(Message):
    """Epoch of a consumer group, and the hash of what it subscribes to."""

    epoch: int = field(Int32)
    metadata_hash: int = field(Int64, tag=0, tagged="0+")


@message(api_key=4, versions="0")
class ConsumerGroupPartitionMetadataKey(Message):
    """Key of what a consumer group knew of its topics (no longer written since 4.1)."""

    group_id: str = field(String, "0")


@nested
class PartitionMetadata(Message):
    partition: int = field(Int32)
    racks: list[str] = field(Array(String))


@nested
class TopicMetadata(Message):
    topic_id: bytes = field(Uuid)
    topic_name: str = field(String)
    num_partitions: int = field(Int32)
    partition_metadata: list[PartitionMetadata] = field(Array(PartitionMetadata))


@message(api_key=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue(Message):
    """Topics with their number of partitions (no longer written since 4.1)."""

    topics: list[TopicMetadata] = field(Array(TopicMetadata))


@message(api_key=5, versions="0")
class ConsumerGroupMemberMetadataKey(Message):
    """Key of a member of a consumer group."""

    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@nested
class ClassicProtocol(Message):
    name: str = field(String)
    metadata: bytes = field(Bytes)


@nested
class ClassicMemberMetadata(Message):
    session_timeout_ms: int = field(Int32)
    supported_protocols: list[ClassicProtocol] = field(Array(ClassicProtocol))


@message(api_key=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue(Message):
    """What a member said of itself."""

    instance_id: str | None = field(String, nullable="0+")
    rack_id: str | None = field(String, nullable="0+")
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))
    subscribed_topic_regex: str | None = field(String, nullable="0+")
    rebalance_timeout_ms: int = field(Int32, default=-1)
    server_assignor: str | None = field(String, nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field(
        ClassicMemberMetadata, nullable="0+", tag=0, tagged="0+"
    )


@message(api_key=6, versions="0")
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """Key of a consumer group's target assignment."""

    group_id: str = field(String, "0")


@message(api_key=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """Epoch of the target assignment."""

    assignment_epoch: int = field(Int32)
    assignment_timestamp: int = field(Int64, tag=0, tagged="0+")


@message(api_key=7, versions="0")
class ConsumerGroupTargetAssignmentMemberKey(Message):
    """Key of a member's target assignment."""

    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@nested
class ConsumerGroupTargetAssignmentMemberValueTopicPartition(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(api_key=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue(Message):
    """What a member shall have."""

    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValueTopicPartition] = field(
        Array(ConsumerGroupTargetAssignmentMemberValueTopicPartition)
    )


@message(api_key=8, versions="0")
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """Key of a member's current assignment."""

    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@nested
class ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))
    assignment_epochs: list[int] | None = field(Array(Int32), nullable="0+", tag=0, tagged="0+")


@message(api_key=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """What a member has, at which epochs, and what it must still give back."""

    member_epoch: int = field(Int32)
    previous_member_epoch: int = field(Int32)
    state: int = field(Int8)
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = field(
        Array(ConsumerGroupCurrentMemberAssignmentValueTopicPartitions)
    )
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = field(
        Array(ConsumerGroupCurrentMemberAssignmentValueTopicPartitions)
    )


@message(api_key=16, versions="0")
class ConsumerGroupRegularExpressionKey(Message):
    """Key of a regular expression that members subscribe to."""

    group_id: str = field(String, "0")
    regular_expression: str = field(String, "0")


@message(api_key=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue(Message):
    """The topics that an expression was resolved to."""

    topics: list[str] = field(Array(String))
    version: int = field(Int64)
    timestamp: int = field(Int64)


@message(api_key=0, versions="0")
class TransactionLogKey(Message):
    """Key of a transactional id."""

    transactional_id: str = field(String, "0")


@nested
class PartitionsSchema(Message):
    topic: str = field(String)
    partition_ids: list[int] = field(Array(Int32))


@message(api_key=0, versions="0-1", flexible="1+")
class TransactionLogValue(Message):
    """State of a transactional id.

    1 flexible, with the client's transaction version and the ids before and after.
    """

    producer_id: int = field(Int64)
    previous_producer_id: int = field(Int64, "1+", tag=0, tagged="1+", default=-1)
    next_producer_id: int = field(Int64, "1+", tag=1, tagged="1+", default=-1)
    producer_epoch: int = field(Int16)
    next_producer_epoch: int = field(Int16, "1+", tag=3, tagged="1+", default=-1)
    transaction_timeout_ms: int = field(Int32)
    transaction_status: int = field(Int8)
    transaction_partitions: list[PartitionsSchema] | None = field(Array(PartitionsSchema), nullable="0+")
    transaction_last_update_timestamp_ms: int = field(Int64)
    transaction_start_timestamp_ms: int = field(Int64)
    client_transaction_version: int = field(Int16, "1+", tag=2, tagged="1+")


_FAMILIES: Final[dict[int, tuple[type[Message], type[Message]]]] = {  # record type: key and value
    0: (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
_I16: Final = struct.Struct(">h")


def encode_key(key: Message) -> bytes:
    """Record type, then the key at its only version."""
    return _I16.pack(key.API_KEY) + codec(type(key), 0).encode(key)


def encode_record(value: Message, version: int) -> bytes:
    """Version, then the value."""
    return _I16.pack(version) + codec(type(value), version).encode(value)


def record_types(record_type: int) -> tuple[type[Message], type[Message]]:
    """Classes of key and value of a record type in `__consumer_offsets`."""
    found = _FAMILIES.get(record_type)
    if found is None:
        # 0.5 ms each: when a log first holds one
        from protocol.messages import share_group_records, streams_group_records

        found = streams_group_records.FAMILIES.get(record_type) or share_group_records.FAMILIES.get(record_type)
        if found is None:
            raise MalformedError(f"record type {record_type} is not known")
    return found


def _decode(cls: type[Message], version: int, data: bytes) -> Message:
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise MalformedError(f"{cls.__name__} has no version {version}")
    return codec(cls, version).decode(data, 2)[0]


def _prefix(data: bytes) -> int:
    if len(data) < 2:
        raise MalformedError(f"a key or value of {len(data)} bytes has no room for its type or version")
    return int(_I16.unpack_from(data)[0])


def decode_record(key: bytes, value: bytes | None) -> tuple[Message, Message | None]:
    """Key and value of a record of `__consumer_offsets`; a value of None is a tombstone."""
    key_class, value_class = record_types(_prefix(key))
    return _decode(key_class, 0, key), None if value is None else _decode(value_class, _prefix(value), value)


def decode_transaction_record(key: bytes, value: bytes | None) -> tuple[TransactionLogKey, TransactionLogValue | None]:
    """Key and value of a record of `__transaction_state`."""
    if _prefix(key) != TransactionLogKey.API_KEY:
        raise MalformedError(f"record type {_prefix(key)} is not known in __transaction_state")
    made = _decode(TransactionLogKey, 0, key)
    state = None if value is None else _decode(TransactionLogValue, _prefix(value), value)
    return cast("TransactionLogKey", made), cast("TransactionLogValue | None", state)
