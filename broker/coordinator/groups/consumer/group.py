"""A consumer group (KIP-848): members, epochs, target assignment, and what a logged record makes of it.

The life of a group
-------------------
    Empty          no members
    Assigning      the group epoch has moved on, and the target assignment has not followed yet
    Reconciling    there is a target for the group epoch; some member is not there yet
    Stable         every member has what it shall have

The three epochs
----------------
    group epoch        moves on whenever who is in the group, what they want or what there is has changed
    assignment epoch   the group epoch that the target assignment was computed for
    member epoch       the assignment epoch that a member has reached, each at its own pace

    assignment epoch of a partition <= member epoch <= assignment epoch <= group epoch    (`broken`: where it is not)

A static member that is away for a moment has member epoch -2. A new group begins at 1 and 1.

What is logged and what is not
------------------------------
Everything is logged, but for the timers and for what is marked volatile below. Only `replay` changes the logged part.
The records of one group may be replayed in another order than they were written once the log was cleaned: a member
before its group, say. So nothing is checked while replaying; `broken` is asked afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

from broker.coordinator.groups.assignors.spec import Assignment
from broker.coordinator.groups.common.assignment_epoch_checks import NOT_ASSIGNED, CommittedPartitions, Committer
from broker.coordinator.groups.common.epoch_order import epoch_inconsistencies
from broker.coordinator.groups.consumer.member import (
    DELETED_ASSIGNMENT,
    STATIC_LEAVING_EPOCH,
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
from broker.coordinator.result import Record

Resolution: TypeAlias = Generator[None, None, dict[str, frozenset[str]]]  # answers by returning: expression -> topics

FIRST_EPOCH: Final = 1


class State(Enum):
    """The states of a consumer group; the value is what clients are told."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """One group of the consumer protocol; see the module's text."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "assignors",
        "classic_members",
        "group_epoch",
        "group_id",
        "members",
        "metadata_hash",
        "metadata_seen",
        "owners",
        "pending_target",
        "regex_members",
        "regexes",
        "resolving",
        "static_members",
        "subscriptions",
        "target",
        "topics_made_seen",
        "was_inconsistent",
    )

    group_type: Final = "consumer"
    protocol_type: Final = "consumer"
    pending_joins: Final[frozenset[str]] = frozenset()

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, Assignment] = {}  # by member id
        self.regexes: dict[str, ResolvedRegex] = {}
        # derived from the members by replay
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.subscriptions: dict[Subscription, int] = {}  # -> members
        self.assignors: dict[str, int] = {}  # preferred by so many members
        self.classic_members = 0
        self.regex_members: dict[str, int] = {}  # expression -> members
        self.owners: dict[bytes, dict[int, str]] = {}  # topic id -> partition -> who has it, or still has it
        # volatile
        self.metadata_seen: tuple[Any, int] | None = None  # the cluster metadata that metadata_hash was checked for
        self.topics_made_seen = -1  # how many topics had ever been made when the expressions were last resolved
        self.resolving: Resolution | None = None  # the expressions are being resolved
        self.pending_target: Any = None  # a target that is being computed in the background
        self.was_inconsistent = False  # as it was loaded; served all the same

    # -- queries -------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        if not self.members:
            return State.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return State.ASSIGNING
        epoch = self.assignment_epoch
        if all(m.current.is_reconciled_to(epoch) for m in self.members.values()):
            return State.STABLE
        return State.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    def uses_consumer_protocol(self) -> bool:
        """Whether its members are consumers, so that the topics in use are known."""
        return True

    def is_subscribed(self, topic: str) -> bool:
        """Whether a topic's offsets are in use."""
        return any(topic in names for names, _ in self.subscriptions) or any(
            topic in resolved.topics for resolved in self.regexes.values()
        )

    def topic_names(self, subscriptions: Mapping[Subscription, int] | None = None) -> frozenset[str]:
        """All topics that the members subscribe to, by name or by a resolved expression."""
        wanted = self.subscriptions if subscriptions is None else subscriptions
        return frozenset().union(*(self.resolved(s) for s in wanted))

    def resolved(self, subscription: Subscription) -> frozenset[str]:
        """The topics of a subscription; an expression that is not resolved yet stands for none."""
        names, regex = subscription
        found = self.regexes.get(regex) if regex else None
        return names if found is None else names | found.topics

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that holds an instance id."""
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members[member_id] if member_id is not None else None

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        """Who has a partition, or has not said yet that it is given back."""
        partitions = self.owners.get(topic_id)
        return None if partitions is None else partitions.get(partition)

    def preferred_assignor(
        self, default: str, old: MemberMetadata | None = None, new: MemberMetadata | None = None
    ) -> str:
        """The assignor that most members ask for, as if `new` stood in place of `old`."""
        votes = dict(self.assignors)
        if old is not None and old.server_assignor is not None:
            _count(votes, old.server_assignor, -1)
        if new is not None and new.server_assignor is not None:
            _count(votes, new.server_assignor, 1)
        return max(votes, key=lambda name: votes[name], default=default)

    def members_with_regex(self, regex: str) -> int:
        """How many members subscribe by an expression."""
        return self.regex_members.get(regex, 0)

    def committer(self, member_id: str | None, partitions: CommittedPartitions | None = None) -> Committer | None:
        """What decides over the commits of a member (see fencing.py). The partitions are looked at if they matter."""
        member = self.members.get(member_id) if member_id is not None else None
        if member is None:
            return None
        current = member.current
        epochs = None if partitions is None else _assignment_epochs(current, partitions)
        return Committer(
            current.member_epoch,
            epochs,
            is_classic=member.member_metadata.classic is not None,
            revocation_epoch=current.revocation_epoch,
        )

    def tombstones(self) -> list[Record]:
        """What deletes the group."""
        return group_tombstones(self.group_id, self.members, self.regexes)

    def inconsistencies(self) -> list[str]:
        """Where the order of the epochs does not hold; nothing, but for a log that was tampered with."""
        found = self.epoch_inconsistencies(self.members)
        owned: dict[tuple[bytes, int], str] = {}
        for member_id, member in self.members.items():
            for part in (member.current.assigned, member.current.pending):
                for topic_id, epochs in part.items():
                    for partition in epochs:
                        other = owned.setdefault((topic_id, partition), member_id)
                        if other != member_id:
                            found.append(f"partition {partition} is both {other}'s and {member_id}'s")
        return found

    def epoch_inconsistencies(self, member_ids: Collection[str]) -> list[str]:
        """The same for what has been touched; see epoch_order.py."""
        return epoch_inconsistencies(self, member_ids, _held, "partitions")

    def facts(self) -> tuple[object, ...]:
        """What the log says of the group."""
        return (
            self.group_epoch,
            self.metadata_hash,
            self.assignment_epoch,
            self.assignment_timestamp_ms,
            {m.member_id: (m.member_metadata, m.current) for m in self.members.values()},
            dict(self.target),
            dict(self.regexes),
            dict(self.static_members),
            dict(self.subscriptions),
            dict(self.assignors),
            self.classic_members,
            {t: dict(p) for t, p in self.owners.items()},
        )

    # -- replay --------------------------------------------------------------------------------------------------

    def replay(self, key: Any, value: Any) -> None:
        """Apply one record but the group's own tombstone, which is for whoever holds the group."""
        _REPLAYS[key.API_KEY](self, key, value)

    def _replay_group(self, key: Any, value: Any) -> None:
        self.group_epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def _replay_member(self, key: Any, value: Any) -> None:
        if value is None:
            member = self.members.pop(key.member_id, None)
            if member is not None:
                self._count_member_metadata(member, -1)
                self._disown(member.member_id, member.current)
            return
        member = self._member(key.member_id)
        self._count_member_metadata(member, -1)
        member.member_metadata = member_metadata_of(value)
        self._count_member_metadata(member, 1)

    def _replay_target_epoch(self, key: Any, value: Any) -> None:
        self.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _replay_target(self, key: Any, value: Any) -> None:
        if value is None:
            self.target.pop(key.member_id, None)
        else:
            self.target[key.member_id] = assignment_of(value)

    def _replay_current(self, key: Any, value: Any) -> None:
        if value is None:
            if key.member_id in self.members:
                self._put_current(self.members[key.member_id], DELETED_ASSIGNMENT)
        else:
            self._put_current(self._member(key.member_id), current_assignment_of(value))

    def _replay_regex(self, key: Any, value: Any) -> None:
        if value is None:
            self.regexes.pop(key.regular_expression, None)
        else:
            self.regexes[key.regular_expression] = ResolvedRegex(
                frozenset(value.topics), value.version, value.timestamp
            )

    def _member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = ConsumerMember(self.group_id, member_id)
            self._count_member_metadata(member, 1)
        return member

    def _count_member_metadata(self, member: ConsumerMember, by: int) -> None:
        member_metadata = member.member_metadata
        _count(self.subscriptions, member_metadata.subscription, by)
        if member_metadata.topic_regex:
            _count(self.regex_members, member_metadata.topic_regex, by)
        if member_metadata.server_assignor is not None:
            _count(self.assignors, member_metadata.server_assignor, by)
        if member_metadata.classic is not None:
            self.classic_members += by
        if member_metadata.instance_id is not None:
            if by > 0:
                self.static_members[member_metadata.instance_id] = member.member_id
            elif self.static_members.get(member_metadata.instance_id) == member.member_id:
                del self.static_members[member_metadata.instance_id]

    def _put_current(self, member: ConsumerMember, current: CurrentAssignment) -> None:
        self._disown(member.member_id, member.current)
        member.current = current
        for owned in (current.assigned, current.pending):
            for topic_id, epochs in owned.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(epochs, member.member_id))

    def _disown(self, member_id: str, current: CurrentAssignment) -> None:
        for owned in (current.assigned, current.pending):
            for topic_id, epochs in owned.items():
                partitions = self.owners.get(topic_id)
                if partitions is not None:
                    for partition in epochs:
                        if partitions.get(partition) == member_id:
                            del partitions[partition]
                    if not partitions:
                        del self.owners[topic_id]


_REPLAYS: Final[dict[int, Callable[[ConsumerGroup, Any, Any], None]]] = {
    3: ConsumerGroup._replay_group,
    5: ConsumerGroup._replay_member,
    6: ConsumerGroup._replay_target_epoch,
    7: ConsumerGroup._replay_target,
    8: ConsumerGroup._replay_current,
    16: ConsumerGroup._replay_regex,
}


def _held(current: CurrentAssignment) -> Iterable[Mapping[int, int]]:
    if current.member_epoch == STATIC_LEAVING_EPOCH:
        return ()
    return (*current.assigned.values(), *current.pending.values())


def _assignment_epochs(current: CurrentAssignment, partitions: CommittedPartitions) -> Iterator[int]:
    for _, topic_id, partition in partitions():
        epoch = current.assignment_epoch(topic_id, partition)
        yield NOT_ASSIGNED if epoch is None else epoch


def _count(counts: dict[Any, int], name: object, by: int) -> None:
    total = counts.get(name, 0) + by
    if total:
        counts[name] = total
    else:
        counts.pop(name, None)
