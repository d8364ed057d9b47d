"""ShareGroupHeartbeat and ShareGroupDescribe: the share group protocol of KIP-932.

ShareGroupHeartbeat  A member joins, sends what changed, keeps its session, leaves.
ShareGroupDescribe   Epochs, members and their assignments.

Behaviour: a member joins with epoch 0 and leaves with -1. The state of the share partitions that it subscribes to is
           made in `__share_group_state`; then they can be assigned. The steps: groups/share/heartbeat.py.
           Partitions added to a topic that the group knows begin at offset 0.
Differs:   the heartbeat that has state made waits for it, a moment, and is answered with the assignment; in Kafka the
           next one is, 5 seconds later (group.share.first.assignment=next-heartbeat). Members and partitions of share
           groups are assigned and shown in the order of their names; in Kafka the order is that of hash maps.
           Assignments are not delayed (share.assignment.interval.ms is 0, in Kafka 1000).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from broker.base.context import Context
from broker.config.features import knows_level, level_of
from broker.coordinator.groups.common.member import JOINING_EPOCH, LEAVING_EPOCH
from broker.coordinator.groups.common.outcome import Outcome
from broker.coordinator.groups.share.group import ShareGroup
from broker.coordinator.groups.share.heartbeat import heartbeat
from broker.coordinator.groups.share.leave import leave
from broker.coordinator.groups.share.records import state_partitions_record
from broker.coordinator.groups.share.state_partitions import Missing
from broker.coordinator.share.state import NOT_STARTED, Key
from broker.handlers.admin_view import describe_each
from broker.turn.decision import LATER, Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group import (
    ShareGroupDescribeResponse,
    ShareGroupDescribeResponseAssignment,
    ShareGroupDescribeResponseDescribedGroup,
    ShareGroupDescribeResponseMember,
    ShareGroupDescribeResponseTopicPartitions,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.groups.share.member import ShareMember
    from broker.coordinator.runtime import Shard
    from broker.coordinator.share.table import SharePartitions
    from broker.wire.parked import ParkedRequests
    from protocol.messages.share_group import ShareGroupDescribeRequest

LONGEST_MEMBER_ID: Final = 36
ASSIGNOR: Final = "simple"
AT_ONCE: Final = "at-once"  # group.share.first.assignment


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def groups(self) -> GroupShards: ...
    @property
    def share(self) -> SharePartitions: ...
    @property
    def parked(self) -> ParkedRequests: ...


def check_enabled(broker: Any) -> None:
    """Errors: UNSUPPORTED_VERSION: share groups are switched off, by the level of the feature share.version."""
    if level_of("share.version", broker.metadata.feature_levels) < 1:
        broker.share.clear()
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def check_member_id(member_id: str | None) -> None:
    """Errors: INVALID_REQUEST: no member id, or one that is longer than a uuid."""
    if not member_id or len(member_id) > LONGEST_MEMBER_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def share_group_heartbeat(broker: View, ctx: Context, request: ShareGroupHeartbeatRequest) -> Decision:
    """Serve one heartbeat of one member. LATER: it waits until the state of share partitions is durable.

    Shape:   records of what changed: member, group epoch, target and current assignment; none for most. For share
             partitions that nobody of the group has read before, also their state, and then the group's list of them.
    Errors:  UNSUPPORTED_VERSION (share groups are switched off), INVALID_REQUEST, GROUP_ID_NOT_FOUND,
             UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, GROUP_MAX_SIZE_REACHED, COORDINATOR_NOT_AVAILABLE.
    Source:  KIP-932; KafkaApis.handleShareGroupHeartbeat, GroupCoordinatorService.persisterInitialize.
    """
    check_enabled(broker)
    _check(request)
    shard = broker.groups.require(request.group_id, ctx)
    out = Outcome(ctx, broker.config)
    if request.member_epoch == LEAVING_EPOCH:
        response = leave(shard.machine, request, out)
        to_make = Missing()
    else:
        response, group_epoch, to_make = heartbeat(shard.machine, ctx, request, out)
    decision = out.result()
    decision.shard, decision.reply = shard, response
    if to_make.topics:
        decision.then = lambda: _make_states(broker, shard, ctx, request, response, group_epoch, to_make)
    return decision


def _make_states(
    broker: View,
    shard: Shard,
    ctx: Context,
    request: ShareGroupHeartbeatRequest,
    response: ShareGroupHeartbeatResponse,
    group_epoch: int,
    to_make: Missing,
) -> Any:
    """Make the state of share partitions that nobody of the group has read before. Returns the reply, or LATER."""
    waits = broker.config.group_share_first_assignment == AT_ONCE
    answers: list[ShareGroupHeartbeatResponse] = []

    def made(durable: bool) -> None:
        if not waits:
            return
        answer = _assigned(broker, shard, ctx, request, response) if durable else response
        if ctx.token in shard.parked:
            shard.parked.discard(ctx.token)
            broker.parked.answer(ctx.token, answer, shard.flush_state)
        else:  # not parked yet, or refused meanwhile
            answers.append(answer)

    error = initialize(broker, shard, request.group_id, group_epoch, to_make, ctx.now_ms, made)
    if error is not None:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    if not waits:
        return response
    if answers:
        return answers[0]
    shard.parked.add(ctx.token)
    return LATER


def _assigned(
    broker: View, shard: Shard, ctx: Context, request: ShareGroupHeartbeatRequest, first: ShareGroupHeartbeatResponse
) -> ShareGroupHeartbeatResponse:
    """The answer to the member's next heartbeat, which finds all state made; `first` if it would be refused."""
    out = Outcome(ctx, broker.config)
    following = ShareGroupHeartbeatRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=first.member_epoch,
        subscribed_topic_names=request.subscribed_topic_names,
    )
    try:
        response, group_epoch, to_make = heartbeat(shard.machine, ctx, following, out)
    except KafkaError:  # it has left, or the group is gone
        return first
    shard.apply(out.result(), ctx.now_ms)
    if to_make.topics:  # partitions were added meanwhile: a later heartbeat gets them
        initialize(broker, shard, request.group_id, group_epoch, to_make, ctx.now_ms)
    if response.assignment is None:
        response.assignment = first.assignment
    return cast("ShareGroupHeartbeatResponse", response)


def _check(request: ShareGroupHeartbeatRequest) -> None:
    """The checks of a heartbeat that need no group. Errors: INVALID_REQUEST."""
    check_member_id(request.member_id)
    for text, name in ((request.member_id, "MemberId"), (request.group_id, "GroupId"), (request.rack_id, "RackId")):
        if text is not None and not text.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == JOINING_EPOCH and not request.subscribed_topic_names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVING_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def initialize(
    broker: View,
    shard: Shard,
    group_id: str,
    group_epoch: int,
    to_make: Missing,
    now_ms: int,
    then: Callable[[bool], None] | None = None,
) -> KafkaError | None:
    """Make the state of share partitions; when it is durable, the group's record says so, and `then(True)` is called.

    One that was added to a topic begins at offset 0, so that no record of it is missed; the others where the group's
    share.auto.offset.reset says, at their first read.
    Answers what went wrong; `then(False)`: it was written and is not durable.
    """
    group = shard.machine.groups[group_id]
    topics = to_make.topics
    begins_at_zero = to_make.added if knows_level("share.version", 2, broker.config.release) else {}
    group.initializing_since.update(dict.fromkeys(topics, now_ms))
    starts = {
        Key(group_id, topic_id, index): 0 if index in begins_at_zero.get(topic_id, ()) else NOT_STARTED
        for topic_id, (_, found) in topics.items()
        for index in sorted(found)
    }

    def made(durable: bool) -> None:
        group = shard.machine.groups.get(group_id)
        if isinstance(group, ShareGroup):
            partitions = group.state_partitions
            after = partitions.ended(topics) if durable else partitions.given_up(topics)
            if after != partitions:
                shard.append([state_partitions_record(group_id, after)])

    def made_and_told(durable: bool) -> None:
        made(durable)
        if then is not None:
            then(durable)

    try:
        broker.share.coordinator.initialize(starts, group_epoch, made_and_told)
        broker.share.drop(starts)
    except KafkaError as error:
        made(durable=False)
        return error
    return None


def share_group_describe(broker: View, ctx: Context, request: ShareGroupDescribeRequest) -> Decision:
    """Describe share groups: epochs and members.

    Errors:  UNSUPPORTED_VERSION; per group: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND (also for groups of other types),
             NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
    """
    check_enabled(broker)
    groups = describe_each(
        request, lambda group_id: _describe(broker, ctx, group_id), ShareGroupDescribeResponseDescribedGroup
    )
    return Decision(ShareGroupDescribeResponse(groups=groups))


def _describe(broker: View, ctx: Context, group_id: str) -> ShareGroupDescribeResponseDescribedGroup:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    machine = broker.groups.require(group_id, ctx).machine
    group = machine.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        known = machine.has_group(group_id)
        text = f"Group {group_id} is not a share group." if known else f"Group {group_id} not found."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
    return ShareGroupDescribeResponseDescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=[_member(member, broker.metadata) for member in group.members.values()],
    )


def _member(member: ShareMember, metadata: ClusterMetadata) -> ShareGroupDescribeResponseMember:
    member_metadata, current = member.member_metadata, member.current
    return ShareGroupDescribeResponseMember(
        member_id=member.member_id,
        rack_id=member_metadata.rack_id,
        member_epoch=current.member_epoch,
        client_id=member_metadata.client_id,
        client_host=member_metadata.client_host,
        subscribed_topic_names=sorted(member_metadata.topic_names),
        assignment=ShareGroupDescribeResponseAssignment(
            topic_partitions=[
                ShareGroupDescribeResponseTopicPartitions(
                    topic_id=topic_id, topic_name=metadata.topics_by_id[topic_id].name, partitions=sorted(indexes)
                )
                for topic_id, indexes in current.assigned.items()
                if topic_id in metadata.topics_by_id
            ]
        ),
    )
