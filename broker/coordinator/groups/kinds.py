"""What depends on the kind of a group: its timers, its tombstones, and whether its last record describes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.groups.classic import timers as classic_timers
from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.groups.classic.records import group_tombstone
from broker.coordinator.groups.classic.states import EMPTY, STABLE
from broker.coordinator.records import (
    CONSUMER_GROUP_METADATA,
    CONSUMER_GROUP_TYPES,
    SHARE_GROUP_METADATA,
    SHARE_GROUP_TYPES,
    STREAMS_GROUP_METADATA,
    STREAMS_GROUP_TYPES,
)

if TYPE_CHECKING:
    from broker.turn.decision import Record

CLASSIC: Final = ClassicGroup.group_type
CONSUMER: Final = "consumer"
STREAMS: Final = "streams"
SHARE: Final = "share"

# group type, the record whose tombstone deletes the group, all records of its groups
RECORD_TYPES: Final = (
    (CONSUMER, CONSUMER_GROUP_METADATA, CONSUMER_GROUP_TYPES),
    (STREAMS, STREAMS_GROUP_METADATA, STREAMS_GROUP_TYPES),
    (SHARE, SHARE_GROUP_METADATA, SHARE_GROUP_TYPES),
)


def class_of(group_type: str) -> Any:
    """The class of a type of group. Each is imported late: 5 to 10 ms that most starts do not need."""
    if group_type == CLASSIC:
        return ClassicGroup
    if group_type == CONSUMER:
        from broker.coordinator.groups.consumer.group import ConsumerGroup  # 5 ms

        return ConsumerGroup
    if group_type == SHARE:
        from broker.coordinator.groups.share.group import ShareGroup  # 5 ms

        return ShareGroup
    from broker.coordinator.groups.streams.group import StreamsGroup  # 10 ms

    return StreamsGroup


def timers_of(group_type: str) -> Any:
    """The module with `on_load` and `on_timer` for a type of group."""
    if group_type == CLASSIC:
        return classic_timers
    if group_type == CONSUMER:
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
