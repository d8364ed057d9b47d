"""The records of Kafka's share groups (KIP-932) in `__consumer_offsets`: momus writes none, but Apache Kafka does."""

from __future__ import annotations

from typing import Final

from protocol.declare import Message, field, message, nested
from protocol.wire import Array, Int8, Int32, Int64, String, Uuid


@message(api_key=10, versions="0")
class ShareGroupMemberMetadataKey(Message):
    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@message(api_key=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue(Message):
    rack_id: str | None = field(String, nullable="0+")
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))


@message(api_key=11, versions="0")
class ShareGroupMetadataKey(Message):
    group_id: str = field(String, "0")


@message(api_key=11, versions="0", flexible="0+")
class ShareGroupMetadataValue(Message):
    epoch: int = field(Int32)
    metadata_hash: int = field(Int64)


@message(api_key=12, versions="0")
class ShareGroupTargetAssignmentMetadataKey(Message):
    group_id: str = field(String, "0")


@message(api_key=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = field(Int32)
    assignment_timestamp: int = field(Int64, tag=0, tagged="0+")


@nested
class ShareGroupTopicPartition(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(api_key=13, versions="0")
class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@message(api_key=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[ShareGroupTopicPartition] = field(Array(ShareGroupTopicPartition))


@message(api_key=14, versions="0")
class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@message(api_key=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = field(Int32)
    previous_member_epoch: int = field(Int32)
    state: int = field(Int8)
    assigned_partitions: list[ShareGroupTopicPartition] = field(Array(ShareGroupTopicPartition))


@message(api_key=15, versions="0")
class ShareGroupStatePartitionMetadataKey(Message):
    group_id: str = field(String, "0")


@nested
class TopicPartitionsInfo(Message):
    topic_id: bytes = field(Uuid)
    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class TopicInfo(Message):
    topic_id: bytes = field(Uuid)
    topic_name: str = field(String)


@message(api_key=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue(Message):
    initializing_topics: list[TopicPartitionsInfo] = field(Array(TopicPartitionsInfo))
    initialized_topics: list[TopicPartitionsInfo] = field(Array(TopicPartitionsInfo))
    deleting_topics: list[TopicInfo] = field(Array(TopicInfo))


FAMILIES: Final[dict[int, tuple[type[Message], type[Message]]]] = {  # record type: key and value
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
}
