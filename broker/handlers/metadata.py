"""Metadata, DescribeCluster, DescribeTopicPartitions and FindCoordinator: nodes, topics and coordinators.

Metadata                 v0: no topics means all. v1: null means all. v4: AllowAutoTopicCreation. v7: leader epochs.
                         v8-10: authorized operations. v10: topic ids in responses. v12: topic ids in requests.
DescribeCluster          v1: endpoint types (KIP-919); there are only brokers.
DescribeTopicPartitions  Pages by a cursor (KIP-966).
FindCoordinator          v1: key type. v4: several keys, each with its own error. v6: share groups.

Differs: a topic that Metadata or FindCoordinator creates is in the same response, once it is durable; Kafka answers an
         error first, and the client asks again. A restart leaves leader epochs as they are. Kafka's partitions have no
         leader while their only broker is down, and each start of it raises their epochs by two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker.base.context import Context
from broker.cluster.acls import DESCRIBE, TOPIC
from broker.cluster.metadata_plans import create_default_topic, ensure_internal_topic
from broker.cluster.topic_names import (
    INTERNAL_TOPICS,
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    collision_key,
    name_fault,
)
from broker.cluster.topics import Topic
from broker.handlers.admin_view import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
    after_metadata,
)
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.cluster import (
    Coordinator,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.coordinator.runtime import Shard

NO_ID = bytes(16)
_SHARE = 2
_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)  # by key type of FindCoordinator


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def cluster_id(self) -> str: ...


def metadata(broker: View, ctx: Context, request: MetadataRequest) -> Decision:
    """Answer the nodes and the named topics; create missing topics where that is allowed."""
    known, up = broker.metadata, broker.metadata.node_ids
    asked = request.topics
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    replies: list[MetadataResponseTopic] = []
    records: list[bytes] = []
    if asked is None or (ctx.api_version == 0 and not asked):
        replies = [_topic_reply(topic, operations, up) for topic in known.topics.values()]
    else:
        _check_names(ctx, request)
        ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != NO_ID)
        for topic_id in ids:
            topic = known.topics_by_id.get(topic_id)
            replies.append(
                _topic_reply(topic, operations, up)
                if topic
                else MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            )
        create = request.allow_auto_topic_creation and broker.config.auto_create_topics_enable
        planned = 0
        # As in Kafka, names are ignored when there are ids.
        for name in {} if ids else dict.fromkeys(topic.name for topic in asked):
            assert name is not None  # _check_names
            found = known.topics.get(name)
            error = ErrorCode.NONE if found else _why_not_there(broker, name, create)
            if error is ErrorCode.NONE and found is None:
                found, made = create_default_topic(known, ctx.rng, name, planned)
                planned += 1
                records += made
            if found:
                replies.append(_topic_reply(found, operations, up))
            else:
                replies.append(
                    MetadataResponseTopic(
                        error_code=error,
                        name=name,
                        is_internal=name in INTERNAL_TOPICS,
                        topic_authorized_operations=operations,
                    )
                )
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=broker.config.broker_rack)
            for node_id, host, port in _endpoints(broker, ctx)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.nodes.controller_id,
        topics=replies,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
    return after_metadata(broker, response, records)


def _check_names(ctx: Context, request: MetadataRequest) -> None:
    topics = request.topics or ()
    by_id = any(topic.topic_id != NO_ID for topic in topics)
    for topic in topics:
        if ctx.api_version < 12 and topic.topic_id != NO_ID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic ids cannot be asked for in version {ctx.api_version}")
        if topic.name is None and topic.topic_id == NO_ID and not by_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic has neither name nor id")


def _why_not_there(broker: View, name: str, create: bool) -> ErrorCode:
    """The error for a missing topic. NONE: it can be created."""
    if name_fault(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not create or name == METADATA_TOPIC:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    key = collision_key(name)
    if key is not None and key in broker.metadata.colliding:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.NONE


def _topic_reply(topic: Topic, operations: int, up: list[int]) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        topic_authorized_operations=operations,
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=partition.index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                offline_replicas=[node for node in partition.replicas if node not in up],
            )
            for partition in topic.partitions
        ],
    )


def _endpoints(broker: View, ctx: Context) -> list[tuple[int, str, int]]:
    return [(node.node_id, *broker.nodes.endpoint(node.node_id, ctx)) for node in broker.nodes.up]


def describe_cluster(broker: View, ctx: Context, request: DescribeClusterRequest) -> Decision:
    """Answer the nodes and the controller."""
    if request.endpoint_type == 2:
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "This is an endpoint of brokers")
    if request.endpoint_type != 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.nodes.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=host, port=port, rack=broker.config.broker_rack)
            for node_id, host, port in _endpoints(broker, ctx)
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
    return Decision(response)


def describe_topic_partitions(broker: View, ctx: Context, request: DescribeTopicPartitionsRequest) -> Decision:
    """Answer topics in the order of their names, from the cursor on, up to the limit of partitions.

    Topics that the client may not describe are taken out before they are paged: the limit counts only partitions that
    are shown, and the next cursor names only topics that the client may see or has named itself.
    """
    metadata, cursor, access = broker.metadata, request.cursor, ctx.access
    names, hidden = _topics_of_page(metadata, ctx, request)
    left = max(min(broker.config.max_request_partition_size_limit, request.response_partition_limit), 1)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        topic = metadata.topics.get(name)
        if left == 0:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=0)
            break
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        if topic is None:
            response.topics.append(_unknown_topic(name, access))
            continue
        page = topic.partitions[first : first + left]
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=topic.internal,
                topic_authorized_operations=_operations(access, name),
                partitions=[
                    DescribeTopicPartitionsResponsePartition(
                        partition_index=partition.index,
                        leader_id=partition.leader,
                        leader_epoch=partition.leader_epoch,
                        replica_nodes=partition.replicas,
                        isr_nodes=partition.isr,
                        eligible_leader_replicas=partition.elr,
                        last_known_elr=partition.last_known_elr,
                        offline_replicas=[node for node in partition.replicas if node not in metadata.node_ids],
                    )
                    for partition in page
                ],
            )
        )
        left -= len(page)
        if first + len(page) < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=first + len(page)
            )
            break
    response.topics += [
        DescribeTopicPartitionsResponseTopic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            name=name,
            topic_id=NO_ID,
            topic_authorized_operations=NOT_ASKED,
        )
        for name in hidden
    ]
    return after_metadata(broker, response)


def _topics_of_page(
    metadata: ClusterMetadata, ctx: Context, request: DescribeTopicPartitionsRequest
) -> tuple[list[str], list[str]]:
    """The names to page through, and those that were asked for and are refused. Both begin at the cursor."""
    cursor, asked = request.cursor, {topic.name for topic in request.topics}
    names = sorted(asked or metadata.topics)
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
        if asked and cursor.topic_name not in asked:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"The topics asked for must contain the cursor's: {cursor.topic_name:.249}"
            )
        if cursor.partition_index < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The cursor's partition must not be negative")
    if ctx.access is None:
        return names, []
    allowed = ctx.access.allowed(DESCRIBE, TOPIC, names, log=bool(asked))
    return [name for name in names if name in allowed], [name for name in names if asked and name not in allowed]


def _operations(access: Any, name: str) -> int:
    return TOPIC_OPERATIONS if access is None else int(access.operations(TOPIC, name))


def _unknown_topic(name: str, access: Any) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if name_fault(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=_operations(access, name),
    )


def find_coordinator(broker: View, ctx: Context, request: FindCoordinatorRequest) -> Decision:
    """Answer the node of each key's shard. The first call makes the internal topic."""
    response = FindCoordinatorResponse()
    records: list[bytes] = []
    keys = request.coordinator_keys if ctx.api_version >= 4 else [request.key]
    found = []
    for key in keys:
        error = _coordinator_error(ctx, request.key_type, key)
        coordinator = Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error)
        if error is ErrorCode.NONE:
            name = _TOPICS[request.key_type]
            records = records or ensure_internal_topic(broker.metadata, ctx.rng, name)
            coordinator.node_id = broker.metadata.coordinator_node(key, name)
            coordinator.host, coordinator.port = broker.nodes.endpoint(coordinator.node_id, ctx)
            if coordinator.node_id < 0:  # all brokers that hold its log are stopped
                coordinator.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        found.append(coordinator)
    if ctx.api_version >= 4:
        response.coordinators = found
    else:
        only = found[0]
        response.error_code, response.node_id = only.error_code, only.node_id
        response.host, response.port = only.host, only.port
        response.error_message = ErrorCode(only.error_code).name
    return after_metadata(broker, response, records)


def _coordinator_error(ctx: Context, key_type: int, key: str) -> ErrorCode:
    if 0 <= key_type < _SHARE:
        return ErrorCode.NONE
    if key_type == _SHARE and ctx.api_version >= 6 and len(key.split(":")) == 3:
        return ErrorCode.NONE
    return ErrorCode.INVALID_REQUEST
