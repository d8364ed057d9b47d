"""SyncGroup, Heartbeat and LeaveGroup of classic groups; JoinGroup is in join_group.py and exported here as well.

SyncGroup   v3: instance id. v5: protocol type and name are checked and returned (KIP-559).
Heartbeat   v3: instance id.
LeaveGroup  v3: several members at once, also by instance id alone (KIP-345). v5: reason (KIP-800), ignored.

Behaviour: SyncGroup is parked until the assignment that the leader sends is in the log. Heartbeat changes nothing but
           the member's session timer. Classic members of a consumer group: groups/consumer/classic_members.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.groups.classic.commit_checks import check_member
from broker.coordinator.groups.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup, static_member
from broker.coordinator.groups.classic.rebalance import (
    answer_sync,
    complete_if_all_joined,
    prepare_rebalance,
    refresh_session,
    remove_member,
    remove_pending,
)
from broker.coordinator.groups.classic.records import stable_group_record
from broker.coordinator.groups.classic.states import COMPLETING_REBALANCE, DEAD, PREPARING_REBALANCE, STABLE
from broker.coordinator.groups.common.outcome import Outcome
from broker.handlers.join_group import check_join, join_group
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.classic_group import (
    HeartbeatResponse,
    LeaveGroupResponse,
    MemberResponse,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.groups.machine import GroupMachine
    from protocol.messages.classic_group import HeartbeatRequest, LeaveGroupRequest, SyncGroupRequest

__all__ = ["check_join", "check_sync", "heartbeat", "join_group", "leave_group", "sync_group"]

PROTOCOL_SINCE: Final = 5  # SyncGroup: protocol type and name are required
BATCH_SINCE: Final = 3  # LeaveGroup: a list of members

NONE = ErrorCode.NONE
ALIVE: Final = HeartbeatResponse()  # shared: responses are never changed
REJOIN: Final = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def sync_group(machine: GroupMachine, ctx: Context, request: SyncGroupRequest) -> Decision:
    """Return the member's assignment; the leader's request brings the assignments of all members.

    Shape:   one GroupMetadata record for the leader's request; replaying it makes the group Stable.
    Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
             REBALANCE_IN_PROGRESS (also for a parked request, if a new rebalance starts).
    Source:  Kafka's GroupMetadataManager.classicGroupSync.
    """
    check_sync(machine, ctx, request)
    group = machine.groups.get(request.group_id)
    if group is None or group.is_empty:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.group_type != ClassicGroup.group_type:
        out = Outcome(ctx, machine.config)
        _check_consumer(group)
        out.answer(ctx.token, _members().sync(machine, group, request, out))
        return out.result()
    error = _check_sync(group, request)
    if error is not NONE:
        raise KafkaError(error)
    out = Outcome(ctx, machine.config)
    member = group.members[request.member_id]
    group.pending_syncs.discard(member.member_id)
    if not group.pending_syncs:
        out.cancel_timer(group.sync_timer)
    if group.state is STABLE:
        out.answer(ctx.token, _assignment(group, member.assignment))
        return out.result()
    answer_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), out)
    member.sync_token = ctx.token
    if group.leader == member.member_id:
        _share_assignments(group, request, out)
    return out.result()


def check_sync(view: Any, ctx: Context, request: SyncGroupRequest) -> None:
    """What needs no group. Errors: INCONSISTENT_GROUP_PROTOCOL."""
    if ctx.api_version >= PROTOCOL_SINCE and (request.protocol_type is None or request.protocol_name is None):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name are required from version 5 on")


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = check_member(group, request.member_id, request.group_instance_id)
    if error is not NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else NONE


def _share_assignments(group: ClassicGroup, request: SyncGroupRequest, out: Outcome) -> None:
    """Log the leader's assignments, and answer the parked SyncGroups.

    A member without assignment gets empty bytes; assignments of unknown members are ignored.
    """
    assignments = {a.member_id: bytes(a.assignment) for a in request.assignments}
    out.records.append(stable_group_record(group, assignments, out.now_ms))
    for member in group.members.values():
        if member.sync_token is not None:
            answer_sync(member, _assignment(group, assignments.get(member.member_id, b"")), out)
            refresh_session(member, out)


def _assignment(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )


def heartbeat(machine: GroupMachine, ctx: Context, request: HeartbeatRequest) -> Decision:
    """Keep a member's session, and tell it if it has to join again.

    Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS (in PreparingRebalance;
             the session is kept).
    Source:  Kafka's GroupMetadataManager.classicGroupHeartbeat.
    """
    group = machine.groups.get(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    member_id = request.member_id
    if group.group_type != ClassicGroup.group_type:
        out = Outcome(ctx, machine.config)
        _check_consumer(group)
        out.answer(ctx.token, _members().heartbeat(group, request, out))
        return out.result()
    if group.state is DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    error = check_member(group, member_id, request.group_instance_id)
    if error is not NONE:
        raise KafkaError(error)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    member = group.members[member_id]
    response = REJOIN if group.state is PREPARING_REBALANCE else ALIVE
    return Decision(response, timers=((member.session_timer, ctx.now_ms + member.session_timeout_ms),))


def leave_group(machine: GroupMachine, ctx: Context, request: LeaveGroupRequest) -> Decision:
    """Remove members: they leave, or an administrator removes them by instance id.

    Shape:   one GroupMetadata record if no member is left.
    Errors:  per member (up to v2 for the request): UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID. Parked requests of a removed
             member are answered with UNKNOWN_MEMBER_ID.
    Source:  Kafka's GroupMetadataManager.classicGroupLeave.
    """
    out = Outcome(ctx, machine.config)
    if ctx.api_version < BATCH_SINCE:
        leaving: list[tuple[str, str | None]] = [(request.member_id, None)]
    else:
        leaving = [(m.member_id, m.group_instance_id) for m in request.members]
    group = machine.groups.get(request.group_id)
    if group is not None and group.group_type == "consumer":
        out.answer(ctx.token, _members().leave(machine, group, request, ctx.api_version, out))
        return out.result()
    if group is None or group.group_type != ClassicGroup.group_type:
        errors = [ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving)
    elif group.state is DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    else:
        errors = [_leave(group, member_id, instance_id, out) for member_id, instance_id in leaving]
        if NONE in errors:
            if group.state in (STABLE, COMPLETING_REBALANCE):
                prepare_rebalance(group, out)
            else:
                complete_if_all_joined(group, out)
    if ctx.api_version < BATCH_SINCE:
        out.answer(ctx.token, LeaveGroupResponse(error_code=errors[0]))
    else:
        members = [
            MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=error)
            for (member_id, instance_id), error in zip(leaving, errors, strict=True)
        ]
        out.answer(ctx.token, LeaveGroupResponse(members=members))
    return out.result()


def _members() -> Any:
    """How classic members take part in a consumer group."""
    from broker.coordinator.groups.consumer import classic_members  # late: 16 ms that most starts do not need

    return classic_members


def _check_consumer(group: Any) -> None:
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group.group_id} has no members of the classic protocol.")


def _leave(group: ClassicGroup, member_id: str, group_instance_id: str | None, out: Outcome) -> ErrorCode:
    """Remove one member.

    | member id            | instance id       | result                                    |
    |----------------------|-------------------|-------------------------------------------|
    | ""                   | known             | NONE: the member that has it is removed   |
    | ""                   | none or unknown   | UNKNOWN_MEMBER_ID                         |
    | given out, not used  | any               | NONE                                      |
    | else                 | any               | check_member; NONE removes it             |
    """
    if not member_id:
        member = static_member(group, group_instance_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
    elif member_id in group.pending_joins:
        remove_pending(group, member_id, out)
        return NONE
    else:
        error = check_member(group, member_id, group_instance_id)
        if error is not NONE:
            return error
        member = group.members[member_id]
    remove_member(group, member, out)
    return NONE
