"""Messages of the streams group protocol (KIP-1071)."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, String, UInt16


@nested
class StreamsGroupHeartbeatRequestKeyValue(Message):
    key: str = field(String)
    value: str = field(String)


@nested
class StreamsGroupHeartbeatRequestTopicInfo(Message):
    name: str = field(String)
    partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    topic_configs: list[StreamsGroupHeartbeatRequestKeyValue] = field(Array(StreamsGroupHeartbeatRequestKeyValue))


@nested
class StreamsGroupHeartbeatRequestCopartitionGroup(Message):
    source_topics: list[int] = field(Array(Int16))
    source_topic_regex: list[int] = field(Array(Int16))
    repartition_source_topics: list[int] = field(Array(Int16))


@nested
class StreamsGroupHeartbeatRequestSubtopology(Message):
    subtopology_id: str = field(String)
    source_topics: list[str] = field(Array(String))
    source_topic_regex: list[str] = field(Array(String))
    state_changelog_topics: list[StreamsGroupHeartbeatRequestTopicInfo] = field(
        Array(StreamsGroupHeartbeatRequestTopicInfo)
    )
    repartition_sink_topics: list[str] = field(Array(String))
    repartition_source_topics: list[StreamsGroupHeartbeatRequestTopicInfo] = field(
        Array(StreamsGroupHeartbeatRequestTopicInfo)
    )
    copartition_groups: list[StreamsGroupHeartbeatRequestCopartitionGroup] = field(
        Array(StreamsGroupHeartbeatRequestCopartitionGroup)
    )


@nested
class StreamsGroupHeartbeatRequestTopology(Message):
    epoch: int = field(Int32)
    subtopologies: list[StreamsGroupHeartbeatRequestSubtopology] = field(Array(StreamsGroupHeartbeatRequestSubtopology))


@nested
class StreamsGroupHeartbeatRequestTaskIds(Message):
    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class StreamsGroupHeartbeatRequestEndpoint(Message):
    host: str = field(String)
    port: int = field(UInt16)


@nested
class StreamsGroupHeartbeatRequestTaskOffset(Message):
    subtopology_id: str = field(String)
    partition: int = field(Int32)
    offset: int = field(Int64)


@message(api_key=88, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatRequest(Message):
    """A member of a streams group is alive, and says what changed (KIP-1071).

    Null stands for unchanged since the last heartbeat.
    """

    group_id: str = field(String)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    endpoint_information_epoch: int = field(Int32)
    instance_id: str | None = field(String, nullable="0+", default=None)
    rack_id: str | None = field(String, nullable="0+", default=None)
    rebalance_timeout_ms: int = field(Int32, default=-1)
    topology: StreamsGroupHeartbeatRequestTopology | None = field(
        StreamsGroupHeartbeatRequestTopology, nullable="0+", default=None
    )
    active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = field(
        Array(StreamsGroupHeartbeatRequestTaskIds), nullable="0+", default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = field(
        Array(StreamsGroupHeartbeatRequestTaskIds), nullable="0+", default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = field(
        Array(StreamsGroupHeartbeatRequestTaskIds), nullable="0+", default=None
    )
    process_id: str | None = field(String, nullable="0+", default=None)
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = field(
        StreamsGroupHeartbeatRequestEndpoint, nullable="0+", default=None
    )
    client_tags: list[StreamsGroupHeartbeatRequestKeyValue] | None = field(
        Array(StreamsGroupHeartbeatRequestKeyValue), nullable="0+", default=None
    )
    task_offsets: list[StreamsGroupHeartbeatRequestTaskOffset] | None = field(
        Array(StreamsGroupHeartbeatRequestTaskOffset), nullable="0+", default=None
    )
    task_end_offsets: list[StreamsGroupHeartbeatRequestTaskOffset] | None = field(
        Array(StreamsGroupHeartbeatRequestTaskOffset), nullable="0+", default=None
    )
    shutdown_application: bool = field(Bool)


@nested
class StreamsGroupHeartbeatResponseStatus(Message):
    status_code: int = field(Int8)
    status_detail: str = field(String)


@nested
class StreamsGroupHeartbeatResponseTaskIds(Message):
    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class StreamsGroupHeartbeatResponseEndpoint(Message):
    host: str = field(String)
    port: int = field(UInt16)


@nested
class StreamsGroupHeartbeatResponseTopicPartition(Message):
    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class EndpointToPartitions(Message):
    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = field(StreamsGroupHeartbeatResponseEndpoint)
    active_partitions: list[StreamsGroupHeartbeatResponseTopicPartition] = field(
        Array(StreamsGroupHeartbeatResponseTopicPartition)
    )
    standby_partitions: list[StreamsGroupHeartbeatResponseTopicPartition] = field(
        Array(StreamsGroupHeartbeatResponseTopicPartition)
    )


@message(api_key=88, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatResponse(Message):
    """Member epoch, status and, when they changed, the tasks."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    heartbeat_interval_ms: int = field(Int32)
    acceptable_recovery_lag_legacy: int = field(Int32, "0")
    task_offset_interval_ms: int = field(Int32)
    acceptable_recovery_lag: int = field(Int64, "1+", default=-1)
    status: list[StreamsGroupHeartbeatResponseStatus] | None = field(
        Array(StreamsGroupHeartbeatResponseStatus), nullable="0+"
    )
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = field(
        Array(StreamsGroupHeartbeatResponseTaskIds), nullable="0+", default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = field(
        Array(StreamsGroupHeartbeatResponseTaskIds), nullable="0+", default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = field(
        Array(StreamsGroupHeartbeatResponseTaskIds), nullable="0+", default=None
    )
    topology_description_required: bool = field(Bool, "1+")
    endpoint_information_epoch: int = field(Int32)
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field(
        Array(EndpointToPartitions), nullable="0+", default=None
    )


@message(api_key=89, versions="0-1", flexible="0+")
class StreamsGroupDescribeRequest(Message):
    """Ask for the state and members of streams groups (KIP-1071)."""

    group_ids: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Bool)
    include_topology_description: bool = field(Bool, "1+")


@nested
class StreamsGroupDescribeResponseKeyValue(Message):
    key: str = field(String)
    value: str = field(String)


@nested
class StreamsGroupDescribeResponseTopicInfo(Message):
    name: str = field(String)
    partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    topic_configs: list[StreamsGroupDescribeResponseKeyValue] = field(Array(StreamsGroupDescribeResponseKeyValue))


@nested
class StreamsGroupDescribeResponseSubtopology(Message):
    subtopology_id: str = field(String)
    source_topics: list[str] = field(Array(String))
    repartition_sink_topics: list[str] = field(Array(String))
    state_changelog_topics: list[StreamsGroupDescribeResponseTopicInfo] = field(
        Array(StreamsGroupDescribeResponseTopicInfo)
    )
    repartition_source_topics: list[StreamsGroupDescribeResponseTopicInfo] = field(
        Array(StreamsGroupDescribeResponseTopicInfo)
    )


@nested
class StreamsGroupDescribeResponseTopology(Message):
    epoch: int = field(Int32)
    subtopologies: list[StreamsGroupDescribeResponseSubtopology] | None = field(
        Array(StreamsGroupDescribeResponseSubtopology), nullable="0+", default=None
    )


@nested
class StreamsGroupDescribeResponseEndpoint(Message):
    host: str = field(String)
    port: int = field(UInt16)


@nested
class StreamsGroupDescribeResponseTaskOffset(Message):
    subtopology_id: str = field(String)
    partition: int = field(Int32)
    offset: int = field(Int64)


@nested
class StreamsGroupDescribeResponseTaskIds(Message):
    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class StreamsGroupDescribeResponseAssignment(Message):
    active_tasks: list[StreamsGroupDescribeResponseTaskIds] = field(Array(StreamsGroupDescribeResponseTaskIds))
    standby_tasks: list[StreamsGroupDescribeResponseTaskIds] = field(Array(StreamsGroupDescribeResponseTaskIds))
    warmup_tasks: list[StreamsGroupDescribeResponseTaskIds] = field(Array(StreamsGroupDescribeResponseTaskIds))


@nested
class StreamsGroupDescribeResponseMember(Message):
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    instance_id: str | None = field(String, nullable="0+", default=None)
    rack_id: str | None = field(String, nullable="0+", default=None)
    client_id: str = field(String)
    client_host: str = field(String)
    topology_epoch: int = field(Int32)
    process_id: str = field(String)
    user_endpoint: StreamsGroupDescribeResponseEndpoint | None = field(
        StreamsGroupDescribeResponseEndpoint, nullable="0+", default=None
    )
    client_tags: list[StreamsGroupDescribeResponseKeyValue] = field(Array(StreamsGroupDescribeResponseKeyValue))
    task_offsets: list[StreamsGroupDescribeResponseTaskOffset] = field(Array(StreamsGroupDescribeResponseTaskOffset))
    task_end_offsets: list[StreamsGroupDescribeResponseTaskOffset] = field(
        Array(StreamsGroupDescribeResponseTaskOffset)
    )
    assignment: StreamsGroupDescribeResponseAssignment = field(StreamsGroupDescribeResponseAssignment)
    target_assignment: StreamsGroupDescribeResponseAssignment = field(StreamsGroupDescribeResponseAssignment)
    is_classic: bool = field(Bool)


@nested
class TopologyDescriptionNode(Message):
    name: str = field(String)
    node_type: int = field(Int8)
    source_topics: list[str] = field(Array(String))
    sink_topic: str | None = field(String, nullable="0+", default=None)
    stores: list[str] = field(Array(String))
    successors: list[str] = field(Array(String))


@nested
class TopologyDescriptionSubtopology(Message):
    subtopology_id: str = field(String)
    nodes: list[TopologyDescriptionNode] = field(Array(TopologyDescriptionNode))


@nested
class TopologyDescriptionGlobalStore(Message):
    source: TopologyDescriptionNode = field(TopologyDescriptionNode)
    processor: TopologyDescriptionNode = field(TopologyDescriptionNode)


@nested
class TopologyDescription(Message):
    subtopologies: list[TopologyDescriptionSubtopology] = field(Array(TopologyDescriptionSubtopology))
    global_stores: list[TopologyDescriptionGlobalStore] = field(Array(TopologyDescriptionGlobalStore))


@nested
class StreamsGroupDescribeResponseDescribedGroup(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    group_epoch: int = field(Int32)
    assignment_epoch: int = field(Int32)
    topology: StreamsGroupDescribeResponseTopology | None = field(
        StreamsGroupDescribeResponseTopology, nullable="0+", default=None
    )
    members: list[StreamsGroupDescribeResponseMember] = field(Array(StreamsGroupDescribeResponseMember))
    authorized_operations: int = field(Int32, default=-2147483648)
    topology_description: TopologyDescription | None = field(TopologyDescription, "1+", nullable="1+", default=None)
    topology_description_status: int = field(Int8, "1+")
    assignor_name: str | None = field(String, "1+", nullable="1+", default=None)


@message(api_key=89, versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse(Message):
    """State, topology, epochs and members of each group."""

    throttle_time_ms: int = field(Int32)
    groups: list[StreamsGroupDescribeResponseDescribedGroup] = field(Array(StreamsGroupDescribeResponseDescribedGroup))


@message(api_key=93, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    """The processing nodes of an application, for a plugin of the broker to keep (KIP-1331)."""

    group_id: str = field(String)
    member_id: str = field(String)
    topology_epoch: int = field(Int32)
    topology_description: TopologyDescription = field(TopologyDescription)


@message(api_key=93, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    """Whether the description was kept."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    if isinstance(request, StreamsGroupHeartbeatRequest):
        return StreamsGroupHeartbeatResponse(error_code=code, error_message=message)
    if isinstance(request, StreamsGroupTopologyDescriptionUpdateRequest):
        return StreamsGroupTopologyDescriptionUpdateResponse(error_code=code, error_message=message)
    assert isinstance(request, StreamsGroupDescribeRequest)
    groups = [
        StreamsGroupDescribeResponseDescribedGroup(group_id=group_id, error_code=code, error_message=message)
        for group_id in request.group_ids
    ]
    return StreamsGroupDescribeResponse(groups=groups)
