"""One member of a streams group: what it said of itself and the tasks it has, each as its own record says.

    MemberMetadata     StreamsGroupMemberMetadata: process, endpoint, topology epoch, who it is
    CurrentAssignment  StreamsGroupCurrentMemberAssignment: epochs, state, tasks
    TasksTuple    what a member has, or shall have: active ones work, standbys keep a copy of their state

A task is a subtopology and a partition number. Active tasks that a member has carry the epoch at which they came to it
(KAFKA-19779); standbys do not commit and need none. Warm-up tasks come from other brokers' records only: this one
makes none, as Kafka 4.3. All of these are values: a handler makes new ones, replay puts them into the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

STABLE: Final = 1  # has what it shall have, at its epoch
UNREVOKED_TASKS: Final = 2  # has to give tasks back first, and stays at its epoch until it has
UNRELEASED_TASKS: Final = 3  # is at the newest epoch, but others still have some of its tasks
UNKNOWN: Final = 127  # a state of a broker to come

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1  # sent by a member that goes; also the epoch of one whose assignment is deleted

TasksBySubtopology: TypeAlias = Mapping[str, frozenset[int]]  # subtopology -> tasks
EpochsBySubtopology: TypeAlias = Mapping[str, Mapping[int, int]]  # subtopology -> task -> assignment epoch

NO_TASKS: Final[Mapping[str, frozenset[int]]] = {}
NO_EPOCHS: Final[Mapping[int, int]] = {}
NONE_OF_IT: Final[frozenset[int]] = frozenset()


class TasksTuple(NamedTuple):
    """What a member shall have, or says it has."""

    active: TasksBySubtopology = NO_TASKS
    standby: TasksBySubtopology = NO_TASKS
    warmup: TasksBySubtopology = NO_TASKS


class TasksTupleWithEpochs(NamedTuple):
    """What a member has."""

    active: EpochsBySubtopology = {}  # noqa: RUF012  # never changed
    standby: TasksBySubtopology = NO_TASKS
    warmup: TasksBySubtopology = NO_TASKS

    def lists(self) -> Iterator[Mapping[str, Mapping[int, int] | frozenset[int]]]:
        """The three lists, to be looked at alike."""
        yield self.active
        yield self.standby
        yield self.warmup


class Endpoint(NamedTuple):
    """Where other instances ask for a member's state (interactive queries)."""

    host: str
    port: int


class MemberMetadata(NamedTuple):
    """What a member said of itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()  # sorted


class CurrentAssignment(NamedTuple):
    """What a member has."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = STABLE
    assigned: TasksTupleWithEpochs = TasksTupleWithEpochs()
    pending: TasksTupleWithEpochs = (
        TasksTupleWithEpochs()
    )  # to be revoked: the member has been told, and has not said yet that it is done
    revocation_epoch: int = 0  # of KAFKA-19779's earlier design; kept only under group.commit.fencing=revocation-epoch

    def moved(
        self, member_epoch: int, state: int, assigned: TasksTupleWithEpochs, pending: TasksTupleWithEpochs
    ) -> CurrentAssignment:
        """The next step; the epoch left becomes the previous one, also when it is the same."""
        return CurrentAssignment(member_epoch, self.member_epoch, state, assigned, pending, self.revocation_epoch)

    def assignment_epoch(self, subtopology_id: str, partition: int) -> int | None:
        """At which epoch an active task came to the member; None when it is not the member's."""
        epoch = self.assigned.active.get(subtopology_id, NO_EPOCHS).get(partition)
        return self.pending.active.get(subtopology_id, NO_EPOCHS).get(partition) if epoch is None else epoch

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether there is nothing left to do for a target assignment."""
        return self.state == STABLE and self.member_epoch == assignment_epoch


NOTHING: Final = TasksTupleWithEpochs()
NO_METADATA: Final = MemberMetadata()
FIRST_ASSIGNMENT: Final = CurrentAssignment()
DELETED_ASSIGNMENT: Final = CurrentAssignment(member_epoch=LEAVING_EPOCH, previous_member_epoch=LEAVING_EPOCH)


class StreamsMember:
    """A member; replay replaces its halves."""

    __slots__ = ("current", "member_id", "member_metadata", "rebalance_timer", "session_timer")

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

    def timers(self) -> tuple[tuple[str, str, str], ...]:
        """All that may run for it."""
        return self.session_timer, self.rebalance_timer
