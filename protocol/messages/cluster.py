"""Messages about the cluster itself: versions, metadata, coordinators, log directories, features."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, String, Uuid


@message(api_key=18, versions="0-5", flexible="3+")
class ApiVersionsRequest(Message):
    """Ask which APIs and versions the broker speaks.

    3 software name and version; 4 a supported feature may start at 0 (KAFKA-17011); 5 the cluster and the node that the
    client means (KIP-1242).
    """

    client_software_name: str = field(String, "3+")
    client_software_version: str = field(String, "3+")
    cluster_id: str | None = field(String, "5+", nullable="5+", default=None)
    node_id: int = field(Int32, "5+", default=-1)


@nested
class ApiVersion(Message):
    api_key: int = field(Int16)
    min_version: int = field(Int16)
    max_version: int = field(Int16)


@nested
class SupportedFeatureKey(Message):
    name: str = field(String, "3+")
    min_version: int = field(Int16, "3+")
    max_version: int = field(Int16, "3+")


@nested
class FinalizedFeatureKey(Message):
    name: str = field(String, "3+")
    max_version_level: int = field(Int16, "3+")
    min_version_level: int = field(Int16, "3+")


@message(api_key=18, versions="0-5", flexible="3+")
class ApiVersionsResponse(Message):
    """Version ranges and features; always under response header v0.

    1 throttle time; 3 features as tagged fields.
    """

    error_code: int = field(Int16)
    api_keys: list[ApiVersion] = field(Array(ApiVersion))
    throttle_time_ms: int = field(Int32, "1+")
    supported_features: list[SupportedFeatureKey] = field(Array(SupportedFeatureKey), "3+", tag=0, tagged="3+")
    finalized_features_epoch: int = field(Int64, "3+", tag=1, tagged="3+", default=-1)
    finalized_features: list[FinalizedFeatureKey] = field(Array(FinalizedFeatureKey), "3+", tag=2, tagged="3+")
    zk_migration_ready: bool = field(Bool, "3+", tag=3, tagged="3+")


@nested
class MetadataRequestTopic(Message):
    topic_id: bytes = field(Uuid, "10+")
    name: str | None = field(String, nullable="10+")


@message(api_key=3, versions="0-13", flexible="9+")
class MetadataRequest(Message):
    """Ask for brokers, topics and leaders.

    0 an empty list means all topics; 1 null does, empty means none; 4 auto creation; 8 authorized
    operations; 10 topic id, usable from 12; 11 drops the cluster's operations (KIP-700).
    """

    topics: list[MetadataRequestTopic] | None = field(Array(MetadataRequestTopic), nullable="1+")
    allow_auto_topic_creation: bool = field(Bool, "4+", default=True)
    include_cluster_authorized_operations: bool = field(Bool, "8-10")
    include_topic_authorized_operations: bool = field(Bool, "8+")


@nested
class MetadataResponseBroker(Message):
    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(String, "1+", nullable="1+", default=None)


@nested
class MetadataResponsePartition(Message):
    error_code: int = field(Int16)
    partition_index: int = field(Int32)
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32, "7+", default=-1)
    replica_nodes: list[int] = field(Array(Int32))
    isr_nodes: list[int] = field(Array(Int32))
    offline_replicas: list[int] = field(Array(Int32), "5+")


@nested
class MetadataResponseTopic(Message):
    error_code: int = field(Int16)
    name: str | None = field(String, nullable="12+")
    topic_id: bytes = field(Uuid, "10+")
    is_internal: bool = field(Bool, "1+")
    partitions: list[MetadataResponsePartition] = field(Array(MetadataResponsePartition))
    topic_authorized_operations: int = field(Int32, "8+", default=-2147483648)


@message(api_key=3, versions="0-13", flexible="9+")
class MetadataResponse(Message):
    """Brokers, controller, topics with their partitions.

    1 racks and controller; 2 cluster id; 5 offline replicas; 7 leader epochs; 10 topic ids; 13 top-level
    error.
    """

    throttle_time_ms: int = field(Int32, "3+")
    brokers: list[MetadataResponseBroker] = field(Array(MetadataResponseBroker))
    cluster_id: str | None = field(String, "2+", nullable="2+", default=None)
    controller_id: int = field(Int32, "1+", default=-1)
    topics: list[MetadataResponseTopic] = field(Array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(Int32, "8-10", default=-2147483648)
    error_code: int = field(Int16, "13+")


@message(api_key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest(Message):
    """Ask who is in the cluster.

    1 brokers or controllers (KIP-919); 2 fenced brokers too (KIP-1073).
    """

    include_cluster_authorized_operations: bool = field(Bool)
    endpoint_type: int = field(Int8, "1+", default=1)
    include_fenced_brokers: bool = field(Bool, "2+")


@nested
class DescribeClusterBroker(Message):
    broker_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(String, nullable="0+", default=None)
    is_fenced: bool = field(Bool, "2+")


@message(api_key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse(Message):
    """Cluster id, controller and brokers."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    endpoint_type: int = field(Int8, "1+", default=1)
    cluster_id: str = field(String)
    controller_id: int = field(Int32, default=-1)
    brokers: list[DescribeClusterBroker] = field(Array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(Int32, default=-2147483648)


@nested
class DescribeTopicPartitionsRequestTopicRequest(Message):
    name: str = field(String)


@nested
class DescribeTopicPartitionsRequestCursor(Message):
    topic_name: str = field(String)
    partition_index: int = field(Int32)


@message(api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest(Message):
    """Ask for partitions page by page (KIP-966)."""

    topics: list[DescribeTopicPartitionsRequestTopicRequest] = field(Array(DescribeTopicPartitionsRequestTopicRequest))
    response_partition_limit: int = field(Int32, default=2000)
    cursor: DescribeTopicPartitionsRequestCursor | None = field(
        DescribeTopicPartitionsRequestCursor, nullable="0+", default=None
    )


@nested
class DescribeTopicPartitionsResponsePartition(Message):
    error_code: int = field(Int16)
    partition_index: int = field(Int32)
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32, default=-1)
    replica_nodes: list[int] = field(Array(Int32))
    isr_nodes: list[int] = field(Array(Int32))
    eligible_leader_replicas: list[int] | None = field(Array(Int32), nullable="0+", default=None)
    last_known_elr: list[int] | None = field(Array(Int32), nullable="0+", default=None)
    offline_replicas: list[int] = field(Array(Int32))


@nested
class DescribeTopicPartitionsResponseTopic(Message):
    error_code: int = field(Int16)
    name: str | None = field(String, nullable="0+")
    topic_id: bytes = field(Uuid)
    is_internal: bool = field(Bool)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(Array(DescribeTopicPartitionsResponsePartition))
    topic_authorized_operations: int = field(Int32, default=-2147483648)


@nested
class DescribeTopicPartitionsResponseCursor(Message):
    topic_name: str = field(String)
    partition_index: int = field(Int32)


@message(api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(Message):
    """One page of partitions, and the cursor of the next."""

    throttle_time_ms: int = field(Int32)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(Array(DescribeTopicPartitionsResponseTopic))
    next_cursor: DescribeTopicPartitionsResponseCursor | None = field(
        DescribeTopicPartitionsResponseCursor, nullable="0+", default=None
    )


@nested
class FeatureUpdateKey(Message):
    feature: str = field(String)
    max_version_level: int = field(Int16)
    allow_downgrade: bool = field(Bool, "0")
    upgrade_type: int = field(Int8, "1+", default=1)


@message(api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Message):
    """Change finalized feature levels.

    1 upgrade types and validation only; 2 the response has no result for each feature.
    """

    timeout_ms: int = field(Int32, default=60000)
    feature_updates: list[FeatureUpdateKey] = field(Array(FeatureUpdateKey))
    validate_only: bool = field(Bool, "1+")


@nested
class UpdatableFeatureResult(Message):
    feature: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")


@message(api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Message):
    """Whether the features were changed."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    results: list[UpdatableFeatureResult] = field(Array(UpdatableFeatureResult), "0-1")


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest(Message):
    """Ask which broker coordinates a group or transactional id.

    1 key type; 4 several keys (KIP-699); 6 share groups (KIP-932).
    """

    key: str = field(String, "0-3")
    key_type: int = field(Int8, "1+")
    coordinator_keys: list[str] = field(Array(String), "4+")


@nested
class Coordinator(Message):
    key: str = field(String, "4+")
    node_id: int = field(Int32, "4+")
    host: str = field(String, "4+")
    port: int = field(Int32, "4+")
    error_code: int = field(Int16, "4+")
    error_message: str | None = field(String, "4+", nullable="4+")


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse(Message):
    """Where the coordinator is: up to 3 in the top-level fields, from 4 for each key."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16, "0-3")
    error_message: str | None = field(String, "1-3", nullable="1-3")
    node_id: int = field(Int32, "0-3")
    host: str = field(String, "0-3")
    port: int = field(Int32, "0-3")
    coordinators: list[Coordinator] = field(Array(Coordinator), "4+")


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case ApiVersionsRequest():
            # whoever asked in a version from the future learns which one to ask in (KIP-511)
            own = ApiVersion(
                api_key=ApiVersionsRequest.API_KEY,
                min_version=ApiVersionsRequest.MIN_VERSION,
                max_version=ApiVersionsRequest.MAX_VERSION,
            )
            return ApiVersionsResponse(error_code=code, api_keys=[own] if code is ErrorCode.UNSUPPORTED_VERSION else [])
        case MetadataRequest():
            refused = [
                MetadataResponseTopic(name=topic.name or "", topic_id=topic.topic_id, error_code=code)
                for topic in request.topics or ()
            ]
            return MetadataResponse(topics=refused, error_code=code)
        case DescribeClusterRequest():
            return DescribeClusterResponse(error_code=code, error_message=message)
        case DescribeTopicPartitionsRequest():
            return DescribeTopicPartitionsResponse(
                topics=[
                    DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=code) for topic in request.topics
                ]
            )
        case UpdateFeaturesRequest():
            return UpdateFeaturesResponse(error_code=code, error_message=message)
        case FindCoordinatorRequest():
            text = message or code.words
            if api_version < 4:
                return FindCoordinatorResponse(error_code=code, error_message=text, node_id=-1, port=-1)
            return FindCoordinatorResponse(
                coordinators=[
                    Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=text)
                    for key in request.coordinator_keys
                ]
            )
    raise TypeError(f"not a request of this family: {request!r}")
