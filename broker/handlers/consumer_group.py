"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: the consumer group protocol of KIP-848.

ConsumerGroupHeartbeat  v1: regular expressions; clients make the member ids (KIP-1082).
ConsumerGroupDescribe   v1: marks classic members.

Behaviour: by a heartbeat a member joins (epoch 0), sends what changed, confirms what it gave back, keeps its session,
           leaves (-1), or leaves for a while (-2, static members). The steps are in groups/consumer/heartbeat.py.
           Describe answers epochs, members, and their current and target assignments.
Absent:    client-side assignors of consumer groups. KIP-848 describes them, no Kafka release has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker.base.context import Context
from broker.coordinator.groups.assignors.spec import UNASSIGNED
from broker.coordinator.groups.common.member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from broker.coordinator.groups.common.outcome import Outcome
from broker.coordinator.groups.consumer.group import ConsumerGroup
from broker.coordinator.groups.consumer.heartbeat import heartbeat
from broker.coordinator.groups.consumer.leave import leave
from broker.coordinator.groups.consumer.member import ConsumerMember
from broker.handlers.admin_view import describe_each
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupDescribeResponseMember,
    ConsumerGroupDescribeResponseTopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.groups.machine import GroupMachine
    from protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest

CONSUMER = ConsumerGroup.group_type
CLIENT_MADE_IDS_SINCE = 1


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def groups(self) -> GroupShards: ...


def consumer_group_heartbeat(machine: GroupMachine, ctx: Context, request: ConsumerGroupHeartbeatRequest) -> Decision:
    """Serve one heartbeat of one member.

    Shape:   records of what changed: member, group epoch, target assignment, current assignment; none for most.
    Errors:  UNSUPPORTED_VERSION (consumer groups are switched off), INVALID_REQUEST, UNSUPPORTED_ASSIGNOR,
             GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID,
             GROUP_MAX_SIZE_REACHED, INVALID_REGULAR_EXPRESSION.
    Source:  KIP-848; KafkaApis.handleConsumerGroupHeartbeat.
    """
    check_heartbeat(machine, ctx, request)
    out = Outcome(ctx, machine.config)
    if request.member_epoch < 0:
        response: Any = leave(machine, request, out)
    else:
        response = heartbeat(machine, ctx, request, out)
    out.answer(ctx.token, response)
    return out.result()


def check_heartbeat(view: View | GroupMachine, ctx: Context, request: ConsumerGroupHeartbeatRequest) -> None:
    """What needs no group. Errors: UNSUPPORTED_VERSION, INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    _check_enabled(view.metadata, view.config)
    _check(request, ctx.api_version, view.config.group_consumer_assignors)


def _check_enabled(metadata: ClusterMetadata, config: Any) -> None:
    level = metadata.feature_levels.get("group.version", 1)  # 1 unless another level is recorded
    if level < 1 or CONSUMER not in config.group_coordinator_rebalance_protocols:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "consumer groups are switched off")


def _check(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Iterable[str]) -> None:
    epoch = request.member_epoch
    if api_version >= CLIENT_MADE_IDS_SINCE or epoch > 0 or epoch == LEAVING_EPOCH:
        _check_text(request.member_id, "MemberId")
    _check_text(request.group_id, "GroupId")
    _check_text(request.instance_id, "InstanceId")
    _check_text(request.rack_id, "RackId")
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            )
    elif epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < STATIC_LEAVING_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _check_text(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def consumer_group_describe(broker: View, ctx: Context, request: ConsumerGroupDescribeRequest) -> Decision:
    """Describe consumer groups: epochs and members.

    Errors:  UNSUPPORTED_VERSION; per group: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND (also for groups of other types),
             NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
    """
    _check_enabled(broker.metadata, broker.config)
    groups = describe_each(
        request, lambda group_id: _describe(broker, ctx, group_id), ConsumerGroupDescribeResponseDescribedGroup
    )
    return Decision(ConsumerGroupDescribeResponse(groups=groups))


def _describe(broker: View, ctx: Context, group_id: str) -> ConsumerGroupDescribeResponseDescribedGroup:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    machine: GroupMachine = broker.groups.require(group_id, ctx).machine
    group = machine.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        known = group is not None or machine.has_group(group_id)
        text = f"Group {group_id} is not a consumer group." if known else f"Group {group_id} not found."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
    return ConsumerGroupDescribeResponseDescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(machine.config.group_consumer_assignors[0]),
        members=[_member(group, member, broker.metadata) for member in group.members.values()],
    )


def _member(
    group: ConsumerGroup, member: ConsumerMember, metadata: ClusterMetadata
) -> ConsumerGroupDescribeResponseMember:
    member_metadata, current = member.member_metadata, member.current
    has: dict[bytes, list[int]] = {}
    for owned in (current.assigned, current.pending):
        for topic_id, epochs in owned.items():
            has.setdefault(topic_id, []).extend(epochs)
    return ConsumerGroupDescribeResponseMember(
        member_id=member.member_id,
        instance_id=member_metadata.instance_id,
        rack_id=member_metadata.rack_id,
        member_epoch=current.member_epoch,
        client_id=member_metadata.client_id,
        client_host=member_metadata.client_host,
        subscribed_topic_names=sorted(member_metadata.topic_names),
        subscribed_topic_regex=member_metadata.topic_regex,
        assignment=_assignment(has, metadata),
        target_assignment=_assignment(group.target.get(member.member_id, UNASSIGNED), metadata),
        member_type=0 if member_metadata.classic is not None else 1,
    )


def _assignment(
    partitions: Mapping[bytes, Iterable[int]], metadata: ClusterMetadata
) -> ConsumerGroupDescribeResponseAssignment:
    """An assignment with topic names; without deleted topics."""
    return ConsumerGroupDescribeResponseAssignment(
        topic_partitions=[
            ConsumerGroupDescribeResponseTopicPartitions(
                topic_id=topic_id, topic_name=metadata.topics_by_id[topic_id].name, partitions=sorted(indexes)
            )
            for topic_id, indexes in partitions.items()
            if topic_id in metadata.topics_by_id
        ]
    )
