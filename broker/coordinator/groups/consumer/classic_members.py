"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of members of the classic protocol in a consumer group.

No request is parked: JoinGroup works like a heartbeat and is answered at once, with the member epoch as generation;
SyncGroup returns the member's current assignment. A member that has to take another step is told to rejoin.

    told to rejoin (REBALANCE_IN_PROGRESS)   Heartbeat: its epoch is below the assignment epoch, it has to give back
                                             partitions, or partitions it waits for are free. SyncGroup: the first only
    removed                                  if it does not rejoin, or does not sync, within its rebalance timeout

Source: KIP-848; Kafka's GroupMetadataManager.classicGroupJoinToConsumerGroup and its neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.assignors.spec import UNASSIGNED
from broker.coordinator.groups.classic.member import Protocols, protocols_of
from broker.coordinator.groups.consumer import migration
from broker.coordinator.groups.consumer.embedded_protocol import (
    EmbeddedSubscription,
    read_subscription,
    write_assignment,
)
from broker.coordinator.groups.consumer.group import ConsumerGroup
from broker.coordinator.groups.consumer.heartbeat import Step, check_size
from broker.coordinator.groups.consumer.leave import fence, find_member
from broker.coordinator.groups.consumer.member import (
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    ClassicMetadata,
    ConsumerMember,
    MemberMetadata,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.classic_group import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    MemberResponse,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.consumer.machine import Machine
    from protocol.messages.classic_group import (
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        SyncGroupRequest,
    )

MEMBER_ID_REQUIRED_SINCE = 4
CONSUMER = ConsumerGroup.protocol_type
NONE = ErrorCode.NONE


def join(
    machine: Machine, ctx: Context, group: ConsumerGroup, request: JoinGroupRequest, new_id: str, out: Outcome
) -> JoinGroupResponse:
    """Serve JoinGroup: a classic member joins, or takes its next step.

    Errors:  INCONSISTENT_GROUP_PROTOCOL (also: migration is disabled), GROUP_MAX_SIZE_REACHED, MEMBER_ID_REQUIRED,
             UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    protocols = protocols_of(request.protocols)
    is_unknown, instance_id = not request.member_id, request.group_instance_id
    member_id = request.member_id or new_id
    _check_join(machine, group, member_id, instance_id, request.protocol_type, protocols)
    if is_unknown and instance_id is None and ctx.api_version >= MEMBER_ID_REQUIRED_SINCE:
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    known = None if instance_id is None or is_unknown else find_member(group, member_id, instance_id)
    try:
        subscription = read_subscription(protocols[0][1])
    except ValueError:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the subscription cannot be read") from None
    step = Step(machine, group, out)
    before = group.static_member(instance_id)
    if before is not None and is_unknown:
        step.replace_static(before, member_id)
    else:
        step.use_member(known or group.members.get(member_id) or ConsumerMember(group.group_id, member_id))
    is_downgrade = migration.must_downgrade_on_replacement(machine, group, before)
    records_before = len(out.records) - (6 if step.replaced_id is not None else 0)
    step.update_member(_merge(step.member_metadata, ctx, request, subscription, protocols))
    topics = machine.metadata.topics
    owned = {topics[t].topic_id: frozenset(p) for t, p in subscription.owned.items() if t in topics}
    if is_downgrade:
        assert before is not None
        rebalance = group.assignment_epoch < step.group_epoch
        if not rebalance:
            step.assign()
            step.reconcile(owned)
        del out.records[records_before:]  # they are about the consumer group, which ends here
        joining = ConsumerMember(group.group_id, member_id, step.member_metadata, step.current)
        migration.downgrade(machine, group, [before], joining, out, rebalance=rebalance)
    else:
        step.assign()
        step.reconcile(owned)
        group.metadata_seen = step.seen
        out.cancel_timer(step.member.join_timer)
        step.member.is_told_to_rejoin = False
        out.set_timer(step.member.session_timer, request.session_timeout_ms)
        out.set_timer(step.member.sync_timer, step.member_metadata.rebalance_timeout_ms)
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=step.current.member_epoch,
        protocol_type=CONSUMER,
        protocol_name=protocols[0][0],
    )


def _merge(
    old: MemberMetadata,
    ctx: Context,
    request: JoinGroupRequest,
    subscription: EmbeddedSubscription,
    protocols: Protocols,
) -> MemberMetadata:
    """The member's metadata after this request; what the request leaves out stays."""
    timeout_ms = request.rebalance_timeout_ms if ctx.api_version >= 1 else request.session_timeout_ms
    return MemberMetadata(
        old.instance_id if request.group_instance_id is None else request.group_instance_id,
        old.rack_id if subscription.rack_id is None else subscription.rack_id,
        ctx.client_id,
        ctx.client_host,
        subscription.topics,
        "",
        old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        old.server_assignor,
        ClassicMetadata(request.session_timeout_ms, protocols),
    )


def _check_join(
    machine: Machine,
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    protocol_type: str,
    protocols: Protocols,
) -> None:
    if machine.config.group_consumer_migration_policy == "disabled":
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "migration between the group protocols is disabled")
    check_size(machine, group, member_id, instance_id)
    known: dict[str, int] = {}
    for member in group.members.values():
        if member.member_metadata.classic is not None:
            for name, _ in member.member_metadata.classic.protocols:
                known[name] = known.get(name, 0) + 1
    fits = any(known.get(name, 0) == group.classic_members for name, _ in protocols)
    if protocol_type != CONSUMER or not fits:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")


def sync(machine: Machine, group: ConsumerGroup, request: SyncGroupRequest, out: Outcome) -> SyncGroupResponse:
    """Serve SyncGroup with the member's current assignment.

    Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
             REBALANCE_IN_PROGRESS.
    """
    member, classic = _classic_member(group, request)
    current, name = member.current, classic.protocols[0][0]
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.assignment_epoch > current.member_epoch and current.state != UNREVOKED_PARTITIONS:
        return SyncGroupResponse(error_code=_tell_to_rejoin(member, out))
    out.cancel_timer(member.sync_timer)
    out.set_timer(member.session_timer, classic.session_timeout_ms)
    assigned = {topic_id: tuple(epochs) for topic_id, epochs in current.assigned.items()}
    version = read_subscription(classic.protocols[0][1]).version
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(migration.by_topic_name(assigned, machine.metadata), version),
    )


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, out: Outcome) -> HeartbeatResponse:
    """Serve Heartbeat: keep the member's session, and tell it to rejoin if it has a step to take.

    Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
    """
    member, classic = _classic_member(group, request)
    out.set_timer(member.session_timer, classic.session_timeout_ms)
    state = member.current.state
    if (
        member.current.member_epoch < group.assignment_epoch
        or _needs_rejoin_to_assign(group)
        or state == UNREVOKED_PARTITIONS
        or (state == UNRELEASED_PARTITIONS and not _waits(group, member))
    ):
        return HeartbeatResponse(error_code=_tell_to_rejoin(member, out))
    return HeartbeatResponse()


def _tell_to_rejoin(member: ConsumerMember, out: Outcome) -> ErrorCode:
    """Tell the member to rejoin within its rebalance timeout, counted from the first time it is told."""
    if not member.is_told_to_rejoin:
        member.is_told_to_rejoin = True
        out.set_timer(member.join_timer, member.member_metadata.rebalance_timeout_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


def _needs_rejoin_to_assign(group: ConsumerGroup) -> bool:
    """Whether a new target is due that only a rejoin can start: all members use the classic protocol.

    Kafka does not tell them, and leaves the partitions of removed members unassigned until another member joins.
    """
    return group.assignment_epoch < group.group_epoch and group.classic_members == len(group.members)


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether another member still has a partition of this member's target."""
    return any(
        group.owner(topic_id, partition) not in (None, member.member_id)
        for topic_id, partitions in group.target.get(member.member_id, UNASSIGNED).items()
        for partition in partitions
    )


def _classic_member(group: ConsumerGroup, request: Any) -> tuple[ConsumerMember, ClassicMetadata]:
    member = find_member(group, request.member_id, request.group_instance_id)
    if member.member_metadata.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member.member_id} does not use the classic protocol")
    if member.current.member_epoch != request.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.member_metadata.classic


def leave(
    machine: Machine, group: ConsumerGroup, request: LeaveGroupRequest, api_version: int, out: Outcome
) -> LeaveGroupResponse:
    """Serve LeaveGroup: members of either protocol leave, or an administrator removes them by instance id.

    Errors:  per member (up to v2 for the request): UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if api_version < 3:
        asked: list[tuple[str, str | None]] = [(request.member_id, None)]
    else:
        asked = [(m.member_id, m.group_instance_id) for m in request.members]
    leaving: dict[str, ConsumerMember] = {}
    answers = []
    for member_id, instance_id in asked:
        code = NONE
        try:
            holder = group.static_member(instance_id)
            known_id = holder.member_id if holder is not None and not member_id else member_id
            member = find_member(group, known_id, instance_id)
            leaving[member.member_id] = member
        except KafkaError as error:
            code = error.code
        answers.append(MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=code))
    if leaving:
        fence(machine, group, list(leaving.values()), out)
    if api_version < 3:
        return LeaveGroupResponse(error_code=answers[0].error_code)
    return LeaveGroupResponse(members=answers)
