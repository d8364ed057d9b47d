"""A streams group (KIP-1071): topology, members, epochs, target assignment, and what a logged record makes of it.

The life of a group
-------------------
    Empty          no members
    NotReady       the topology has not been found to fit the topics: see streams_topology.py
    Assigning      the group epoch has moved on, and the target assignment has not followed yet
    Reconciling    there is a target for the group epoch; some member is not there yet
    Stable         every member has what it shall have

Group, assignment and member epochs are those of consumer.py, with tasks in place of partitions; here too

    assignment epoch of a task <= member epoch <= assignment epoch <= group epoch    (`broken` says where it is not)

but for a member that has given back tasks and has to give back more: it is one epoch further on each time.

What is logged and what is not
------------------------------
Everything is logged, but for the timers and for what is marked volatile below. Only `replay` changes the logged part.
The records of one group may be replayed in another order than they were written once the log was cleaned, so nothing
is checked while replaying. Volatile in Kafka too: who asked for a shutdown, and the epoch of the endpoints; clients
that see the latter at 0 again are sent the endpoints once more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.groups.common.assignment_epoch_checks import NOT_ASSIGNED, CommittedPartitions, Committer
from broker.coordinator.groups.common.epoch_order import epoch_inconsistencies
from broker.coordinator.groups.streams.member import (
    DELETED_ASSIGNMENT,
    CurrentAssignment,
    MemberMetadata,
    StreamsMember,
    TasksTuple,
    TasksTupleWithEpochs,
)
from broker.coordinator.groups.streams.records import (
    current_assignment_of,
    group_tombstones,
    member_metadata_of,
    tasks_of,
)
from broker.coordinator.groups.streams.topology import source_topics
from broker.coordinator.result import Record

if TYPE_CHECKING:
    from broker.coordinator.groups.streams.topology import ConfiguredTopology
    from protocol.messages.streams_group_records import StreamsGroupTopologyValue

FIRST_EPOCH: Final = 1


class State(Enum):
    """The states of a streams group; the value is what clients are told."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsGroup:
    """One group of the streams protocol; see the module's text."""

    __slots__ = (
        "active",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "configured",
        "copies",
        "endpoint_epoch",
        "group_epoch",
        "group_id",
        "last_assignment_configs",
        "members",
        "metadata_hash",
        "metadata_seen",
        "pending_target",
        "shutdown_member_id",
        "sources",
        "target",
        "topology",
        "validated_topology_epoch",
        "was_inconsistent",
    )

    group_type: Final = "streams"
    protocol_type: Final = "streams"
    pending_joins: Final[frozenset[str]] = frozenset()

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.last_assignment_configs: dict[str, str] = {}
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.topology: StreamsGroupTopologyValue | None = None
        self.members: dict[str, StreamsMember] = {}
        self.target: dict[str, TasksTuple] = {}  # by member id
        # derived by replay
        self.sources: Mapping[str, str] = {}  # topic -> the subtopology that reads it
        self.active: dict[tuple[str, int], str] = {}  # task -> the process that has it
        self.copies: dict[tuple[str, int], set[str]] = {}  # task -> processes that have it as standby or warm-up
        # volatile
        self.configured: ConfiguredTopology | None = None
        self.metadata_seen: tuple[Any, int] | None = None  # the cluster metadata that `configured` follows from
        self.endpoint_epoch = 0
        self.shutdown_member_id: str | None = None
        self.pending_target: Any = None  # a target that is being computed in the background
        self.was_inconsistent = False  # as it was loaded; served all the same

    # -- queries -------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        if not self.members:
            return State.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return State.NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return State.ASSIGNING
        epoch = self.assignment_epoch
        if all(m.current.is_reconciled_to(epoch) for m in self.members.values()):
            return State.STABLE
        return State.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def delay_timer(self) -> tuple[str, str]:
        """Runs before the first assignment."""
        return "delay", self.group_id

    def uses_consumer_protocol(self) -> bool:
        """Whether the topics in use are known: they are, from the topology."""
        return True

    def is_subscribed(self, topic: str) -> bool:
        """Whether a topic's offsets are in use."""
        return bool(self.members) and topic in self.sources

    def active_process(self, subtopology_id: str, partition: int) -> str | None:
        """The process that has a task as active, or has not said yet that it is given back."""
        return self.active.get((subtopology_id, partition))

    def has_copy(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        """Whether a process has a task as standby or warm-up."""
        return process_id in self.copies.get((subtopology_id, partition), ())

    def committer(self, member_id: str | None, partitions: CommittedPartitions | None = None) -> Committer | None:
        """What decides over the commits of a member (see fencing.py); the partitions are looked at only if they matter.

        A partition belongs to the task of its number in the subtopology that reads its topic; standbys do not count.
        """
        member = self.members.get(member_id) if member_id is not None else None
        if member is None:
            return None
        current = member.current
        epochs = None if partitions is None else _assignment_epochs(current, self.sources, partitions)
        return Committer(current.member_epoch, epochs, revocation_epoch=current.revocation_epoch)

    def tombstones(self) -> list[Record]:
        """What deletes the group."""
        return group_tombstones(self.group_id, self.members)

    def inconsistencies(self) -> list[str]:
        """Where the order of the epochs does not hold; nothing, but for a log that was tampered with."""
        found = self.epoch_inconsistencies(self.members)
        owned: dict[tuple[str, int], str] = {}
        for member_id, member in self.members.items():
            for tasks in (member.current.assigned.active, member.current.pending.active):
                for subtopology_id, epochs in tasks.items():
                    for partition in epochs:
                        other = owned.setdefault((subtopology_id, partition), member_id)
                        if other != member_id:
                            found.append(f"task {subtopology_id}_{partition} is both {other}'s and {member_id}'s")
        return found

    def epoch_inconsistencies(self, member_ids: Collection[str]) -> list[str]:
        """The same for what has been touched; see epoch_order.py."""
        return epoch_inconsistencies(self, member_ids, _held, "tasks")

    def facts(self) -> tuple[object, ...]:
        """What the log says of the group."""
        return (
            self.group_epoch,
            self.metadata_hash,
            self.validated_topology_epoch,
            dict(self.last_assignment_configs),
            self.assignment_epoch,
            self.assignment_timestamp_ms,
            self.topology,
            {m.member_id: (m.member_metadata, m.current) for m in self.members.values()},
            dict(self.target),
            dict(self.active),
            {task: set(processes) for task, processes in self.copies.items()},
        )

    # -- replay --------------------------------------------------------------------------------------------------

    def replay(self, key: Any, value: Any) -> None:
        """Apply one record but the group's own tombstone, which is for whoever holds the group."""
        _REPLAYS[key.API_KEY](self, key, value)

    def _replay_group(self, key: Any, value: Any) -> None:
        self.group_epoch = value.epoch
        self.metadata_hash = value.metadata_hash
        self.validated_topology_epoch = value.validated_topology_epoch
        self.last_assignment_configs = {c.key: c.value for c in value.last_assignment_configs or ()}

    def _replay_topology(self, key: Any, value: Any) -> None:
        self.topology = value
        self.sources = {} if value is None else source_topics(value)
        self.configured = self.metadata_seen = None

    def _replay_member(self, key: Any, value: Any) -> None:
        if value is not None:
            self._put(self._member(key.member_id), member_metadata=member_metadata_of(value))
            return
        member = self.members.pop(key.member_id, None)
        if member is not None:
            self._disown(member)
        if not self.members:
            self.shutdown_member_id = None

    def _replay_target_epoch(self, key: Any, value: Any) -> None:
        self.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _replay_target(self, key: Any, value: Any) -> None:
        if value is None:
            self.target.pop(key.member_id, None)
        else:
            self.target[key.member_id] = tasks_of(value)

    def _replay_current(self, key: Any, value: Any) -> None:
        if value is not None:
            self._put(self._member(key.member_id), current=current_assignment_of(value))
        elif key.member_id in self.members:
            self._put(self.members[key.member_id], current=DELETED_ASSIGNMENT)

    def _member(self, member_id: str) -> StreamsMember:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = StreamsMember(self.group_id, member_id)
        return member

    def _put(
        self,
        member: StreamsMember,
        member_metadata: MemberMetadata | None = None,
        current: CurrentAssignment | None = None,
    ) -> None:
        self._disown(member)
        member.member_metadata = member.member_metadata if member_metadata is None else member_metadata
        member.current = member.current if current is None else current
        process_id = member.member_metadata.process_id
        for held in (member.current.assigned, member.current.pending):
            for subtopology_id, epochs in held.active.items():
                self.active.update(((subtopology_id, p), process_id) for p in epochs)
            for task in _copies(held):
                self.copies.setdefault(task, set()).add(process_id)

    def _disown(self, member: StreamsMember) -> None:
        process_id = member.member_metadata.process_id
        for held in (member.current.assigned, member.current.pending):
            for subtopology_id, epochs in held.active.items():
                for p in epochs:
                    if self.active.get((subtopology_id, p)) == process_id:
                        del self.active[subtopology_id, p]
            for task in _copies(held):
                processes = self.copies.get(task)
                if processes is not None:
                    processes.discard(process_id)
                    if not processes:
                        del self.copies[task]


def _held(current: CurrentAssignment) -> Iterable[Mapping[int, int]]:
    return (*current.assigned.active.values(), *current.pending.active.values())


def _assignment_epochs(
    current: CurrentAssignment, sources: Mapping[str, str], partitions: CommittedPartitions
) -> Iterator[int]:
    for topic, _, partition in partitions():
        subtopology_id = sources.get(topic)
        epoch = None if subtopology_id is None else current.assignment_epoch(subtopology_id, partition)
        yield NOT_ASSIGNED if epoch is None else epoch


def _copies(held: TasksTupleWithEpochs) -> list[tuple[str, int]]:
    return [
        (subtopology_id, p)
        for tasks in (held.standby, held.warmup)
        for subtopology_id, partitions in tasks.items()
        for p in partitions
    ]


_REPLAYS: Final[dict[int, Callable[[StreamsGroup, Any, Any], None]]] = {
    17: StreamsGroup._replay_group,
    19: StreamsGroup._replay_member,
    20: StreamsGroup._replay_target_epoch,
    21: StreamsGroup._replay_target,
    22: StreamsGroup._replay_current,
    23: StreamsGroup._replay_topology,
}
