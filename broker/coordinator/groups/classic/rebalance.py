"""How a classic group gets from one generation to the next: the volatile half of its state machine.

    Empty --join--> Preparing: the initial delay runs, prolonged by each new member, then everybody parked is in
    Stable, Completing --join, leave, silence--> Preparing: until all have joined again, or the rebalance time-out
    Preparing --> Completing: a generation, a leader and a protocol are chosen; the parked JoinGroups are answered
    Preparing --> Empty: nobody joined and nobody is left; a record says so
    Completing --> Stable: the leader's SyncGroup brings a record (handlers/classic_group.py)

Source: KIP-134 (initial delay), KIP-345 (static members), KIP-394 (member ids given first); GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from broker.coordinator.groups.classic.group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
)
from broker.coordinator.groups.classic.member import Member
from broker.coordinator.records import empty_group_record
from broker.coordinator.result import PARKED, Context, Record, Result, Token
from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

_Made = TypeVar("_Made")

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000  # as Kafka, where it cannot be configured either


class GroupConfig(Protocol):
    """The broker settings that groups look at."""

    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    group_commit_fencing: str
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_consumer_assignors: tuple[str, ...]
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_regex_refresh_interval_ms: int
    group_streams_max_size: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    archive_retain_group: str


class Outcome:
    """Collects what one request or timer comes to; `result` makes a Result of it."""

    __slots__ = ("_response", "_token", "config", "now_ms", "records", "timers", "wake")

    def __init__(self, ctx: Context, config: GroupConfig) -> None:
        self.now_ms = ctx.now_ms
        self.config = config
        self.records: list[Record] = []
        self.wake: list[tuple[Token, Any]] = []
        self.timers: list[tuple[Hashable, int | None]] = []
        self._token = ctx.token
        self._response: Any = PARKED

    def answer(self, token: Token, response: Any) -> None:
        """Answer a request: the one being handled, or a parked one."""
        if token == self._token:
            self._response = response
        else:
            self.wake.append((token, response))

    def set_timer(self, name: Hashable, delay_ms: int) -> None:
        """Start a timer, or start it afresh."""
        self.timers.append((name, self.now_ms + delay_ms))

    def cancel_timer(self, name: Hashable) -> None:
        """Stop a timer if it runs."""
        self.timers.append((name, None))

    def advance(self, steps: Generator[None, None, _Made], timer: Hashable) -> _Made | None:
        """One step of what takes long; what it has come to after the last one, else the timer is for the next."""
        try:
            next(steps)
        except StopIteration as stop:
            made: _Made = stop.value
            return made
        self.set_timer(timer, 0)
        return None

    def result(self) -> Result:
        """All of it; the request being handled is parked when nothing has answered it."""
        return Result(self._response, self.records, self.wake, self.timers)


# -- answers -----------------------------------------------------------------------------------------------------


def join_refusal(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """A JoinGroup answer that tells the member nothing but an error."""
    return JoinGroupResponse(error_code=code, member_id=member_id)


def join_answer(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """The current generation as a member gets to know it: the leader alone is told who else is in it."""
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
    """All members with what they said of the chosen protocol."""
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
    """Park a JoinGroup; one that the member had parked before will never see the answer it waits for."""
    answer_join(group, member, join_refusal(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id), out)
    group.park_join(member, token)


def refresh_session(member: Member, out: Outcome) -> None:
    """The member gave a sign of life."""
    out.set_timer(member.session_timer, member.session_timeout_ms)


# -- members come and go -----------------------------------------------------------------------------------------


def remove_member(group: ClassicGroup, member: Member, out: Outcome) -> None:
    """Drop a member; what it has parked is told that it is one no more."""
    answer_join(group, member, join_refusal(ErrorCode.UNKNOWN_MEMBER_ID), out)
    answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), out)
    group.remove(member.member_id)
    out.cancel_timer(member.session_timer)


def remove_pending(group: ClassicGroup, member_id: str, out: Outcome) -> None:
    """Take back a member id that was given out."""
    group.remove(member_id)
    out.cancel_timer(("session", group.group_id, member_id))


def rebalance_or_complete(group: ClassicGroup, out: Outcome) -> None:
    """A member came, went or changed: start a rebalance, or see whether the running one is done."""
    if group.state is PREPARING_REBALANCE:
        complete_if_all_joined(group, out)
    else:
        prepare_rebalance(group, out)


def prepare_rebalance(group: ClassicGroup, out: Outcome) -> None:
    """Ask all members to join again; who waits for an assignment of the old generation will not get it."""
    if group.state is COMPLETING_REBALANCE:
        refusal = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        for member in group.members.values():
            member.assignment = b""
            if member.sync_token is not None:
                answer_sync(member, refusal, out)
                refresh_session(member, out)
    group.pending_syncs.clear()
    out.cancel_timer(group.sync_timer)
    is_initial = group.state is EMPTY
    group.move(PREPARING_REBALANCE, out.now_ms)
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
    """End the rebalance when nobody is waited for; an initial one ends by its timer alone."""
    if group.state is PREPARING_REBALANCE and not group.is_initial_rebalance and group.has_all_joined():
        complete_join(group, out)


def complete_join(group: ClassicGroup, out: Outcome) -> None:
    """Go on with those who joined: dynamic members that did not are out, static ones keep their place."""
    out.cancel_timer(group.join_timer)
    absent = [m for m in group.members.values() if m.join_token is None and m.group_instance_id is None]
    for member in absent:
        remove_member(group, member, out)
    if not group.members:
        # The record's replay empties the group.
        out.records.append(empty_group_record(group, group.generation_id + 1, out.now_ms))
        return
    if not group.elect_joined_leader():
        # Only static members, none of them here: wait until they come or their sessions end.
        out.set_timer(group.join_timer, group.rebalance_timeout_ms())
        return
    group.next_generation(out.now_ms)
    for member in group.members.values():
        answer_join(group, member, join_answer(group, member), out)
        refresh_session(member, out)
        member.is_new = False
    out.set_timer(group.sync_timer, group.rebalance_timeout_ms())


# -- timers ------------------------------------------------------------------------------------------------------


def on_join_timer(group: ClassicGroup, out: Outcome) -> None:
    """The initial delay or the rebalance time-out is over."""
    if group.state is not PREPARING_REBALANCE:
        return
    if group.is_initial_rebalance and group.member_added and group.initial_remaining_ms:
        group.member_added = False
        delay_ms = min(out.config.group_initial_rebalance_delay_ms, group.initial_remaining_ms)
        group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        out.set_timer(group.join_timer, delay_ms)
    else:
        complete_join(group, out)


def on_sync_timer(group: ClassicGroup, out: Outcome) -> None:
    """Members that joined the generation and never asked for their assignment are out."""
    if group.state not in (COMPLETING_REBALANCE, STABLE) or not group.pending_syncs:
        return
    _remove_all([group.members[m] for m in group.members if m in group.pending_syncs], group, out)
    prepare_rebalance(group, out)


def _remove_all(members: Iterable[Member], group: ClassicGroup, out: Outcome) -> None:
    for member in members:
        remove_member(group, member, out)


def on_session_timer(group: ClassicGroup, member_id: str, out: Outcome) -> None:
    """Nothing was heard of a member, or a member id that was given out was not used."""
    member = group.members.get(member_id)
    if member_id in group.pending_joins:
        remove_pending(group, member_id, out)
    elif member is None or member.excused():
        return
    else:
        remove_member(group, member, out)
        if group.state in (STABLE, COMPLETING_REBALANCE):
            prepare_rebalance(group, out)
            return
    # Also while the initial delay runs: when the last one that was waited for is gone, there is nothing to wait for.
    if group.state is PREPARING_REBALANCE and group.has_all_joined():
        complete_join(group, out)
