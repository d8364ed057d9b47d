"""JoinGroup: a client becomes a member of a classic group, or takes part in its next generation.

JoinGroup  v1: rebalance timeout (v0 uses the session timeout). v4: a client without member id is given one, and has to
           join again with it (KIP-394). v5: static members (KIP-345). v7: protocol type; the protocol name may be null
           (KIP-559). v8: reason (KIP-800), ignored. v9: SkipAssignment (KIP-814).

Behaviour: the request is parked until the group's rebalance is over. Refusals are sent at once.
           Members of the classic protocol in a consumer group: groups/consumer/classic_members.py.
Differs:   a JoinGroup or SyncGroup that waits is answered when its member sends another one (REBALANCE_IN_PROGRESS) or
           leaves (UNKNOWN_MEMBER_ID). Kafka forgets some of them, and their clients wait until their request timeout.

How a client becomes a member:
    no member id   dynamic, from v4     MEMBER_ID_REQUIRED with an id; it is reserved for one session timeout
                   dynamic, before v4   joins
                   static, new          joins
                   static, known        replaces the old member id: in Stable without a rebalance, if the chosen
                                        protocol stays the same; the old id is fenced from now on
    a member id    given out, not used  joins
                   of a member          see `_rejoin`
                   else                 UNKNOWN_MEMBER_ID (or FENCED_INSTANCE_ID)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.classic.commit_checks import check_member
from broker.coordinator.groups.classic.group import ClassicGroup, static_member
from broker.coordinator.groups.classic.member import Member, Protocols, protocols_of
from broker.coordinator.groups.classic.rebalance import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    answer_join,
    answer_sync,
    complete_if_all_joined,
    join_answer,
    join_refusal,
    members_for_leader,
    park_join,
    prepare_rebalance,
    rebalance_or_complete,
    refresh_session,
)
from broker.coordinator.groups.classic.records import empty_group_record, stable_group_record
from broker.coordinator.groups.classic.states import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from broker.coordinator.groups.common.outcome import Outcome
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.classic_group import JoinGroupResponse, SyncGroupResponse

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.groups.machine import GroupMachine
    from broker.turn.decision import Decision
    from protocol.messages.classic_group import JoinGroupRequest

MEMBER_ID_REQUIRED_SINCE = 4
SKIP_ASSIGNMENT_SINCE = 9


def join_group(machine: GroupMachine, ctx: Context, request: JoinGroupRequest) -> Decision:
    """Add a member, or park its request until the next generation.

    Shape:   one GroupMetadata record if this creates the group, or replaces a static member in Stable.
    Errors:  INVALID_SESSION_TIMEOUT, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED,
             INCONSISTENT_GROUP_PROTOCOL; parked: UNKNOWN_MEMBER_ID if removed, FENCED_INSTANCE_ID if replaced.
    Source:  Kafka's GroupMetadataManager.classicGroupJoin.
    """
    check_join(machine, ctx, request)
    out = Outcome(ctx, machine.config)
    member_id = request.member_id
    group = machine.groups.get(request.group_id)
    is_simple = group is None and machine.has_group(request.group_id)
    if group is not None and group.group_type != ClassicGroup.group_type:
        if not group.is_empty or not group.has_offsets:  # a share group is never replaced
            out.answer(ctx.token, _join_other(machine, ctx, request, group, out))
            return out.result()
        if not member_id:  # an empty group of another type is replaced
            out.records += group.tombstones()
        group = None
    if group is None:
        if member_id:
            refused = ErrorCode.UNKNOWN_MEMBER_ID
            if is_simple and not (request.protocol_type and request.protocols):
                refused = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            out.answer(ctx.token, join_refusal(refused, member_id))
            return out.result()
        group = machine.new_group(request.group_id, ctx.now_ms)
        out.records.append(empty_group_record(group, group.generation_id, ctx.now_ms))
    _join(group, ctx, request, out)
    return out.result()


def check_join(view: Any, ctx: Context, request: JoinGroupRequest) -> None:
    """What needs no group. Errors: INVALID_SESSION_TIMEOUT."""
    config = view.config
    if not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)


def _join_other(
    machine: GroupMachine, ctx: Context, request: JoinGroupRequest, group: Any, out: Outcome
) -> JoinGroupResponse:
    """JoinGroup for a group of another type: a consumer group takes classic members, a streams group does not."""
    # 16 ms: most starts meet no consumer group
    from broker.coordinator.groups.consumer import classic_members
    from broker.coordinator.groups.consumer.group import ConsumerGroup

    if not isinstance(group, ConsumerGroup):
        return join_refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    instance_id = request.group_instance_id
    new_id = new_member_id(ctx, ctx.client_id if instance_id is None else instance_id)
    return classic_members.join(machine, ctx, group, request, new_id, out)


def _join(group: ClassicGroup, ctx: Context, request: JoinGroupRequest, out: Outcome) -> None:
    member_id = request.member_id
    protocols = protocols_of(request.protocols)
    if not _has_room(group, member_id, out.config.group_max_size):
        _turn_away(group, member_id, out)
        out.answer(ctx.token, join_refusal(ErrorCode.GROUP_MAX_SIZE_REACHED))
    elif group.state is DEAD:
        out.answer(ctx.token, join_refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id))
    elif not group.supports(request.protocol_type, protocols):
        out.answer(ctx.token, join_refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
    elif not member_id:
        _join_new(group, ctx, request, protocols, out)
    elif member_id in group.pending_joins and request.group_instance_id is None:
        _add(group, ctx, request, protocols, member_id, out)
    else:
        error = check_member(group, member_id, request.group_instance_id)
        if error is not ErrorCode.NONE:
            out.answer(ctx.token, join_refusal(error, member_id))
        else:
            _rejoin(group, ctx, request, protocols, group.members[member_id], out)


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """Whether the group has room for the member.

    | state              | pass                                                                            |
    |--------------------|---------------------------------------------------------------------------------|
    | Empty, Dead        | always                                                                          |
    | PreparingRebalance | if parked already, or fewer than the maximum are parked: members count only     |
    |                    | once they have joined again, so that a group above the maximum shrinks to it    |
    | other              | if a member, or there are fewer members than the maximum                        |
    """
    member = group.members.get(member_id)
    if group.state is EMPTY or group.state is DEAD:
        return True
    if group.state is PREPARING_REBALANCE:
        return (member is not None and member.join_token is not None) or group.joined < max_size
    return member is not None or len(group.members) < max_size


def _turn_away(group: ClassicGroup, member_id: str, out: Outcome) -> None:
    """The group is full: remove a member that joins again too late.

    Kafka then waits for the rebalance timeout; here the rebalance completes as soon as all others have joined.
    """
    if not member_id:
        return
    member = group.rebalance_remove(member_id)
    out.cancel_timer(("session", group.group_id, member_id))
    if member is not None or group.members:
        complete_if_all_joined(group, out)


def _join_new(group: ClassicGroup, ctx: Context, request: JoinGroupRequest, protocols: Protocols, out: Outcome) -> None:
    """A client without a member id."""
    instance_id = request.group_instance_id
    member_id = new_member_id(ctx, ctx.client_id if instance_id is None else instance_id)
    if instance_id is None and ctx.api_version >= MEMBER_ID_REQUIRED_SINCE:
        group.pending_joins.add(member_id)
        out.set_timer(("session", group.group_id, member_id), request.session_timeout_ms)
        out.answer(ctx.token, join_refusal(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        return
    known = static_member(group, instance_id)
    if known is None:
        _add(group, ctx, request, protocols, member_id, out)
    else:
        _replace(group, ctx, request, protocols, known, member_id, out)


def _add(
    group: ClassicGroup,
    ctx: Context,
    request: JoinGroupRequest,
    protocols: Protocols,
    member_id: str,
    out: Outcome,
) -> None:
    member = Member(
        group.group_id,
        member_id,
        request.group_instance_id,
        ctx.client_id,
        ctx.client_host,
        _rebalance_timeout_ms(ctx, request),
        request.session_timeout_ms,
        protocols,
    )
    member.is_new = True
    if group.state is PREPARING_REBALANCE and group.is_initial_rebalance:
        group.member_added = True
    group.rebalance_add(member, request.protocol_type, ctx.token)
    # It sends no heartbeats while parked, and a broken connection goes unnoticed: this limits how long it may take.
    out.set_timer(member.session_timer, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(group, out)


def _rejoin(
    group: ClassicGroup,
    ctx: Context,
    request: JoinGroupRequest,
    protocols: Protocols,
    member: Member,
    out: Outcome,
) -> None:
    """A member joins again.

    | state                | member             | what happens                                                        |
    |----------------------|--------------------|---------------------------------------------------------------------|
    | PreparingRebalance   | any                | parked; the rebalance may be complete now                           |
    | CompletingRebalance  | same protocols     | the generation again: the response may have been lost               |
    | CompletingRebalance  | other protocols    | rebalance                                                           |
    | Stable               | leader             | rebalance: it may have a reason that the broker cannot see          |
    | Stable               | other protocols    | rebalance                                                           |
    | Stable               | same protocols     | the generation again                                                |
    """
    has_same_protocols = member.protocols == protocols
    if has_same_protocols and (
        group.state is COMPLETING_REBALANCE or (group.state is STABLE and group.leader != member.member_id)
    ):
        out.answer(ctx.token, join_answer(group, member))
        return
    group.rebalance_update(member, protocols, _rebalance_timeout_ms(ctx, request), request.session_timeout_ms)
    park_join(group, member, ctx.token, out)
    rebalance_or_complete(group, out)


def _replace(
    group: ClassicGroup,
    ctx: Context,
    request: JoinGroupRequest,
    protocols: Protocols,
    old: Member,
    member_id: str,
    out: Outcome,
) -> None:
    """A static member has started again: same instance id, new member id."""
    leader_before = group.leader
    fenced = ErrorCode.FENCED_INSTANCE_ID
    answer_join(group, old, join_refusal(fenced, old.member_id), out)
    answer_sync(old, SyncGroupResponse(error_code=fenced), out)
    out.cancel_timer(old.session_timer)
    member = group.rebalance_replace(old, member_id)
    refresh_session(member, out)
    group.rebalance_update(member, protocols, _rebalance_timeout_ms(ctx, request), request.session_timeout_ms)
    if group.state is STABLE and group.select_protocol() == group.protocol_name:
        assignments = {m.member_id: m.assignment for m in group.members.values()}
        out.records.append(stable_group_record(group, assignments, group.current_state_timestamp_ms))
        out.answer(ctx.token, _unchanged_generation(group, member, leader_before, ctx.api_version))
        return
    park_join(group, member, ctx.token, out)
    if group.state is PREPARING_REBALANCE:
        complete_if_all_joined(group, out)
    else:
        # In CompletingRebalance the leader may just be assigning partitions to the old id.
        prepare_rebalance(group, out)


def _unchanged_generation(
    group: ClassicGroup, member: Member, leader_before: str | None, api_version: int
) -> JoinGroupResponse:
    """The response when the generation and its assignment stay as they are.

    A leader must not compute a new assignment then. From v9 on the response says so; before, it names another leader:
    the old member id of this member.
    """
    response = JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader_before or "",
        member_id=member.member_id,
    )
    if api_version >= SKIP_ASSIGNMENT_SINCE:
        is_leader = group.leader == member.member_id
        response.leader = group.leader or ""
        response.skip_assignment = is_leader
        response.members = members_for_leader(group) if is_leader else []
    return response


def _rebalance_timeout_ms(ctx: Context, request: JoinGroupRequest) -> int:
    return request.session_timeout_ms if ctx.api_version == 0 else request.rebalance_timeout_ms


def new_member_id(ctx: Context, prefix: str) -> str:
    """A new member id: client id or instance id, a dash, a random UUID."""
    h = ctx.rng.uuid_bytes().hex()
    return f"{prefix}-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
