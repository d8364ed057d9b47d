"""One member of a consumer group: two values, each the content of one record.

    MemberMetadata     ConsumerGroupMemberMetadata: subscription, timeouts, client
    CurrentAssignment  ConsumerGroupCurrentMemberAssignment: epochs, state, partitions

A handler makes new values and their records; replaying a record puts the value into the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple, TypeAlias

from broker.coordinator.groups.common.member import LEAVING_EPOCH, ModernMember, Timer

STABLE: Final = 0  # has everything its target says, at its epoch
UNREVOKED_PARTITIONS: Final = 1  # has to give partitions back first, and stays at its epoch until it has
UNRELEASED_PARTITIONS: Final = 2  # is at the newest epoch, but other members still have some of its partitions
UNKNOWN: Final = 127  # a state that a newer broker has logged

PartitionEpochs: TypeAlias = Mapping[bytes, Mapping[int, int]]  # topic id -> partition -> assignment epoch
Subscription: TypeAlias = tuple[frozenset[str], str]  # topic names, regular expression ("": none)

NOTHING: Final[Mapping[bytes, Mapping[int, int]]] = {}
NO_PARTITIONS: Final[Mapping[int, int]] = {}


class ClassicMetadata(NamedTuple):
    """What a member of the classic protocol has besides: it takes part by JoinGroup, SyncGroup and Heartbeat."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class MemberMetadata(NamedTuple):
    """What a member has told about itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None

    @property
    def subscription(self) -> Subscription:
        """Two members with equal subscriptions get the same topics."""
        return self.topic_names, self.topic_regex


class CurrentAssignment(NamedTuple):
    """The epochs of a member, its state, and the partitions it has."""

    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: int = STABLE
    assigned: PartitionEpochs = NOTHING
    pending: PartitionEpochs = NOTHING  # to be revoked: the member knows, and has not confirmed it yet
    revocation_epoch: int = 0  # not 0 only with group.commit.fencing=revocation-epoch (see note_revocation)

    @property
    def assigned_epochs(self) -> PartitionEpochs:
        """Topic id -> partition -> assignment epoch."""
        return self.assigned

    @property
    def pending_epochs(self) -> PartitionEpochs:
        """The same for what has to be revoked."""
        return self.pending

    def moved(
        self, member_epoch: int, state: int, assigned: PartitionEpochs, pending: PartitionEpochs
    ) -> CurrentAssignment:
        """The next assignment; the current epoch becomes the previous one, even if it stays the same."""
        return CurrentAssignment(member_epoch, self.member_epoch, state, assigned, pending, self.revocation_epoch)

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch at which the partition was assigned to the member; None if it is not the member's."""
        epoch = self.assigned.get(topic_id, NO_PARTITIONS).get(partition)
        return self.pending.get(topic_id, NO_PARTITIONS).get(partition) if epoch is None else epoch

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has reached the target assignment of this epoch."""
        return self.state == STABLE and self.member_epoch == assignment_epoch


DELETED_ASSIGNMENT: Final = CurrentAssignment(member_epoch=LEAVING_EPOCH, previous_member_epoch=LEAVING_EPOCH)
NO_METADATA: Final = MemberMetadata()
FIRST_ASSIGNMENT: Final = CurrentAssignment()


class ConsumerMember(ModernMember):
    """A member of a consumer group, of either protocol."""

    __slots__ = ("is_told_to_rejoin", "join_timer", "sync_timer")

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "is_told_to_rejoin": "set while the join timer runs; timers start afresh after loading",
    }

    current: CurrentAssignment
    member_metadata: MemberMetadata

    def __init__(
        self,
        group_id: str,
        member_id: str,
        member_metadata: MemberMetadata = NO_METADATA,
        current: CurrentAssignment = FIRST_ASSIGNMENT,
    ) -> None:
        super().__init__(group_id, member_id, member_metadata, current)
        self.join_timer: Timer = ("rejoin", group_id, member_id)  # members of the classic protocol only
        self.sync_timer: Timer = ("resync", group_id, member_id)
        self.is_told_to_rejoin = False

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether the member takes part by JoinGroup, SyncGroup and Heartbeat."""
        return self.member_metadata.classic is not None

    def timers(self) -> tuple[Timer, ...]:
        """Every timer that may run for the member."""
        return self.session_timer, self.rebalance_timer, self.join_timer, self.sync_timer
