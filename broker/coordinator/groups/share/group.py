"""A share group (KIP-932): its subscriptions, its share partitions, and the replay of its records.

Epochs and what is logged: common/group.py. A share group has no offsets in `__consumer_offsets`, and does not expire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from broker.coordinator.groups.assignors.spec import Assignment
from broker.coordinator.groups.common.assignment_epoch_checks import CommittedPartitions
from broker.coordinator.groups.common.group import ModernGroup, State
from broker.coordinator.groups.share.member import (
    DELETED_ASSIGNMENT,
    CurrentAssignment,
    MemberMetadata,
    ShareMember,
)
from broker.coordinator.groups.share.records import (
    assignment_of,
    current_assignment_of,
    group_tombstones,
    member_metadata_of,
    state_partitions_of,
)
from broker.coordinator.groups.share.state_partitions import NO_PARTITIONS, StatePartitions
from broker.turn.decision import Record


class ShareGroup(ModernGroup):
    """One group of the share protocol."""

    __slots__ = ("initializing_since", "state_partitions", "subscriptions")

    VOLATILE: ClassVar[Mapping[str, str]] = {
        **ModernGroup.VOLATILE,
        "initializing_since": "when the state of a topic was asked for; asked for again after a restart, as in Kafka",
    }

    group_type = "share"
    protocol_type = "share"
    unit = "partition"
    has_offsets = False
    member_class = ShareMember
    deleted_assignment = DELETED_ASSIGNMENT
    read_metadata = staticmethod(member_metadata_of)
    read_target = staticmethod(assignment_of)
    read_current = staticmethod(current_assignment_of)

    members: dict[str, ShareMember]
    target: dict[str, Assignment]

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.state_partitions: StatePartitions = NO_PARTITIONS
        self.subscriptions: dict[frozenset[str], int] = {}  # topic names -> number of members; derived
        self.initializing_since: dict[bytes, int] = {}  # by topic id; volatile

    # -- queries -------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Empty or Stable: no member waits for another."""
        return State.STABLE if self.members else State.EMPTY

    def topic_names(self) -> frozenset[str]:
        """All topics that members subscribe to."""
        return frozenset().union(*self.subscriptions)

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member subscribes to the topic."""
        return any(topic in names for names in self.subscriptions)

    def assignment_epochs(self, current: Any, partitions: CommittedPartitions) -> Iterator[int]:
        """Share groups have no committed offsets."""
        raise NotImplementedError

    def has_unassigned(self) -> bool:
        """Whether a subscribed share partition has state and is in no member's target, or the other way round."""
        if not self.members:
            return False
        names = self.topic_names()
        for topic_id, (name, partitions) in self.state_partitions.initialized.items():
            if name in names:
                assigned = {p for target in self.target.values() for p in target.get(topic_id, ())}
                if assigned != partitions:
                    return True
        return False

    def tombstones(self) -> list[Record]:
        """The records that delete the group; the state of its share partitions is elsewhere."""
        return group_tombstones(self.group_id, self.members)

    # -- replay --------------------------------------------------------------------------------------------------

    def replay_group(self, key: Any, value: Any) -> None:
        """Replay ShareGroupMetadata."""
        self.group_epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def replay_state_partitions(self, key: Any, value: Any) -> None:
        """Replay ShareGroupStatePartitionMetadata."""
        self.state_partitions = NO_PARTITIONS if value is None else state_partitions_of(value)

    def _replay_added(self, member_id: str) -> ShareMember:
        member = self.members.get(member_id)
        if member is None:
            member = super()._replay_added(member_id)
            self._replay_count(member, 1)
        return member

    def _replay_removed(self, member: ShareMember) -> None:
        self._replay_count(member, -1)

    def _replay_metadata(self, member: ShareMember, member_metadata: MemberMetadata) -> None:
        self._replay_count(member, -1)
        member.member_metadata = member_metadata
        self._replay_count(member, 1)

    def _replay_count(self, member: ShareMember, by: int) -> None:
        names = member.member_metadata.topic_names
        total = self.subscriptions.get(names, 0) + by
        if total:
            self.subscriptions[names] = total
        else:
            self.subscriptions.pop(names, None)

    def _replay_assignment(self, member: ShareMember, current: CurrentAssignment) -> None:
        member.current = current

    REPLAYS: ClassVar[Mapping[int, Callable[[Any, Any, Any], None]]] = {
        10: ModernGroup.replay_member,
        11: replay_group,
        12: ModernGroup.replay_target_epoch,
        13: ModernGroup.replay_target,
        14: ModernGroup.replay_current,
        15: replay_state_partitions,
    }
