"""The records of streams groups: values to Kafka's schemas and back.

Only active tasks have assignment epochs; for standby and warm-up tasks the field is null, as Kafka writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.coordinator.groups.common.records import epochs_of, put_revocation_epoch, revocation_epoch_of
from broker.coordinator.groups.streams.member import (
    STABLE,
    UNKNOWN,
    UNRELEASED_TASKS,
    UNREVOKED_TASKS,
    CurrentAssignment,
    Endpoint,
    EpochsBySubtopology,
    MemberMetadata,
    TasksBySubtopology,
    TasksTuple,
    TasksTupleWithEpochs,
)
from broker.turn.decision import Record
from protocol.declare import Message
from protocol.messages.coordinator_records import encode_key, encode_record
from protocol.messages.streams_group_records import (
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupCurrentMemberAssignmentValueTaskIds,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMemberMetadataValueEndpoint,
    StreamsGroupMemberMetadataValueKeyValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMemberValueTaskIds,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    StreamsGroupTopologyValueCopartitionGroup,
    StreamsGroupTopologyValueSubtopology,
    StreamsGroupTopologyValueTopicInfo,
    TopicConfig,
)

if TYPE_CHECKING:
    from protocol.messages.streams_group import (
        StreamsGroupHeartbeatRequestTopicInfo,
        StreamsGroupHeartbeatRequestTopology,
    )

T = TypeVar("T", bound=Message)

_STATES: Final = frozenset((STABLE, UNREVOKED_TASKS, UNRELEASED_TASKS))

# -- writing -------------------------------------------------------------------------------------------------------


def group_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> Record:
    """The group epoch, the hash of the topics, and the settings of the assignor."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[LastAssignmentConfig(key=k, value=v) for k, v in sorted(configs.items())],
    )
    return encode_key(StreamsGroupMetadataKey(group_id=group_id)), encode_record(value, 0)


def topology_record(group_id: str, topology: StreamsGroupTopologyValue) -> Record:
    """The group's topology, as its first member sent it."""
    return encode_key(StreamsGroupTopologyKey(group_id=group_id)), encode_record(topology, 0)


def member_record(group_id: str, member_id: str, member_metadata: MemberMetadata) -> Record:
    """A member's metadata."""
    endpoint = member_metadata.user_endpoint
    value = StreamsGroupMemberMetadataValue(
        instance_id=member_metadata.instance_id,
        rack_id=member_metadata.rack_id,
        client_id=member_metadata.client_id,
        client_host=member_metadata.client_host,
        rebalance_timeout_ms=member_metadata.rebalance_timeout_ms,
        topology_epoch=member_metadata.topology_epoch,
        process_id=member_metadata.process_id,
        user_endpoint=None
        if endpoint is None
        else StreamsGroupMemberMetadataValueEndpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[StreamsGroupMemberMetadataValueKeyValue(key=k, value=v) for k, v in member_metadata.client_tags],
    )
    return encode_key(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)), encode_record(value, 0)


def target_epoch_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> Record:
    """The epoch of a target assignment; written after the members' targets."""
    value = StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    return encode_key(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)), encode_record(value, 0)


def target_record(group_id: str, member_id: str, tasks: TasksTuple) -> Record:
    """A member's target assignment."""
    kind = StreamsGroupTargetAssignmentMemberValueTaskIds
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=task_ids(kind, tasks.active),
        standby_tasks=task_ids(kind, tasks.standby),
        warmup_tasks=task_ids(kind, tasks.warmup),
    )
    return _target_key(group_id, member_id), encode_record(value, 0)


def current_record(group_id: str, member_id: str, current: CurrentAssignment) -> Record:
    """A member's current assignment, with the assignment epoch of each active task."""
    kind = StreamsGroupCurrentMemberAssignmentValueTaskIds
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=current.member_epoch,
        previous_member_epoch=current.previous_member_epoch,
        state=current.state,
        active_tasks=_with_epochs(current.assigned.active),
        standby_tasks=task_ids(kind, current.assigned.standby),
        warmup_tasks=task_ids(kind, current.assigned.warmup),
        active_tasks_pending_revocation=_with_epochs(current.pending.active),
        standby_tasks_pending_revocation=task_ids(kind, current.pending.standby),
        warmup_tasks_pending_revocation=task_ids(kind, current.pending.warmup),
    )
    put_revocation_epoch(value, current.revocation_epoch)
    return _current_key(group_id, member_id), encode_record(value, 0)


def task_ids(kind: type[T], tasks: Mapping[str, Iterable[int]]) -> list[T]:
    """TasksTuple in any of the messages' shapes, in order."""
    return [kind(subtopology_id=s, partitions=sorted(tasks[s])) for s in sorted(tasks)]


def _with_epochs(tasks: EpochsBySubtopology) -> list[StreamsGroupCurrentMemberAssignmentValueTaskIds]:
    return [
        StreamsGroupCurrentMemberAssignmentValueTaskIds(
            subtopology_id=subtopology_id,
            partitions=(partitions := sorted(tasks[subtopology_id])),
            assignment_epochs=[tasks[subtopology_id][p] for p in partitions],
        )
        for subtopology_id in sorted(tasks)
    ]


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Deletes a member: current assignment, target, and metadata, in this order."""
    return [
        (_current_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (encode_key(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[Record]:
    """Deletes a group with its members and topology."""
    members = list(member_ids)
    return [
        *((_current_key(group_id, m), None) for m in members),
        *((_target_key(group_id, m), None) for m in members),
        (encode_key(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)), None),
        *((encode_key(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=m)), None) for m in members),
        (encode_key(StreamsGroupMetadataKey(group_id=group_id)), None),
        (encode_key(StreamsGroupTopologyKey(group_id=group_id)), None),
    ]


def _target_key(group_id: str, member_id: str) -> bytes:
    return encode_key(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def _current_key(group_id: str, member_id: str) -> bytes:
    return encode_key(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def topology_value(topology: StreamsGroupHeartbeatRequestTopology) -> StreamsGroupTopologyValue:
    """The topology of a request as it is stored."""
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            StreamsGroupTopologyValueSubtopology(
                subtopology_id=s.subtopology_id,
                source_topics=list(s.source_topics),
                source_topic_regex=list(s.source_topic_regex),
                state_changelog_topics=_topic_infos(s.state_changelog_topics),
                repartition_sink_topics=list(s.repartition_sink_topics),
                repartition_source_topics=_topic_infos(s.repartition_source_topics),
                copartition_groups=[
                    StreamsGroupTopologyValueCopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_topic_regex),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in s.copartition_groups
                ],
            )
            for s in topology.subtopologies
        ],
    )


def _topic_infos(topics: Iterable[StreamsGroupHeartbeatRequestTopicInfo]) -> list[StreamsGroupTopologyValueTopicInfo]:
    return [
        StreamsGroupTopologyValueTopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[TopicConfig(key=config.key, value=config.value) for config in topic.topic_configs],
        )
        for topic in topics
    ]


# -- reading -------------------------------------------------------------------------------------------------------


def member_metadata_of(value: StreamsGroupMemberMetadataValue) -> MemberMetadata:
    """A member's metadata as a value."""
    endpoint = value.user_endpoint
    return MemberMetadata(
        value.instance_id,
        value.rack_id,
        value.client_id,
        value.client_host,
        value.rebalance_timeout_ms,
        value.topology_epoch,
        value.process_id,
        None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
    )


def tasks_of(value: StreamsGroupTargetAssignmentMemberValue) -> TasksTuple:
    """A target assignment as a value."""
    return TasksTuple(*map(partitions_of, (value.active_tasks, value.standby_tasks, value.warmup_tasks)))


def partitions_of(entries: Iterable[Any]) -> TasksBySubtopology:
    """TasksTuple of any of the messages' shapes, records and requests."""
    tasks: dict[str, frozenset[int]] = {}
    for entry in entries:
        if entry.partitions:
            tasks[entry.subtopology_id] = tasks.get(entry.subtopology_id, frozenset()) | frozenset(entry.partitions)
    return tasks


def current_assignment_of(value: StreamsGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    """A current assignment as a value; a state of a newer broker as UNKNOWN."""
    epoch = value.member_epoch
    return CurrentAssignment(
        epoch,
        value.previous_member_epoch,
        value.state if value.state in _STATES else UNKNOWN,
        TasksTupleWithEpochs(
            epochs_of(value.active_tasks, "subtopology_id", epoch),
            partitions_of(value.standby_tasks),
            partitions_of(value.warmup_tasks),
        ),
        TasksTupleWithEpochs(
            epochs_of(value.active_tasks_pending_revocation, "subtopology_id", epoch),
            partitions_of(value.standby_tasks_pending_revocation),
            partitions_of(value.warmup_tasks_pending_revocation),
        ),
        revocation_epoch_of(value),
    )
