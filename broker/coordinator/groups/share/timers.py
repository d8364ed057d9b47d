"""The timers of a share group.

session     no heartbeat of a member for its session timeout
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.share.leave import fence

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.share.group import ShareGroup
    from broker.coordinator.groups.share.machine import Machine


def on_load(machine: Machine, group: ShareGroup, out: Outcome) -> None:
    """Start all timers in full after loading."""
    session_ms = machine.group_value(group.group_id, "share.session.timeout.ms")
    for member in group.members.values():
        out.set_timer(member.session_timer, session_ms)


def on_timer(machine: Machine, group: ShareGroup, name: tuple[Any, ...], out: Outcome) -> None:
    """Handle a timer that has run out; one that no longer applies does nothing."""
    member = group.members.get(name[2]) if len(name) == 3 else None
    if member is not None and name[0] == "session":
        fence(machine, group, member, out)
