"""When a target assignment is computed: at once, or step by step between the turns of the event loop.

It is due when the group epoch is above the assignment epoch, at most once per assignment interval. A small group is
assigned inside the request. A large one is assigned in steps, each started by the group's "assign" timer; until the
last step its members keep the old target, as they do while the interval has not passed. When the last member leaves,
the assignment epoch follows the group epoch: the next member does not wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from broker.coordinator.groups.common.group import ModernGroup, PendingTarget
    from broker.coordinator.groups.common.outcome import Outcome

NEVER_COMPUTED_MS: Final = 0  # the time of a target that the assignment interval does not hold up

_Target = TypeVar("_Target")


def is_due(group: ModernGroup, group_epoch: int, interval_ms: int, now_ms: int) -> bool:
    """Whether a target for this group epoch may be computed now.

    | assignment epoch | pending target | last computed | interval | due                   |
    |------------------|----------------|---------------|----------|-----------------------|
    | the group epoch  | any            | any           | any      | no                    |
    | below            | yes            | any           | any      | no                    |
    | below            | no             | not known: 0  | any      | yes                   |
    | below            | no             | any           | 0        | yes                   |
    | below            | no             | any           | not 0    | if the interval is up |
    """
    if group.assignment_epoch >= group_epoch or group.pending_target is not None:
        return False
    return not is_too_early(group, interval_ms, now_ms)


def is_too_early(group: ModernGroup, interval_ms: int, now_ms: int) -> bool:
    """Whether the assignment interval has not passed since the last target was computed."""
    last_ms = group.assignment_timestamp_ms
    return last_ms != NEVER_COMPUTED_MS and interval_ms != 0 and last_ms <= now_ms < last_ms + interval_ms


def compute_in_steps(group: ModernGroup, pending: PendingTarget, out: Outcome) -> None:
    """Leave the computing to the "assign" timer. The group must be one that a timer finds: one in the log."""
    group.pending_target = pending
    out.set_timer(("assign", group.group_id), 0)


def for_present_members(group: Any, pending: PendingTarget, targets: Mapping[str, _Target]) -> dict[str, _Target]:
    """The targets of members that are still there; a static member's successor gets those of the one before it.

    group   one with `static_members`: instance id -> member id
    """
    present: dict[str, _Target] = {}
    for member_id, target in targets.items():
        if member_id in group.members:
            present[member_id] = target
        else:
            successor = group.static_members.get(pending.instance_ids.get(member_id, ""))
            if successor is not None and successor not in pending.members:
                present[successor] = target
    return present


def advance(group: ModernGroup, out: Outcome) -> tuple[PendingTarget, Any] | None:
    """The next step of the pending target, and with the last one what was computed."""
    pending = group.pending_target
    if pending is None:
        return None
    if pending.epoch <= group.assignment_epoch:  # the last member left meanwhile: the target of none is made
        group.pending_target = None
        return None
    computed = out.advance(pending.steps, ("assign", group.group_id))
    if computed is None:
        return None
    group.pending_target = None
    return pending, computed
