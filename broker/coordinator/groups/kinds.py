"""What depends on the kind of a group: its timers, its tombstones, and whether its last record describes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.groups.classic import timers as classic_timers
from broker.coordinator.groups.classic.group import EMPTY, STABLE, ClassicGroup
from broker.coordinator.groups.classic.records import group_tombstone

if TYPE_CHECKING:
    from broker.turn.decision import Record

CLASSIC: Final = ClassicGroup.group_type
SHARE: Final = "share"


def timers_of(group_type: str) -> Any:
    """The module with `on_load` and `on_timer` for a type of group."""
    if group_type == CLASSIC:
        return classic_timers
    if group_type == "consumer":
        from broker.coordinator.groups.consumer import timers as consumer_timers  # late: 7 ms, as the groups themselves

        return consumer_timers
    if group_type == SHARE:
        from broker.coordinator.groups.share import timers as share_timers  # late: 5 ms, as the groups themselves

        return share_timers
    from broker.coordinator.groups.streams import timers as streams_timers  # late: 7 ms, as the groups themselves

    return streams_timers


def logged_groups(groups: Iterable[Any]) -> list[Any]:
    """The groups that are what their last record says: all but classic groups in a rebalance."""
    return [g for g in groups if g.group_type != CLASSIC or g.state is EMPTY or g.state is STABLE]


def group_tombstones(group_id: str, group: Any) -> list[Record]:
    """The records that delete a group, except for its offsets; None: a simple group."""
    return [group_tombstone(group_id)] if group is None or group.group_type == CLASSIC else group.tombstones()
