"""A consumer group (KIP-848): its subscriptions, the owners of partitions, and the replay of its records.

Epochs, states and what is logged: common/group.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

from broker.coordinator.groups.assignors.spec import Assignment
from broker.coordinator.groups.common.assignment_epoch_checks import NOT_ASSIGNED, CommittedPartitions
from broker.coordinator.groups.common.group import ModernGroup
from broker.coordinator.groups.consumer.member import (
    DELETED_ASSIGNMENT,
    ConsumerMember,
    CurrentAssignment,
    MemberMetadata,
    Subscription,
)
from broker.coordinator.groups.consumer.records import (
    ResolvedRegex,
    assignment_of,
    current_assignment_of,
    group_tombstones,
    member_metadata_of,
)
from broker.turn.decision import Record

Resolution: TypeAlias = Generator[None, None, dict[str, frozenset[str]]]  # returns: expression -> topics


class ConsumerGroup(ModernGroup):
    """One group of the consumer protocol; its members may use the classic protocol."""

    __slots__ = (
        "assignors",
        "classic_members",
        "owners",
        "regex_members",
        "regexes",
        "resolving",
        "static_members",
        "subscriptions",
        "topics_made_seen",
    )

    VOLATILE: ClassVar[Mapping[str, str]] = {
        **ModernGroup.VOLATILE,
        "resolving": "expressions that are being resolved; started again after a restart",
        "topics_made_seen": "remembers how many topics there were when expressions were last resolved",
    }

    group_type = "consumer"
    protocol_type = "consumer"
    unit = "partition"
    member_class = ConsumerMember
    deleted_assignment = DELETED_ASSIGNMENT
    read_metadata = staticmethod(member_metadata_of)
    read_target = staticmethod(assignment_of)
    read_current = staticmethod(current_assignment_of)

    members: dict[str, ConsumerMember]
    target: dict[str, Assignment]

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.regexes: dict[str, ResolvedRegex] = {}
        # derived from the members
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.subscriptions: dict[Subscription, int] = {}  # -> number of members
        self.assignors: dict[str, int] = {}  # -> number of members that ask for it
        self.classic_members = 0
        self.regex_members: dict[str, int] = {}  # expression -> number of members
        self.owners: dict[bytes, dict[int, str]] = {}  # topic id -> partition -> id of the member that has it
        # volatile
        self.topics_made_seen = -1
        self.resolving: Resolution | None = None

    # -- queries -------------------------------------------------------------------------------------------------

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, so that its offsets are in use."""
        return any(topic in names for names, _ in self.subscriptions) or any(
            topic in resolved.topics for resolved in self.regexes.values()
        )

    def topic_names(self, subscriptions: Mapping[Subscription, int] | None = None) -> frozenset[str]:
        """All topics that members subscribe to, by name or by a resolved expression."""
        subscribed = self.subscriptions if subscriptions is None else subscriptions
        return frozenset().union(*(self.resolved(s) for s in subscribed))

    def resolved(self, subscription: Subscription) -> frozenset[str]:
        """The topics of a subscription; an expression that is not resolved yet adds none."""
        names, regex = subscription
        found = self.regexes.get(regex) if regex else None
        return names if found is None else names | found.topics

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that has an instance id."""
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members[member_id] if member_id is not None else None

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        """The member that has a partition, or has not confirmed that it gave it back."""
        partitions = self.owners.get(topic_id)
        return None if partitions is None else partitions.get(partition)

    def preferred_assignor(
        self, default: str, old: MemberMetadata | None = None, new: MemberMetadata | None = None
    ) -> str:
        """The assignor that most members ask for, counted as if `new` stood in place of `old`; uniform if tied."""
        votes = dict(self.assignors)
        if old is not None and old.server_assignor is not None:
            _count(votes, old.server_assignor, -1)
        if new is not None and new.server_assignor is not None:
            _count(votes, new.server_assignor, 1)
        return max(votes, key=lambda name: (votes[name], name == "uniform"), default=default)

    def members_with_regex(self, regex: str) -> int:
        """How many members subscribe by this expression."""
        return self.regex_members.get(regex, 0)

    def assignment_epochs(self, current: CurrentAssignment, partitions: CommittedPartitions) -> Iterator[int]:
        """The assignment epoch of each committed partition; NOT_ASSIGNED for one that is not the member's."""
        for _, topic_id, partition in partitions():
            epoch = current.assignment_epoch(topic_id, partition)
            yield NOT_ASSIGNED if epoch is None else epoch

    def tombstones(self) -> list[Record]:
        """The records that delete the group, but for its offsets."""
        return group_tombstones(self.group_id, self.members, self.regexes)

    # -- replay --------------------------------------------------------------------------------------------------

    def replay_group(self, key: Any, value: Any) -> None:
        """Replay ConsumerGroupMetadata."""
        self.group_epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def replay_regex(self, key: Any, value: Any) -> None:
        """Replay ConsumerGroupRegularExpression."""
        if value is None:
            self.regexes.pop(key.regular_expression, None)
        else:
            self.regexes[key.regular_expression] = ResolvedRegex(
                frozenset(value.topics), value.version, value.timestamp
            )

    def _replay_added(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            member = super()._replay_added(member_id)
            self._replay_count(member, 1)
        return member

    def _replay_removed(self, member: ConsumerMember) -> None:
        self._replay_count(member, -1)
        self._replay_disown(member.member_id, member.current)

    def _replay_metadata(self, member: ConsumerMember, member_metadata: MemberMetadata) -> None:
        self._replay_count(member, -1)
        member.member_metadata = member_metadata
        self._replay_count(member, 1)

    def _replay_count(self, member: ConsumerMember, by: int) -> None:
        """Count the member in (1) or out (-1) of all that is derived from its metadata."""
        metadata = member.member_metadata
        _count(self.subscriptions, metadata.subscription, by)
        if metadata.topic_regex:
            _count(self.regex_members, metadata.topic_regex, by)
        if metadata.server_assignor is not None:
            _count(self.assignors, metadata.server_assignor, by)
        if metadata.classic is not None:
            self.classic_members += by
        if metadata.instance_id is not None:
            if by > 0:
                self.static_members[metadata.instance_id] = member.member_id
            elif self.static_members.get(metadata.instance_id) == member.member_id:
                del self.static_members[metadata.instance_id]

    def _replay_assignment(self, member: ConsumerMember, current: CurrentAssignment) -> None:
        self._replay_disown(member.member_id, member.current)
        member.current = current
        for owned in (current.assigned, current.pending):
            for topic_id, epochs in owned.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(epochs, member.member_id))

    def _replay_disown(self, member_id: str, current: CurrentAssignment) -> None:
        for owned in (current.assigned, current.pending):
            for topic_id, epochs in owned.items():
                partitions = self.owners.get(topic_id)
                if partitions is not None:
                    for partition in epochs:
                        if partitions.get(partition) == member_id:
                            del partitions[partition]
                    if not partitions:
                        del self.owners[topic_id]

    REPLAYS: ClassVar[Mapping[int, Callable[[Any, Any, Any], None]]] = {
        3: replay_group,
        5: ModernGroup.replay_member,
        6: ModernGroup.replay_target_epoch,
        7: ModernGroup.replay_target,
        8: ModernGroup.replay_current,
        16: replay_regex,
    }


def _count(counts: dict[Any, int], name: object, by: int) -> None:
    total = counts.get(name, 0) + by
    if total:
        counts[name] = total
    else:
        counts.pop(name, None)
