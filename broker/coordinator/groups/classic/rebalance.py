"""The rebalance of a classic group, from one generation to the next: the part of its state machine that is not logged.

    Empty --join--> Preparing: the initial delay runs, longer with each new member; then all parked members are in
    Stable, Completing --join, leave, timeout--> Preparing: until all have joined again, or the rebalance timeout
    Preparing --> Completing: a generation, a leader and a protocol are chosen; the parked JoinGroups are answered
    Preparing --> Empty: no member has joined and none is left; replaying a record does it
    Completing --> Stable: the leader's SyncGroup brings a record; replaying it does it (handlers/classic_group.py)

Source: KIP-134 (initial delay), KIP-345 (static members), KIP-394 (member ids given first); GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.groups.classic.member import Member
from broker.coordinator.groups.classic.records import empty_group_record
from broker.coordinator.groups.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE
from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.turn.decision import Token

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000  # as Kafka, where it cannot be configured either


# -- answers -----------------------------------------------------------------------------------------------------


def join_refusal(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """A JoinGroup response with an error and nothing else."""
    return JoinGroupResponse(error_code=code, member_id=member_id)


def join_answer(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """The JoinGroup response about the current generation; the leader's lists all members."""
    is_leader = group.leader == member.member_id
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=members_for_leader(group) if is_leader else [],
    )


def members_for_leader(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """All members with their metadata of the chosen protocol."""
    return [
        JoinGroupResponseMember(
            member_id=m.member_id,
            group_instance_id=m.group_instance_id,
            metadata=m.metadata(group.protocol_name),
        )
        for m in group.members.values()
    ]


def answer_join(group: ClassicGroup, member: Member, response: JoinGroupResponse, out: Outcome) -> None:
    """Answer the member's parked JoinGroup, if there is one."""
    token = member.join_token
    if token is not None:
        group.park_join(member, None)
        out.answer(token, response)


def answer_sync(member: Member, response: SyncGroupResponse, out: Outcome) -> None:
    """Answer the member's parked SyncGroup, if there is one."""
    token = member.sync_token
    if token is not None:
        member.sync_token = None
        out.answer(token, response)


def park_join(group: ClassicGroup, member: Member, token: Token, out: Outcome) -> None:
    """Park a JoinGroup; one that the member had parked before is answered with REBALANCE_IN_PROGRESS.

    That answer has no member id: whoever waited for it may be another client, which must not take the member's id.
    """
    answer_join(group, member, join_refusal(ErrorCode.REBALANCE_IN_PROGRESS), out)
    group.park_join(member, token)


def refresh_session(member: Member, out: Outcome) -> None:
    """Start the member's session timeout again."""
    out.set_timer(member.session_timer, member.session_timeout_ms)


# -- members come and go -----------------------------------------------------------------------------------------


def remove_member(group: ClassicGroup, member: Member, out: Outcome) -> None:
    """Remove a member; its parked requests are answered with UNKNOWN_MEMBER_ID."""
    answer_join(group, member, join_refusal(ErrorCode.UNKNOWN_MEMBER_ID), out)
    answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), out)
    group.rebalance_remove(member.member_id)
    out.cancel_timer(member.session_timer)


def remove_pending(group: ClassicGroup, member_id: str, out: Outcome) -> None:
    """Remove a member id that was given out and never used."""
    group.rebalance_remove(member_id)
    out.cancel_timer(("session", group.group_id, member_id))


def rebalance_or_complete(group: ClassicGroup, out: Outcome) -> None:
    """A member joined, left or changed: start a rebalance, or complete the running one if all have joined."""
    if group.state is PREPARING_REBALANCE:
        complete_if_all_joined(group, out)
    else:
        prepare_rebalance(group, out)


def prepare_rebalance(group: ClassicGroup, out: Outcome) -> None:
    """Start a rebalance; parked SyncGroups of the old generation are answered with REBALANCE_IN_PROGRESS."""
    if group.state is COMPLETING_REBALANCE:
        refusal = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        group.rebalance_clear_assignments()
        for member in group.members.values():
            if member.sync_token is not None:
                answer_sync(member, refusal, out)
                refresh_session(member, out)
    group.pending_syncs.clear()
    out.cancel_timer(group.sync_timer)
    is_initial = group.state is EMPTY
    group.rebalance_to(PREPARING_REBALANCE, out.now_ms)
    group.is_initial_rebalance = is_initial
    if is_initial:
        delay_ms = out.config.group_initial_rebalance_delay_ms
        group.member_added = False
        group.initial_delay_ms = delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
        out.set_timer(group.join_timer, delay_ms)
    elif group.has_all_joined():
        complete_join(group, out)
    else:
        out.set_timer(group.join_timer, group.rebalance_timeout_ms())


def complete_if_all_joined(group: ClassicGroup, out: Outcome) -> None:
    """Complete the rebalance if all members have joined; an initial one ends by its timer only."""
    if group.state is PREPARING_REBALANCE and not group.is_initial_rebalance and group.has_all_joined():
        complete_join(group, out)


def complete_join(group: ClassicGroup, out: Outcome) -> None:
    """Continue with the members that joined: absent dynamic members are removed, static ones stay."""
    out.cancel_timer(group.join_timer)
    absent = [m for m in group.members.values() if m.join_token is None and m.group_instance_id is None]
    for member in absent:
        remove_member(group, member, out)
    if not group.members:
        # The record's replay empties the group.
        out.records.append(empty_group_record(group, group.generation_id + 1, out.now_ms))
        return
    if not group.rebalance_elect_leader():
        # Only static members, none of which has joined: wait until they do, or their sessions end.
        out.set_timer(group.join_timer, group.rebalance_timeout_ms())
        return
    group.rebalance_next_generation(out.now_ms)
    for member in group.members.values():
        answer_join(group, member, join_answer(group, member), out)
        refresh_session(member, out)
        member.is_new = False
    out.set_timer(group.sync_timer, group.rebalance_timeout_ms())
