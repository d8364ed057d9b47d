"""StreamsGroupHeartbeat, StreamsGroupDescribe and the description of topologies: the streams protocol of KIP-1071.

StreamsGroupHeartbeat  A member joins with its topology, sends what changed and confirms what it gave back. v1: the
                       acceptable lag as 64 bits; whether a description is wanted (KIP-1331).
StreamsGroupDescribe   Epochs, topology, members, their current and target assignments. v1: the description of the
                       topology (KIP-1331), and the name of the assignor (KIP-1357).
StreamsGroupTopologyDescriptionUpdate  The processing nodes of an application (KIP-1331): refused, as without a plugin.

Behaviour: by a heartbeat a member joins (epoch 0), keeps its session, leaves (-1), leaves for a while (-2, static
           members), or asks the whole application to shut down. The broker creates internal topics. The steps are in
           groups/streams/heartbeat.py.
Differs:   a streams heartbeat that is refused because its instance id is another member's takes nothing from that one.
           In Kafka 4.4.0 the owner, or who takes over from it, may lose its tasks for a while.
Absent:    in streams groups, as in Kafka 4.4: regular expressions for sources and topology updates are refused, and no
           warm-up tasks are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from broker.base.context import Context
from broker.cluster.acls import CLUSTER, CLUSTER_NAME, CREATE, TOPIC
from broker.cluster.topic_names import INTERNAL_TOPICS, name_fault
from broker.coordinator.groups.common.member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from broker.coordinator.groups.common.outcome import Outcome
from broker.coordinator.groups.streams.describe import described_group
from broker.coordinator.groups.streams.group import StreamsGroup
from broker.coordinator.groups.streams.heartbeat import heartbeat
from broker.coordinator.groups.streams.leave import leave
from broker.coordinator.groups.streams.records import topology_value
from broker.coordinator.groups.streams.sender import not_a_streams_group
from broker.coordinator.groups.streams.topology import MISSING_INTERNAL_TOPICS, NAMES_SHOWN, InternalTopic
from broker.handlers.admin_view import describe_each
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group import (
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseDescribedGroup,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.turn.decision import Writes
    from protocol.declare import Message
    from protocol.messages.streams_group import (
        StreamsGroupDescribeRequest,
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatRequestTopology,
        StreamsGroupHeartbeatResponse,
    )

STREAMS: Final = "streams"


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def groups(self) -> GroupShards: ...


def streams_group_heartbeat(broker: View, ctx: Context, request: StreamsGroupHeartbeatRequest) -> Decision:
    """Serve one heartbeat of one member.

    Shape:   records of what changed: member, topology, group epoch, target and current assignment; none for most.
             Missing internal topics are created in one batch of the cluster's metadata.
    Errors:  UNSUPPORTED_VERSION (streams groups are switched off), INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY,
             GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID,
             UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, COORDINATOR_NOT_AVAILABLE. Problems with the topics are
             no error, but a status.
    Source:  KIP-1071; KafkaApis.handleStreamsGroupHeartbeat.
    """
    _check_enabled(broker)
    _check(request)
    shard = broker.groups.require(request.group_id, ctx)
    out = Outcome(ctx, broker.config)
    if request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
        return _decided(shard, out, leave(shard.machine, request, out))
    topology = None if request.topology is None else topology_value(request.topology)
    response, missing = heartbeat(shard.machine, ctx, request, topology, out)
    decision = _decided(shard, out, response)
    if missing:
        decision.writes = _make_topics(broker, ctx, missing, response)
    return decision


def _decided(shard: Shard, out: Outcome, response: StreamsGroupHeartbeatResponse) -> Decision:
    decision = out.result()
    decision.shard, decision.reply = shard, response
    return decision


def _check_enabled(broker: View) -> None:
    level = broker.metadata.feature_levels.get("streams.version", 1)  # 1 unless another level is recorded
    if level < 1 or STREAMS not in broker.config.group_coordinator_rebalance_protocols:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "streams groups are switched off")


# -- checks of a heartbeat that need no group --------------------------------------------------------------------------


def _check(request: StreamsGroupHeartbeatRequest) -> None:
    """Errors: INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY."""
    if request.topology is not None:
        _check_topic_names(request.topology)
    _check_supported(request)
    _check_text(request.member_id, "MemberId")
    _check_text(request.group_id, "GroupId")
    _check_text(request.instance_id, "InstanceId")
    _check_text(request.rack_id, "RackId")
    lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    epoch = request.member_epoch
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if any(tasks is None or tasks for tasks in lists):
            raise _invalid("ActiveTasks, StandbyTasks and WarmupTasks must be empty when (re-)joining.")
        if request.topology is None:
            raise _invalid("Topology must be non-null when (re-)joining.")
        _check_changelogs(request.topology)
    elif epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVING_EPOCH:
        raise _invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    if any(tasks is not None for tasks in lists) and any(tasks is None for tasks in lists):
        raise _invalid("If one of the task lists is non-null, all must be.")
    if epoch != JOINING_EPOCH and request.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def _check_topic_names(topology: StreamsGroupHeartbeatRequestTopology) -> None:
    names = dict.fromkeys(
        name
        for s in topology.subtopologies
        for name in (
            *s.source_topics,
            *s.repartition_sink_topics,
            *(t.name for t in s.repartition_source_topics),
            *(t.name for t in s.state_changelog_topics),
        )
    )
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        raise _bad_topology(f"Topics of the broker's own cannot be in a topology: {','.join(prohibited)}.")
    illegal = [name for name in names if name_fault(name)]
    if illegal:
        raise _bad_topology(f"These are no valid topic names: {','.join(illegal)}.")


def _check_supported(request: StreamsGroupHeartbeatRequest) -> None:
    if request.topology is not None and any(s.source_topic_regex for s in request.topology.subtopologies):
        raise _invalid("Regular expressions for source topics are not supported yet.")


def _check_changelogs(topology: StreamsGroupHeartbeatRequestTopology) -> None:
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise _bad_topology(f"The partitions of changelog topic {topic.name} are not for the client to decide.")


def _check_text(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


def _bad_topology(why: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, why)


# -- internal topics -----------------------------------------------------------------------------------------------


def _make_topics(
    broker: View, ctx: Context, missing: Sequence[InternalTopic], response: StreamsGroupHeartbeatResponse
) -> Writes:
    """The records that create the internal topics; the status says which ones cannot be created, and why.

    Who may not create all of them creates none, as in Kafka.
    """
    access = ctx.access
    if access is not None and not access.may(CREATE, CLUSTER, CLUSTER_NAME, log=False):
        names = [topic.name for topic in missing]
        allowed = access.allowed(CREATE, TOPIC, names)
        if denied := [name for name in names if name not in allowed]:
            _explain(response, f"Unauthorized to CREATE on topics {', '.join(denied)}")
            return ()
    # 9 ms: only a new topology with internal topics needs them
    from broker.handlers.topics import create_topics
    from protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

    wanted = [
        CreatableTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
        )
        for topic in missing
    ]
    try:
        made = create_topics(broker, ctx, CreateTopicsRequest(topics=wanted))
    except KafkaError as error:
        _tell_failures([error.message or error.code.name], response)
        return ()
    _tell_failures([f"{t.name} ({t.error_message})" for t in made.reply.topics if t.error_code], response)
    return made.writes


def _tell_failures(failures: Sequence[str], response: StreamsGroupHeartbeatResponse) -> None:
    if failures:
        more = len(failures) - NAMES_SHOWN
        listed = ", ".join(failures[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
        _explain(response, f"they could not be created: {listed}")


def _explain(response: StreamsGroupHeartbeatResponse, why: str) -> None:
    """Add to the status of missing internal topics why they are not made."""
    for status in response.status or ():
        if status.status_code == MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {why}."


# -- describing ----------------------------------------------------------------------------------------------------


def streams_group_describe(broker: View, ctx: Context, request: StreamsGroupDescribeRequest) -> Decision:
    """Describe streams groups: epochs, topology and members.

    Errors:  UNSUPPORTED_VERSION; per group: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND (also for groups of other types),
             NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
    """
    _check_enabled(broker)
    asked = request.include_topology_description
    groups = describe_each(
        request,
        lambda group_id: described_group(
            _find(broker, ctx, group_id), _assignor_name(broker, group_id), with_description=asked
        ),
        StreamsGroupDescribeResponseDescribedGroup,
    )
    return Decision(StreamsGroupDescribeResponse(groups=groups))


def _assignor_name(broker: View, group_id: str) -> str:
    return broker.metadata.group_configs.get(group_id, {}).get(
        "streams.assignor.name", broker.config.group_streams_assignors[0]
    )


def streams_group_topology_description_update(broker: View, ctx: Context, request: Message) -> Decision:
    """Refuse the description of a topology: there is no plugin to keep it, and no member is asked for it.

    Errors:  UNSUPPORTED_VERSION, before ids and groups are looked at.
    """
    _check_enabled(broker)
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION, "The broker has no streams group topology description plugin configured."
    )


def _find(broker: View, ctx: Context, group_id: str) -> StreamsGroup:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    machine = broker.groups.require(group_id, ctx).machine
    group = machine.groups.get(group_id)
    if not isinstance(group, StreamsGroup):
        raise not_a_streams_group(group_id, group if group is not None else (machine.has_group(group_id) or None))
    return group
