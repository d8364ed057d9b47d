"""DescribeQuorum and UnregisterController: the quorum of the cluster's metadata (KIP-595).

DescribeQuorum        v1: timestamps (KIP-836). v2: messages and nodes (KIP-853).
UnregisterController  the one controller cannot go, and there is no other.

Behaviour: the first node is leader and only voter, the others are observers; they share one log, so none is behind.
Absent:    directory ids (all zero) and controller listeners (none) of the quorum: there are no votes over the network.
Source:    Kafka's KafkaRaftClient.handleDescribeQuorumRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.base.context import Context
from broker.cluster.topic_names import METADATA_TOPIC
from broker.turn.decision import Decision
from protocol.errors import ErrorCode
from protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    ReplicaState,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)

if TYPE_CHECKING:
    from broker.cluster.nodes import Nodes
    from broker.coordinator.runtime import Shard


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata_shard(self) -> Shard: ...
    @property
    def nodes(self) -> Nodes: ...


def describe_quorum(broker: View, ctx: Context, request: DescribeQuorumRequest) -> Decision:
    """Describe partition 0 of `__cluster_metadata`. Errors, of any other partition: UNKNOWN_TOPIC_OR_PARTITION."""
    asked = [(topic.topic_name, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return Decision(DescribeQuorumResponse(error_message=None, topics=_unknown(request)))
    shard = broker.metadata_shard
    first, *others = [
        ReplicaState(
            replica_id=node.node_id,
            log_end_offset=shard.log.end_offset,
            last_fetch_timestamp=ctx.now_ms,
            last_caught_up_timestamp=ctx.now_ms,
        )
        for node in broker.nodes.up
    ]
    partition = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_message=None,
        leader_id=first.replica_id,
        leader_epoch=max(shard.log.leader_epoch, 0),
        high_watermark=shard.flush_state.durable_offset,
        current_voters=[first],
        observers=others,
    )
    return Decision(
        DescribeQuorumResponse(
            error_message=None,
            topics=[DescribeQuorumResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
            nodes=[DescribeQuorumResponseNode(node_id=first.replica_id)],
        )
    )


def unregister_controller(broker: View, ctx: Context, request: UnregisterControllerRequest) -> Decision:
    """Refuse. Errors: INVALID_REQUEST: the controller itself; CONTROLLER_ID_NOT_REGISTERED: any other.

    Source: Apache Kafka 4.4.0, one node, asked for its own and for other ids.
    """
    if request.controller_id == broker.nodes.up[0].node_id:
        code, why = ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."
    else:
        code = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        why = f"Controller ID {request.controller_id} is not currently registered."
    return Decision(UnregisterControllerResponse(error_code=code, error_message=why))


def _unknown(request: DescribeQuorumRequest) -> list[DescribeQuorumResponseTopicData]:
    return [
        DescribeQuorumResponseTopicData(
            topic_name=topic.topic_name,
            partitions=[
                DescribeQuorumResponsePartitionData(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    error_message="This server does not host this topic-partition.",
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
