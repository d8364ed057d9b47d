"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments.

ElectLeaders                 v1: kind of election (KIP-460).
AlterPartitionReassignments  KIP-455. v1: the replication factor may be held (KIP-860).
ListPartitionReassignments   KIP-455. The list is always empty.

Behaviour: the preferred leader is the first replica. Every leader is alive, so unclean elections have nothing to do.
Differs:   replication factors are accepted and shown; nothing is replicated. All nodes are one process with one log for
           each partition, acks=all means that log, and a reassignment is complete when it is answered.
Source:    Kafka's ReplicationControlManager and PartitionChangeBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from broker.cluster.metadata import ClusterMetadata, Topic, TopicPartition
from broker.cluster.metadata_plans import elect_leader, move_partition
from broker.coordinator.result import Context, Result
from broker.handlers.admin_view import after_metadata, refuse
from broker.handlers.topics import check_assignment
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.reassign import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionResult,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)

PREFERRED, UNCLEAN = 0, 1

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...


def elect_leaders(broker: View, ctx: Context, request: ElectLeadersRequest) -> Result:
    """Elect the preferred leaders. Without named partitions, only those that needed it are answered.

    Errors a partition:  UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED.
    """
    metadata = broker.metadata
    kind = request.election_type if ctx.api_version >= 1 else PREFERRED
    if kind not in (PREFERRED, UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
    asked: Iterable[tuple[str, Iterable[int]]]
    if request.topic_partitions is None:
        asked = [(topic.name, range(len(topic.partitions))) for topic in metadata.topics.values()]
    else:
        asked = [(each.topic, each.partitions) for each in request.topic_partitions]
    records: dict[tuple[str, int], list[bytes]] = {}
    results = []
    for name, indexes in asked:
        told = ReplicaElectionResult(topic=name)
        results.append(told)
        for index in indexes:
            result = PartitionResult(partition_id=index, error_message=None)
            try:
                topic, partition = _find(metadata, name, index, f"No such topic as {name:.249}", "No such partition as")
                if kind == UNCLEAN or partition.leader == partition.replicas[0]:
                    raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
                records[name, index] = elect_leader(topic, partition, partition.replicas[0])
            except KafkaError as error:
                refuse(result, error)
            if request.topic_partitions is not None or result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                told.partition_result.append(result)
    return after_metadata(broker, ElectLeadersResponse(replica_election_results=results), _all(records))


def alter_partition_reassignments(broker: View, ctx: Context, request: AlterPartitionReassignmentsRequest) -> Result:
    """Move partitions to other nodes. Of a partition named twice the last entry counts.

    Errors a partition:  UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
                         NO_REASSIGNMENT_IN_PROGRESS: nothing to cancel.
    """
    metadata = broker.metadata
    records: dict[tuple[str, int], list[bytes]] = {}
    responses = []
    for asked in request.topics:
        told = ReassignableTopicResponse(name=asked.name)
        responses.append(told)
        for wanted in asked.partitions:
            index = wanted.partition_index
            result = ReassignablePartitionResponse(partition_index=index, error_message=None)
            told.partitions.append(result)
            try:
                unknown = f"Unable to find a topic named {asked.name:.249}."
                topic, partition = _find(metadata, asked.name, index, unknown, "Unable to find partition")
                replicas = _target(metadata, partition, wanted, request.allow_replication_factor_change)
                records[asked.name, index] = move_partition(topic, partition, replicas)
            except KafkaError as error:
                refuse(result, error)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )
    return after_metadata(broker, response, _all(records))


def _find(
    metadata: ClusterMetadata, name: str, index: int, no_topic: str, no_partition: str
) -> tuple[Topic, TopicPartition]:
    topic = metadata.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, no_topic)
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{no_partition} {name}-{index}")
    return topic, topic.partitions[index]


def _target(
    metadata: ClusterMetadata, partition: TopicPartition, wanted: ReassignablePartition, may_change_factor: bool
) -> list[int]:
    """The nodes that a partition moves to."""
    if wanted.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    check_assignment(metadata, wanted.replicas, None)
    present, target = len(partition.replicas), len(wanted.replicas)
    if present != target and not may_change_factor:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"The replication factor is changed from {present} to {target}"
        )
    return wanted.replicas


def _all(records: dict[tuple[str, int], list[bytes]]) -> list[bytes]:
    return [record for made in records.values() for record in made]


def list_partition_reassignments(
    broker: View, ctx: Context, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Answer none: reassignments are done at once."""
    return ListPartitionReassignmentsResponse(error_message=None)
