"""Keys and values of share groups in `__consumer_offsets`, as Kafka writes them (KIP-932)."""

from __future__ import annotations

from typing import Final

from protocol.declare import Message, field, message, nested
from protocol.wire import Array, Int8, Int32, Int64, String, Uuid


@message(api_key=10, versions="0")
class ShareGroupMemberMetadataKey(Message):
    """Key of a member of a share group."""

    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@message(api_key=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue(Message):
    """What a share member said of itself."""

    rack_id: str | None = field(String, nullable="0+")
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))


@message(api_key=11, versions="0")
class ShareGroupMetadataKey(Message):
    """Key of a share group."""

    group_id: str = field(String, "0")


@message(api_key=11, versions="0", flexible="0+")
class ShareGroupMetadataValue(Message):
    """Epoch of a share group, and the hash of its topics."""

    epoch: int = field(Int32)
    metadata_hash: int = field(Int64)


@message(api_key=12, versions="0")
class ShareGroupTargetAssignmentMetadataKey(Message):
    """Key of the target assignment of a share group."""

    group_id: str = field(String, "0")


@message(api_key=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue(Message):
    """Epoch of a target assignment, and when it was computed."""

    assignment_epoch: int = field(Int32)
    assignment_timestamp: int = field(Int64, tag=0, tagged="0+")


@message(api_key=13, versions="0")
class ShareGroupTargetAssignmentMemberKey(Message):
    """Key of a member's target assignment."""

    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@nested
class ShareGroupTargetAssignmentMemberValueTopicPartition(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(api_key=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue(Message):
    """The partitions that a share member is to have."""

    topic_partitions: list[ShareGroupTargetAssignmentMemberValueTopicPartition] = field(
        Array(ShareGroupTargetAssignmentMemberValueTopicPartition)
    )


@message(api_key=14, versions="0")
class ShareGroupCurrentMemberAssignmentKey(Message):
    """Key of a member's current assignment."""

    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@nested
class ShareGroupCurrentMemberAssignmentValueTopicPartitions(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(api_key=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue(Message):
    """The epochs and partitions that a share member has."""

    member_epoch: int = field(Int32)
    previous_member_epoch: int = field(Int32)
    state: int = field(Int8)
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValueTopicPartitions] = field(
        Array(ShareGroupCurrentMemberAssignmentValueTopicPartitions)
    )


@message(api_key=15, versions="0")
class ShareGroupStatePartitionMetadataKey(Message):
    """Key of a share group's list of share partitions."""

    group_id: str = field(String, "0")


@nested
class ShareGroupStatePartitionMetadataValueTopicPartitionsInfo(Message):
    topic_id: bytes = field(Uuid)
    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class ShareGroupStatePartitionMetadataValueTopicInfo(Message):
    topic_id: bytes = field(Uuid)
    topic_name: str = field(String)


@message(api_key=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue(Message):
    """The share partitions whose state in `__share_group_state` is being made, is there, or is being deleted."""

    initializing_topics: list[ShareGroupStatePartitionMetadataValueTopicPartitionsInfo] = field(
        Array(ShareGroupStatePartitionMetadataValueTopicPartitionsInfo)
    )
    initialized_topics: list[ShareGroupStatePartitionMetadataValueTopicPartitionsInfo] = field(
        Array(ShareGroupStatePartitionMetadataValueTopicPartitionsInfo)
    )
    deleting_topics: list[ShareGroupStatePartitionMetadataValueTopicInfo] = field(
        Array(ShareGroupStatePartitionMetadataValueTopicInfo)
    )


FAMILIES: Final[dict[int, tuple[type[Message], type[Message]]]] = {
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
}
