"""Keys and values of streams groups in `__consumer_offsets`, as Kafka writes them (KIP-1071)."""

from __future__ import annotations

from typing import Final

from protocol.declare import Message, field, message, nested
from protocol.wire import Array, Int8, Int16, Int32, Int64, String, UInt16


@message(api_key=17, versions="0")
class StreamsGroupMetadataKey(Message):
    """Key of a streams group."""

    group_id: str = field(String, "0")


@nested
class LastAssignmentConfig(Message):
    key: str = field(String)
    value: str = field(String)


@message(api_key=17, versions="0", flexible="0+")
class StreamsGroupMetadataValue(Message):
    """Epochs of a streams group, and the hash of its topics."""

    epoch: int = field(Int32)
    metadata_hash: int = field(Int64)
    validated_topology_epoch: int = field(Int32, tag=0, tagged="0+", default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = field(
        Array(LastAssignmentConfig), nullable="0+", tag=1, tagged="0+"
    )


@message(api_key=19, versions="0")
class StreamsGroupMemberMetadataKey(Message):
    """Key of a member of a streams group."""

    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@nested
class StreamsGroupMemberMetadataValueEndpoint(Message):
    host: str = field(String)
    port: int = field(UInt16)


@nested
class StreamsGroupMemberMetadataValueKeyValue(Message):
    key: str = field(String)
    value: str = field(String)


@message(api_key=19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue(Message):
    """What a streams member said of itself."""

    instance_id: str | None = field(String, nullable="0+")
    rack_id: str | None = field(String, nullable="0+")
    client_id: str = field(String)
    client_host: str = field(String)
    rebalance_timeout_ms: int = field(Int32, default=-1)
    topology_epoch: int = field(Int32)
    process_id: str = field(String)
    user_endpoint: StreamsGroupMemberMetadataValueEndpoint | None = field(
        StreamsGroupMemberMetadataValueEndpoint, nullable="0+", default=None
    )
    client_tags: list[StreamsGroupMemberMetadataValueKeyValue] = field(Array(StreamsGroupMemberMetadataValueKeyValue))


@message(api_key=20, versions="0")
class StreamsGroupTargetAssignmentMetadataKey(Message):
    """Key of a streams group's target assignment."""

    group_id: str = field(String, "0")


@message(api_key=20, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue(Message):
    """Epoch of the target assignment."""

    assignment_epoch: int = field(Int32)
    assignment_timestamp: int = field(Int64, tag=0, tagged="0+")


@message(api_key=21, versions="0")
class StreamsGroupTargetAssignmentMemberKey(Message):
    """Key of a streams member's target assignment."""

    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@nested
class StreamsGroupTargetAssignmentMemberValueTaskIds(Message):
    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(api_key=21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue(Message):
    """The tasks a member shall have."""

    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = field(
        Array(StreamsGroupTargetAssignmentMemberValueTaskIds)
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = field(
        Array(StreamsGroupTargetAssignmentMemberValueTaskIds)
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = field(
        Array(StreamsGroupTargetAssignmentMemberValueTaskIds)
    )


@message(api_key=22, versions="0")
class StreamsGroupCurrentMemberAssignmentKey(Message):
    """Key of a streams member's current assignment."""

    group_id: str = field(String, "0")
    member_id: str = field(String, "0")


@nested
class StreamsGroupCurrentMemberAssignmentValueTaskIds(Message):
    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))
    assignment_epochs: list[int] | None = field(Array(Int32), nullable="0+", tag=0, tagged="0+")


@message(api_key=22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue(Message):
    """The tasks a member has, and those it must still give back."""

    member_epoch: int = field(Int32)
    previous_member_epoch: int = field(Int32)
    state: int = field(Int8)
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field(
        Array(StreamsGroupCurrentMemberAssignmentValueTaskIds)
    )
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field(
        Array(StreamsGroupCurrentMemberAssignmentValueTaskIds)
    )
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field(
        Array(StreamsGroupCurrentMemberAssignmentValueTaskIds)
    )
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field(
        Array(StreamsGroupCurrentMemberAssignmentValueTaskIds)
    )
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field(
        Array(StreamsGroupCurrentMemberAssignmentValueTaskIds)
    )
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = field(
        Array(StreamsGroupCurrentMemberAssignmentValueTaskIds)
    )


@message(api_key=23, versions="0")
class StreamsGroupTopologyKey(Message):
    """Key of a streams group's topology."""

    group_id: str = field(String, "0")


@nested
class TopicConfig(Message):
    key: str = field(String)
    value: str = field(String)


@nested
class StreamsGroupTopologyValueTopicInfo(Message):
    name: str = field(String)
    partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    topic_configs: list[TopicConfig] = field(Array(TopicConfig))


@nested
class StreamsGroupTopologyValueCopartitionGroup(Message):
    source_topics: list[int] = field(Array(Int16))
    source_topic_regex: list[int] = field(Array(Int16))
    repartition_source_topics: list[int] = field(Array(Int16))


@nested
class StreamsGroupTopologyValueSubtopology(Message):
    subtopology_id: str = field(String)
    source_topics: list[str] = field(Array(String))
    source_topic_regex: list[str] = field(Array(String))
    state_changelog_topics: list[StreamsGroupTopologyValueTopicInfo] = field(Array(StreamsGroupTopologyValueTopicInfo))
    repartition_sink_topics: list[str] = field(Array(String))
    repartition_source_topics: list[StreamsGroupTopologyValueTopicInfo] = field(
        Array(StreamsGroupTopologyValueTopicInfo)
    )
    copartition_groups: list[StreamsGroupTopologyValueCopartitionGroup] = field(
        Array(StreamsGroupTopologyValueCopartitionGroup)
    )


@message(api_key=23, versions="0", flexible="0+")
class StreamsGroupTopologyValue(Message):
    """The topology: subtopologies with their topics."""

    epoch: int = field(Int32)
    subtopologies: list[StreamsGroupTopologyValueSubtopology] = field(Array(StreamsGroupTopologyValueSubtopology))


FAMILIES: Final[dict[int, tuple[type[Message], type[Message]]]] = {  # record type: key and value
    17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
