"""The base of all groups but classic ones (Kafka's ModernGroup): epochs, members, target assignment, and their replay.

The three epochs
----------------
    group epoch        increases whenever the members, their subscriptions or the topics change
    assignment epoch   the group epoch that the target assignment was computed for
    member epoch       the assignment epoch that a member has reached; each member gets there at its own pace

    assignment epoch of a partition or task <= member epoch <= assignment epoch <= group epoch

`inconsistencies` says where this order does not hold. A static member that left for a moment has member epoch -2. A new
group starts with group epoch 1 and assignment epoch 1.

What is logged and what is not
------------------------------
Everything is logged but the slots in VOLATILE. Only methods named replay change the rest. A cleaned log may hold the
records of one group in another order than they were written, a member before its group for example: replay therefore
checks nothing; GroupMachine checks the epochs after each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

from broker.base.facts import facts
from broker.coordinator.groups.common.assignment_epoch_checks import CommittedPartitions, Committer
from broker.coordinator.groups.common.member import STATIC_LEAVING_EPOCH

FIRST_EPOCH: Final = 1
THE_GROUP: Final = ""  # stands for the group itself among member ids


class State(Enum):
    """The states of a consumer or streams group; the value is what clients see."""

    EMPTY = "Empty"  # no members
    NOT_READY = "NotReady"  # streams only: the topology does not fit the topics
    ASSIGNING = "Assigning"  # the group epoch has increased, and there is no target assignment for it yet
    RECONCILING = "Reconciling"  # there is a target for the group epoch; some member has not reached it
    STABLE = "Stable"  # every member has what its target says


class PendingTarget:
    """A target that is being computed step by step for a group epoch, and the members it is computed for."""

    __slots__ = ("epoch", "instance_ids", "members", "steps")

    def __init__(
        self,
        epoch: int,
        steps: Generator[None, None, Any],
        members: Sequence[str] = (),
        instance_ids: Mapping[str, str] | None = None,
    ) -> None:
        self.epoch = epoch
        self.steps = steps
        self.members = members
        self.instance_ids = instance_ids or {}  # by member id


class ModernGroup:
    """A group whose members the broker assigns."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "members",
        "metadata_hash",
        "metadata_seen",
        "pending_target",
        "target",
        "was_inconsistent",
    )

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "metadata_seen": "remembers which cluster metadata was already compared with metadata_hash",
        "pending_target": "a target that is being computed; started again after a restart",
        "was_inconsistent": "what loading found; checked again at every load",
    }
    REPLAYS: ClassVar[Mapping[int, Callable[[Any, Any, Any], None]]]  # record type -> the method that replays it

    group_type: ClassVar[str]
    protocol_type: ClassVar[str]
    unit: ClassVar[str]  # of what is assigned: "partition" or "task"
    has_offsets: ClassVar[bool] = True  # whether offsets are committed; a share group keeps its position elsewhere
    pending_joins: Final[frozenset[str]] = frozenset()  # member ids are never given out before the member is in

    members: dict[str, Any]
    target: dict[str, Any]

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members = {}
        self.target = {}  # by member id
        self.metadata_seen: tuple[Any, int] | None = None  # the cluster metadata, and its version
        self.pending_target: PendingTarget | None = None
        self.was_inconsistent = False  # when it was loaded; the group is served all the same

    # -- what a kind of group defines ------------------------------------------------------------------------------

    member_class: ClassVar[type[Any]]
    deleted_assignment: ClassVar[Any]  # the current assignment of a member whose record was deleted

    read_metadata: ClassVar[staticmethod[[Any], Any]]  # a MemberMetadata record as a value
    read_target: ClassVar[staticmethod[[Any], Any]]  # a TargetAssignmentMember record as a value
    read_current: ClassVar[staticmethod[[Any], Any]]  # a CurrentMemberAssignment record as a value

    def assignment_epochs(self, current: Any, partitions: CommittedPartitions) -> Iterator[int]:
        """The assignment epoch of each committed partition; NOT_ASSIGNED for one that is not the member's."""
        raise NotImplementedError

    # -- queries -------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether members can be assigned."""
        return True

    @property
    def state(self) -> State:
        """The state as clients see it; computed, nothing logs it."""
        if not self.members:
            return State.EMPTY
        if not self.is_ready:
            return State.NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return State.ASSIGNING
        epoch = self.assignment_epoch
        if all(m.current.is_reconciled_to(epoch) for m in self.members.values()):
            return State.STABLE
        return State.RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    def uses_consumer_protocol(self) -> bool:
        """Whether the subscribed topics are known; they always are."""
        return True

    def committer(self, member_id: str | None, partitions: CommittedPartitions | None = None) -> Committer | None:
        """What decides whether a member may commit (see assignment_epoch_checks.py); None for an unknown member.

        `partitions` is called only if the answer depends on their assignment epochs.
        """
        member = self.members.get(member_id) if member_id is not None else None
        if member is None:
            return None
        current = member.current
        return Committer(
            current.member_epoch,
            None if partitions is None else self.assignment_epochs(current, partitions),
            is_classic=member.uses_classic_protocol,
            revocation_epoch=current.revocation_epoch,
        )

    def inconsistencies(self) -> list[str]:
        """Where the group contradicts itself; nothing, unless the log was edited."""
        found = self.epoch_inconsistencies(self.members)
        owned: dict[tuple[object, int], str] = {}
        for member_id, member in self.members.items():
            for part in (member.current.assigned_epochs, member.current.pending_epochs):
                for key, epochs in part.items():
                    for number in epochs:
                        other = owned.setdefault((key, number), member_id)
                        if other != member_id:
                            found.append(f"{self.unit} {number} of {key!r} belongs to both {other} and {member_id}")
        return found

    def epoch_inconsistencies(self, member_ids: Collection[str]) -> list[str]:
        """Where the order of the epochs does not hold for these members; ids of former members are skipped.

        With THE_GROUP among the ids, all members are compared with the group's epochs, but not what they hold. This
        runs after every batch, and looks at no more than what its records may have changed.
        """
        found = []
        limit, members = self.assignment_epoch, self.members
        if limit > self.group_epoch:
            found.append(f"assignment epoch {limit} is above group epoch {self.group_epoch}")
        touched = [members[m] for m in member_ids if m in members]
        for member in members.values() if THE_GROUP in member_ids else touched:
            epoch = member.current.member_epoch
            if epoch > limit:
                found.append(f"member {member.member_id} is at {epoch}, above {limit}")
        for member in touched:
            current = member.current
            epoch = current.member_epoch
            if epoch != STATIC_LEAVING_EPOCH:
                for part in (current.assigned_epochs, current.pending_epochs):
                    for epochs in part.values():
                        if max(epochs.values(), default=0) > epoch:
                            found.append(f"a member at {epoch} has {self.unit}s assigned at {epochs}")
        return found

    def facts(self) -> dict[str, object]:
        """All that replaying the log must reproduce."""
        return facts(self)

    # -- replay --------------------------------------------------------------------------------------------------

    def replay(self, key: Any, value: Any) -> None:
        """Apply one record, except for the group's own tombstone: that one is for whoever holds the group."""
        self.REPLAYS[key.API_KEY](self, key, value)

    def replay_target_epoch(self, key: Any, value: Any) -> None:
        """Replay TargetAssignmentMetadata."""
        self.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def replay_member(self, key: Any, value: Any) -> None:
        """Replay MemberMetadata."""
        if value is not None:
            self._replay_metadata(self._replay_added(key.member_id), self.read_metadata(value))
            return
        member = self.members.pop(key.member_id, None)
        if member is not None:
            self._replay_removed(member)

    def replay_target(self, key: Any, value: Any) -> None:
        """Replay TargetAssignmentMember."""
        if value is None:
            self.target.pop(key.member_id, None)
        else:
            self.target[key.member_id] = self.read_target(value)

    def replay_current(self, key: Any, value: Any) -> None:
        """Replay CurrentMemberAssignment."""
        if value is not None:
            self._replay_assignment(self._replay_added(key.member_id), self.read_current(value))
        elif key.member_id in self.members:
            self._replay_assignment(self.members[key.member_id], self.deleted_assignment)

    def _replay_added(self, member_id: str) -> Any:
        """The member of that id; made if this is the first record of it."""
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = self.member_class(self.group_id, member_id)
        return member

    def _replay_removed(self, member: Any) -> None:
        """A member is gone: take it out of what is derived from the members."""
        raise NotImplementedError

    def _replay_metadata(self, member: Any, member_metadata: Any) -> None:
        """Give a member other metadata, and what is derived from it."""
        raise NotImplementedError

    def _replay_assignment(self, member: Any, current: Any) -> None:
        """Give a member another current assignment, and what is derived from it."""
        raise NotImplementedError
