"""One member of a streams group: two values, each the content of one record, the tasks in them, and task offsets.

    MemberMetadata     StreamsGroupMemberMetadata: process, endpoint, topology epoch, client
    CurrentAssignment  StreamsGroupCurrentMemberAssignment: epochs, state, tasks
    TasksTuple         active tasks process records, standby tasks keep a copy of their state

A task is a subtopology and a partition number. Each active task of a member carries the epoch at which it was assigned
(KAFKA-19779); standby tasks commit nothing and need none. Warm-up tasks appear only in the records of other brokers:
this one, like Kafka 4.4, makes none. A handler makes new values and their records; replay puts them into the group.

Task offsets say how far a member has the state of tasks: sums of changelog offsets, as it reports them. They are kept
in memory only, and gone with the member or a restart, in Kafka too. Nothing checks whether the topology has the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker.coordinator.groups.common.member import LEAVING_EPOCH, ModernMember
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from protocol.messages.streams_group import StreamsGroupHeartbeatRequestTaskOffset as Reported

STABLE: Final = 1  # has everything its target says, at its epoch
UNREVOKED_TASKS: Final = 2  # has to give tasks back first, and stays at its epoch until it has
UNRELEASED_TASKS: Final = 3  # is at the newest epoch, but other members still have some of its tasks
UNKNOWN: Final = 127  # a state that a newer broker has logged

TasksBySubtopology: TypeAlias = Mapping[str, frozenset[int]]  # subtopology -> tasks
EpochsBySubtopology: TypeAlias = Mapping[str, Mapping[int, int]]  # subtopology -> task -> assignment epoch

NO_TASKS: Final[Mapping[str, frozenset[int]]] = {}
NO_ACTIVE_TASKS: Final[Mapping[str, Mapping[int, int]]] = {}
NO_EPOCHS: Final[Mapping[int, int]] = {}
NONE_OF_IT: Final[frozenset[int]] = frozenset()


def each_task(tasks: TasksBySubtopology) -> list[tuple[str, int]]:
    """The tasks one by one."""
    return [(subtopology_id, p) for subtopology_id, partitions in tasks.items() for p in partitions]


class TasksTuple(NamedTuple):
    """The tasks that a member is to have, or reports that it has."""

    active: TasksBySubtopology = NO_TASKS
    standby: TasksBySubtopology = NO_TASKS
    warmup: TasksBySubtopology = NO_TASKS


class TasksTupleWithEpochs(NamedTuple):
    """The tasks that a member has."""

    active: EpochsBySubtopology = NO_ACTIVE_TASKS
    standby: TasksBySubtopology = NO_TASKS
    warmup: TasksBySubtopology = NO_TASKS

    def lists(self) -> Iterator[Mapping[str, Mapping[int, int] | frozenset[int]]]:
        """Active, standby and warm-up tasks."""
        yield self.active
        yield self.standby
        yield self.warmup


class Endpoint(NamedTuple):
    """Where other instances of the application query a member's state (interactive queries)."""

    host: str
    port: int


class MemberMetadata(NamedTuple):
    """What a member has told about itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()  # sorted

    @property
    def for_assignor(self) -> tuple[object, ...]:
        """What decides where tasks may go: a static member that comes back with the same does not move the group."""
        return self.topology_epoch, self.rack_id, self.client_tags, self.process_id


class CurrentAssignment(NamedTuple):
    """The epochs of a member, its state, and the tasks it has."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = STABLE
    assigned: TasksTupleWithEpochs = TasksTupleWithEpochs()
    pending: TasksTupleWithEpochs = TasksTupleWithEpochs()  # to be revoked, and not confirmed yet
    revocation_epoch: int = 0  # not 0 only with group.commit.fencing=revocation-epoch (see note_revocation)

    @property
    def assigned_epochs(self) -> EpochsBySubtopology:
        """Subtopology -> active task -> assignment epoch."""
        return self.assigned.active

    @property
    def pending_epochs(self) -> EpochsBySubtopology:
        """The same for what has to be revoked."""
        return self.pending.active

    def moved(
        self, member_epoch: int, state: int, assigned: TasksTupleWithEpochs, pending: TasksTupleWithEpochs
    ) -> CurrentAssignment:
        """The next assignment; the current epoch becomes the previous one, even if it stays the same."""
        return CurrentAssignment(member_epoch, self.member_epoch, state, assigned, pending, self.revocation_epoch)

    def assignment_epoch(self, subtopology_id: str, partition: int) -> int | None:
        """The epoch at which the active task was assigned to the member; None if it is not the member's."""
        epoch = self.assigned.active.get(subtopology_id, NO_EPOCHS).get(partition)
        return self.pending.active.get(subtopology_id, NO_EPOCHS).get(partition) if epoch is None else epoch

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has reached the target assignment of this epoch."""
        return self.state == STABLE and self.member_epoch == assignment_epoch


NOTHING: Final = TasksTupleWithEpochs()
NO_METADATA: Final = MemberMetadata()
FIRST_ASSIGNMENT: Final = CurrentAssignment()
DELETED_ASSIGNMENT: Final = CurrentAssignment(member_epoch=LEAVING_EPOCH, previous_member_epoch=LEAVING_EPOCH)


class StreamsMember(ModernMember):
    """A member of a streams group."""

    __slots__ = ()

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


# -- task offsets -----------------------------------------------------------------------------------------------------

OffsetByTask: TypeAlias = Mapping[tuple[str, int], int]  # (subtopology, partition) -> offset

NO_OFFSETS: Final[OffsetByTask] = {}


class TaskOffsets(NamedTuple):
    """What a member has reported: where its copies of the changelogs are, and where the changelogs end."""

    offsets: OffsetByTask = NO_OFFSETS
    end_offsets: OffsetByTask = NO_OFFSETS

    def updated(self, offsets: Sequence[Reported] | None, end_offsets: Sequence[Reported] | None) -> TaskOffsets:
        """These, with each list that is not null in place of the one before. Errors: INVALID_REQUEST: a task twice."""
        return TaskOffsets(
            self.offsets if offsets is None else _by_task(offsets),
            self.end_offsets if end_offsets is None else _by_task(end_offsets),
        )


NONE_REPORTED: Final = TaskOffsets()


def _by_task(reported: Sequence[Reported]) -> OffsetByTask:
    found: dict[tuple[str, int], int] = {}
    for each in reported:
        task = each.subtopology_id, each.partition
        if task in found:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} and partition "
                f"{each.partition}.",
            )
        found[task] = each.offset
    return found
