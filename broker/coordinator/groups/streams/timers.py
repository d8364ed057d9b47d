"""The timers of a streams group.

    session     no heartbeat of a member for its session timeout
    rebalance   a member has not given tasks back within its rebalance timeout
    delay       the wait for more members before the first assignment is over
    assign      the next step of a target assignment that is computed in steps

Source: Kafka's GroupMetadataManager.computeDelayedTargetAssignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.common.member import STATIC_LEAVING_EPOCH
from broker.coordinator.groups.streams.leave import fence
from broker.coordinator.groups.streams.member import UNREVOKED_TASKS
from broker.coordinator.groups.streams.target import compute_target, continue_target, previous_of
from broker.coordinator.groups.streams.topology import configured

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.streams.group import StreamsGroup
    from broker.coordinator.groups.streams.machine import Machine


def on_load(machine: Machine, group: StreamsGroup, out: Outcome) -> None:
    """Start all timers in full after loading; a first assignment is not delayed again."""
    session_ms = machine.group_value(group.group_id, "streams.session.timeout.ms")
    for member in group.members.values():
        out.set_timer(member.session_timer, session_ms)
        if member.current.state == UNREVOKED_TASKS:
            out.set_timer(member.rebalance_timer, member.member_metadata.rebalance_timeout_ms)


def on_timer(machine: Machine, group: StreamsGroup, name: tuple[Any, ...], out: Outcome) -> None:
    """Handle a timer that has run out; one that no longer applies does nothing."""
    kind = name[0]
    if kind == "delay":
        _first_assignment(machine, group, out)
        return
    if kind == "assign":
        continue_target(group, out)
        return
    member = group.members.get(name[2])
    if member is None:
        return
    is_revoking = member.current.state == UNREVOKED_TASKS and member.current.member_epoch != STATIC_LEAVING_EPOCH
    if kind == "session" or is_revoking:
        fence(group, member, out)


def _first_assignment(machine: Machine, group: StreamsGroup, out: Outcome) -> None:
    """Assign all members that have joined; their next heartbeats return the tasks."""
    if (
        group.topology is None
        or not group.members
        or group.group_epoch <= group.assignment_epoch
        or group.pending_target
    ):
        return
    found = group.configured or configured(group.topology, machine.metadata)
    compute_target(
        group, previous_of(group), found, group.last_assignment_configs, group.group_epoch, out, may_wait=True
    )
