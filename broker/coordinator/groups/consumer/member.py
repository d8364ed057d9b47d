"""One member of a consumer group: what it said of itself and what it has, each as its own record says.

    MemberMetadata     ConsumerGroupMemberMetadata: subscription, time-outs, who it is
    CurrentAssignment  ConsumerGroupCurrentMemberAssignment: epochs, state, partitions

Both are values: a handler makes new ones, the record of one is replayed to put it into the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

STABLE: Final = 0  # has what it shall have, at its epoch
UNREVOKED_PARTITIONS: Final = 1  # has to give partitions back first, and stays at its epoch until it has
UNRELEASED_PARTITIONS: Final = 2  # is at the newest epoch, but others still have some of its partitions
UNKNOWN: Final = 127  # a state of a broker to come

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1  # sent by a member that goes; also the epoch of one whose assignment is deleted
STATIC_LEAVING_EPOCH: Final = -2  # a static member that will be back

PartitionEpochs: TypeAlias = Mapping[bytes, Mapping[int, int]]  # topic id -> partition -> assignment epoch
Subscription: TypeAlias = tuple[frozenset[str], str]  # topic names, regular expression ("": none)

NOTHING: Final[Mapping[bytes, Mapping[int, int]]] = {}
NO_PARTITIONS: Final[Mapping[int, int]] = {}


class ClassicMetadata(NamedTuple):
    """What a member of the classic protocol said beside: it takes part by JoinGroup, SyncGroup and Heartbeat."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class MemberMetadata(NamedTuple):
    """What a member said of itself."""

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
        """What makes two members want the same topics."""
        return self.topic_names, self.topic_regex


class CurrentAssignment(NamedTuple):
    """What a member has."""

    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: int = STABLE
    assigned: PartitionEpochs = NOTHING
    pending: PartitionEpochs = NOTHING  # to be revoked: the member has been told, and has not said yet that it is done
    revocation_epoch: int = 0  # of KAFKA-19779's earlier design; kept only under group.commit.fencing=revocation-epoch

    def moved(
        self, member_epoch: int, state: int, assigned: PartitionEpochs, pending: PartitionEpochs
    ) -> CurrentAssignment:
        """The next step; the epoch left becomes the previous one, also when it is the same."""
        return CurrentAssignment(member_epoch, self.member_epoch, state, assigned, pending, self.revocation_epoch)

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """At which epoch a partition came to the member; None when it is not the member's."""
        epoch = self.assigned.get(topic_id, NO_PARTITIONS).get(partition)
        return self.pending.get(topic_id, NO_PARTITIONS).get(partition) if epoch is None else epoch

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether there is nothing left to do for a target assignment."""
        return self.state == STABLE and self.member_epoch == assignment_epoch


DELETED_ASSIGNMENT: Final = CurrentAssignment(member_epoch=LEAVING_EPOCH, previous_member_epoch=LEAVING_EPOCH)
NO_METADATA: Final = MemberMetadata()
FIRST_ASSIGNMENT: Final = CurrentAssignment()


class ConsumerMember:
    """A member; replay replaces its halves."""

    __slots__ = (
        "current",
        "is_told_to_rejoin",
        "join_timer",
        "member_id",
        "member_metadata",
        "rebalance_timer",
        "session_timer",
        "sync_timer",
    )

    def __init__(
        self,
        group_id: str,
        member_id: str,
        member_metadata: MemberMetadata = NO_METADATA,
        current: CurrentAssignment = FIRST_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.member_metadata = member_metadata
        self.current = current
        self.session_timer = ("session", group_id, member_id)
        self.rebalance_timer = ("rebalance", group_id, member_id)
        self.join_timer = ("rejoin", group_id, member_id)  # members of the classic protocol only
        self.sync_timer = ("resync", group_id, member_id)
        self.is_told_to_rejoin = False  # volatile: it was told to rejoin, and its join timer runs

    @property
    def uses_classic_protocol(self) -> bool:
        return self.member_metadata.classic is not None

    def timers(self) -> tuple[tuple[str, str, str], ...]:
        """All that may run for it."""
        return self.session_timer, self.rebalance_timer, self.join_timer, self.sync_timer
