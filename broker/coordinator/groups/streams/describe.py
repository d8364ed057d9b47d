"""The StreamsGroupDescribe response for one group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from broker.coordinator.groups.streams.member import NONE_REPORTED, OffsetByTask, StreamsMember, TaskOffsets, TasksTuple
from broker.coordinator.groups.streams.records import task_ids
from protocol.messages.streams_group import (
    StreamsGroupDescribeResponseAssignment,
    StreamsGroupDescribeResponseDescribedGroup,
    StreamsGroupDescribeResponseEndpoint,
    StreamsGroupDescribeResponseKeyValue,
    StreamsGroupDescribeResponseMember,
    StreamsGroupDescribeResponseSubtopology,
    StreamsGroupDescribeResponseTaskIds,
    StreamsGroupDescribeResponseTaskOffset,
    StreamsGroupDescribeResponseTopicInfo,
    StreamsGroupDescribeResponseTopology,
)

if TYPE_CHECKING:
    from broker.coordinator.groups.streams.group import StreamsGroup
    from broker.coordinator.groups.streams.member import TasksTupleWithEpochs
    from broker.coordinator.groups.streams.topology import ConfiguredSubtopology, InternalTopic
    from protocol.messages.streams_group_records import (
        StreamsGroupTopologyValueSubtopology,
        StreamsGroupTopologyValueTopicInfo,
    )


NOT_ASKED: Final = 0  # states of the topology description; 2 and 3 need a plugin
NOT_STORED: Final = 1


def described_group(
    group: StreamsGroup, assignor_name: str, *, with_description: bool
) -> StreamsGroupDescribeResponseDescribedGroup:
    """State, epochs, topology, members, the assignor of the next assignment, and that no description is stored."""
    return StreamsGroupDescribeResponseDescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        topology_description_status=NOT_STORED if with_description else NOT_ASKED,
        assignor_name=assignor_name,
        members=[
            _member(
                member,
                group.target.get(member.member_id, TasksTuple()),
                group.task_offsets.get(member.member_id, NONE_REPORTED),
            )
            for member in group.members.values()
        ],
    )


def _member(member: StreamsMember, target: TasksTuple, reported: TaskOffsets) -> StreamsGroupDescribeResponseMember:
    member_metadata, current = member.member_metadata, member.current
    endpoint = member_metadata.user_endpoint
    return StreamsGroupDescribeResponseMember(
        member_id=member.member_id,
        member_epoch=current.member_epoch,
        instance_id=member_metadata.instance_id,
        rack_id=member_metadata.rack_id,
        client_id=member_metadata.client_id,
        client_host=member_metadata.client_host,
        topology_epoch=member_metadata.topology_epoch,
        process_id=member_metadata.process_id,
        user_endpoint=None
        if endpoint is None
        else StreamsGroupDescribeResponseEndpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[StreamsGroupDescribeResponseKeyValue(key=k, value=v) for k, v in member_metadata.client_tags],
        task_offsets=_offsets(reported.offsets),
        task_end_offsets=_offsets(reported.end_offsets),
        assignment=_tasks(current.assigned),
        target_assignment=_tasks(target),
    )


def _offsets(offsets: OffsetByTask) -> list[StreamsGroupDescribeResponseTaskOffset]:
    return [
        StreamsGroupDescribeResponseTaskOffset(subtopology_id=subtopology_id, partition=partition, offset=offset)
        for (subtopology_id, partition), offset in sorted(offsets.items())
    ]


def _tasks(tasks: TasksTuple | TasksTupleWithEpochs) -> StreamsGroupDescribeResponseAssignment:
    kind = StreamsGroupDescribeResponseTaskIds
    return StreamsGroupDescribeResponseAssignment(
        active_tasks=task_ids(kind, tasks.active),
        standby_tasks=task_ids(kind, tasks.standby),
        warmup_tasks=task_ids(kind, tasks.warmup),
    )


def _topology(group: StreamsGroup) -> StreamsGroupDescribeResponseTopology | None:
    """With the partition counts once they are decided; before, as the application sent it."""
    stored, configured = group.topology, group.configured
    if stored is None:
        return None
    if configured is not None and configured.is_ready:
        subtopologies = [_decided(s) for s in (configured.subtopologies or {}).values()]
    else:
        subtopologies = [_stored(s) for s in sorted(stored.subtopologies, key=lambda s: s.subtopology_id)]
    return StreamsGroupDescribeResponseTopology(epoch=stored.epoch, subtopologies=subtopologies)


def _decided(subtopology: ConfiguredSubtopology) -> StreamsGroupDescribeResponseSubtopology:
    def info(topics: Iterable[InternalTopic]) -> list[StreamsGroupDescribeResponseTopicInfo]:
        return [
            StreamsGroupDescribeResponseTopicInfo(
                name=t.name,
                partitions=t.partitions,
                replication_factor=max(t.replication_factor, 0),
                topic_configs=[StreamsGroupDescribeResponseKeyValue(key=k, value=v) for k, v in t.configs.items()],
            )
            for t in topics
        ]

    return StreamsGroupDescribeResponseSubtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=list(subtopology.source_topics),
        repartition_sink_topics=list(subtopology.repartition_sinks),
        repartition_source_topics=info(subtopology.repartition_sources),
        state_changelog_topics=info(subtopology.changelogs),
    )


def _stored(subtopology: StreamsGroupTopologyValueSubtopology) -> StreamsGroupDescribeResponseSubtopology:
    def info(topics: Iterable[StreamsGroupTopologyValueTopicInfo]) -> list[StreamsGroupDescribeResponseTopicInfo]:
        return [
            StreamsGroupDescribeResponseTopicInfo(
                name=t.name,
                partitions=t.partitions,
                replication_factor=t.replication_factor,
                topic_configs=[StreamsGroupDescribeResponseKeyValue(key=c.key, value=c.value) for c in t.topic_configs],
            )
            for t in sorted(topics, key=lambda t: t.name)
        ]

    return StreamsGroupDescribeResponseSubtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        repartition_source_topics=info(subtopology.repartition_source_topics),
        state_changelog_topics=info(subtopology.state_changelog_topics),
    )
