"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments and AlterReplicaLogDirs.

ElectLeaders                 v1: kind of election (KIP-460).
AlterPartitionReassignments  KIP-455. v1: the replication factor may be held (KIP-860).
ListPartitionReassignments   KIP-455. The list is always empty.
AlterReplicaLogDirs          KIP-113. A broker has one log directory, so nothing is ever moved.

Behaviour: the preferred leader is the first replica. An unclean leader, where nobody leads, is an eligible one or the
           first that is up; what it has missed is lost, as is what a preferred leader has missed that lags.
Differs:   nothing is replicated. All nodes are one process with one log for
           each partition, acks=all means that log, and a reassignment is complete when it is answered.
Source:    Kafka's ReplicationControlManager, PartitionChangeBuilder and ReplicaManager.alterReplicaLogDirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from broker.base.context import Context
from broker.cluster.metadata import ClusterMetadata
from broker.cluster.metadata_plans import elect_leader, follow_nodes, move_partition, sync_of
from broker.cluster.replicas import NOBODY, follow, least_in_sync
from broker.cluster.topics import Topic, TopicPartition
from broker.config.features import level_of
from broker.handlers.admin_view import after_metadata, refuse
from broker.handlers.topics import check_assignment
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.reassign import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
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
    from broker.cluster.data.directory import DataDirectory
    from broker.coordinator.runtime import Shard


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...
    @property
    def directory(self) -> DataDirectory: ...


def elect_leaders(broker: View, ctx: Context, request: ElectLeadersRequest) -> Decision:
    """Elect preferred leaders, or any. Without named partitions, only those that needed it are answered.

    Errors a partition:  UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED.
                         PREFERRED_LEADER_NOT_AVAILABLE: it is not up, or not in sync.
                         ELIGIBLE_LEADERS_NOT_AVAILABLE: no replica is up.
    """
    metadata = broker.metadata
    kind = request.election_type if ctx.api_version >= 1 else PREFERRED
    if kind not in (PREFERRED, UNCLEAN) and request.topic_partitions != []:
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
                if partition.leader == partition.replicas[0] or (kind == UNCLEAN and partition.leader >= 0):
                    raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
                records[name, index] = _elect(metadata, topic, partition, kind)
            except KafkaError as error:
                refuse(result, error)
            if request.topic_partitions is not None or result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                told.partition_result.append(result)
    return after_metadata(broker, ElectLeadersResponse(replica_election_results=results), _all(records))


def _elect(metadata: ClusterMetadata, topic: Topic, partition: TopicPartition, kind: int) -> list[bytes]:
    """The records of one election."""
    preferred = partition.replicas[0]
    if kind == PREFERRED:
        if preferred not in metadata.node_ids or preferred not in partition.isr:
            raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader is not up and in sync.")
        return elect_leader(topic, partition, preferred)
    after = follow(
        sync_of(partition),
        partition.replicas,
        metadata.node_ids,
        least_in_sync(metadata.value(topic, "min.insync.replicas"), partition.replicas),
        keeps_eligible=level_of("eligible.leader.replicas.version", metadata.feature_levels) > 0,
        unclean=True,
    )
    if after.leader == NOBODY:
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica is up.")
    return follow_nodes(topic, partition, after)


def alter_partition_reassignments(broker: View, ctx: Context, request: AlterPartitionReassignmentsRequest) -> Decision:
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
                records[asked.name, index] = move_partition(metadata, topic, partition, replicas)
            except KafkaError as error:
                refuse(result, error)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change or not request.topics,  # as Kafka
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


def list_partition_reassignments(broker: View, ctx: Context, request: ListPartitionReassignmentsRequest) -> Decision:
    """Answer none: reassignments are done at once."""
    return Decision(ListPartitionReassignmentsResponse(error_message=None))


def alter_replica_log_dirs(broker: View, ctx: Context, request: AlterReplicaLogDirsRequest) -> Decision:
    """Answer whether each partition is in the directory that it is to move to. Nothing changes.

    Shape:   each partition once, under its topic. Of several directories for one partition the last counts.
    Errors:  a partition: LOG_DIR_NOT_FOUND (paths are compared as text, relative ones included),
             UNKNOWN_TOPIC_OR_PARTITION, REPLICA_NOT_AVAILABLE (the node that is asked has no replica).
    """
    targets: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for asked in directory.topics:
            for index in asked.partitions:
                targets.setdefault(asked.name, {})[index] = directory.path
    return Decision(
        AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(
                    topic_name=name,
                    partitions=[
                        AlterReplicaLogDirPartitionResult(
                            partition_index=index, error_code=_move_error(broker, ctx.node_id, name, index, path)
                        )
                        for index, path in paths.items()
                    ],
                )
                for name, paths in targets.items()
            ]
        )
    )


def _move_error(broker: View, node_id: int, name: str, index: int, path: str) -> ErrorCode:
    """Why a replica cannot move to a directory, in the order of Kafka's checks."""
    if path != broker.directory.path:
        return ErrorCode.LOG_DIR_NOT_FOUND
    topic = broker.metadata.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if node_id in topic.partitions[index].replicas else ErrorCode.REPLICA_NOT_AVAILABLE
