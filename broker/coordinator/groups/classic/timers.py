"""The timers of a classic group.

session     no heartbeat of a member for its session timeout, or a reserved member id was not used
join        the initial delay or the rebalance timeout is over
sync        members that joined the generation have not asked for their assignment
downgraded  the group was converted from a consumer group: its members have to join again
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.groups.classic.rebalance import (
    complete_join,
    prepare_rebalance,
    remove_member,
    remove_pending,
)
from broker.coordinator.groups.classic.states import COMPLETING_REBALANCE, PREPARING_REBALANCE, STABLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.coordinator.groups.classic.member import Member
    from broker.coordinator.groups.common.outcome import Outcome


def on_load(_machine: object, group: ClassicGroup, out: Outcome) -> None:
    """Start all session timers in full after loading. A group above a lowered group.max.size rebalances."""
    for member in group.members.values():
        out.set_timer(member.session_timer, member.session_timeout_ms)
    if len(group.members) > out.config.group_max_size:
        prepare_rebalance(group, out)


def on_timer(_machine: object, group: ClassicGroup, name: tuple[Any, ...], out: Outcome) -> None:
    """Handle a timer that has run out; one that no longer applies does nothing."""
    kind = name[0]
    if kind == "session":
        on_session_timer(group, name[2], out)
    elif kind == "join":
        on_join_timer(group, out)
    elif kind == "sync":
        on_sync_timer(group, out)
    elif kind == "downgraded" and group.state is STABLE:
        prepare_rebalance(group, out)


def on_join_timer(group: ClassicGroup, out: Outcome) -> None:
    """The initial delay or the rebalance timeout is over."""
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
    """Remove members that joined the generation and did not ask for their assignment."""
    if group.state not in (COMPLETING_REBALANCE, STABLE) or not group.pending_syncs:
        return
    _remove_all([group.members[m] for m in group.members if m in group.pending_syncs], group, out)
    prepare_rebalance(group, out)


def _remove_all(members: Iterable[Member], group: ClassicGroup, out: Outcome) -> None:
    for member in members:
        remove_member(group, member, out)


def on_session_timer(group: ClassicGroup, member_id: str, out: Outcome) -> None:
    """Remove a member that sent no heartbeat, or a member id that was given out and not used."""
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
    # Also during the initial delay: without the last member that had not joined, there is nothing to wait for.
    if group.state is PREPARING_REBALANCE and group.has_all_joined():
        complete_join(group, out)
