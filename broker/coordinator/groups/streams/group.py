"""A streams group (KIP-1071): its topology, which processes have which tasks, and the replay of its records.

Epochs, states and what is logged: common/group.py, with tasks in place of partitions. A member that has revoked tasks
and has to revoke more moves one epoch further each time. Kafka does not log who asked for a shutdown, task offsets and
the epoch of the endpoints either; a client that sees the latter back at 0 is sent the endpoints again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from broker.coordinator.groups.common.assignment_epoch_checks import NOT_ASSIGNED, CommittedPartitions
from broker.coordinator.groups.common.group import ModernGroup
from broker.coordinator.groups.streams.member import (
    DELETED_ASSIGNMENT,
    CurrentAssignment,
    MemberMetadata,
    StreamsMember,
    TaskOffsets,
    TasksBySubtopology,
    TasksTuple,
    TasksTupleWithEpochs,
    each_task,
)
from broker.coordinator.groups.streams.records import (
    current_assignment_of,
    group_tombstones,
    member_metadata_of,
    tasks_of,
)
from broker.coordinator.groups.streams.topology import source_topics
from broker.turn.decision import Record

if TYPE_CHECKING:
    from broker.coordinator.groups.streams.topology import ConfiguredTopology
    from protocol.messages.streams_group_records import StreamsGroupTopologyValue


class StreamsGroup(ModernGroup):
    """One group of the streams protocol."""

    __slots__ = (
        "active",
        "configured",
        "endpoint_epoch",
        "last_assignment_configs",
        "shutdown_member_id",
        "sources",
        "standbys",
        "static_members",
        "task_offsets",
        "topology",
        "validated_topology_epoch",
        "warmups",
    )

    VOLATILE: ClassVar[Mapping[str, str]] = {
        **ModernGroup.VOLATILE,
        "configured": "how the topology fits the topics; computed again from both",
        "endpoint_epoch": "counts from 0 after a restart, in Kafka too",
        "shutdown_member_id": "forgotten at a restart, in Kafka too",
        "task_offsets": "the same; members report them again",
    }

    group_type = "streams"
    protocol_type = "streams"
    unit = "task"
    member_class = StreamsMember
    deleted_assignment = DELETED_ASSIGNMENT
    read_metadata = staticmethod(member_metadata_of)
    read_target = staticmethod(tasks_of)
    read_current = staticmethod(current_assignment_of)

    members: dict[str, StreamsMember]
    target: dict[str, TasksTuple]

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = 0
        self.last_assignment_configs: dict[str, str] = {}
        self.topology: StreamsGroupTopologyValue | None = None
        # derived from topology and members
        self.sources: Mapping[str, str] = {}  # topic -> the subtopology that reads it
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.active: dict[tuple[str, int], str] = {}  # task -> the process that has it as active
        self.standbys: dict[tuple[str, int], set[str]] = {}  # task -> processes that have it as standby
        self.warmups: dict[tuple[str, int], set[str]] = {}  # the same for warm-up
        # volatile
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        self.shutdown_member_id: str | None = None
        self.task_offsets: dict[str, TaskOffsets] = {}  # by member id

    # -- queries -------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether the topology fits the topics, as of the last group epoch."""
        return self.topology is not None and self.topology.epoch == self.validated_topology_epoch

    @property
    def delay_timer(self) -> tuple[str, str]:
        """The timer that delays the first assignment."""
        return "delay", self.group_id

    def uses_consumer_protocol(self) -> bool:
        """Whether the subscribed topics are known: the topology names them."""
        return True

    def is_subscribed(self, topic: str) -> bool:
        """Whether a topic's offsets are in use."""
        return bool(self.members) and topic in self.sources

    def static_member(self, instance_id: str | None) -> StreamsMember | None:
        """The member that has an instance id."""
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members[member_id] if member_id is not None else None

    def active_process(self, subtopology_id: str, partition: int) -> str | None:
        """The process that has a task as active, or has not confirmed that it gave it back."""
        return self.active.get((subtopology_id, partition))

    def has_standby(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        """Whether a process has a task as standby."""
        return process_id in self.standbys.get((subtopology_id, partition), ())

    def has_warmup(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        """Whether a process has a task as warm-up."""
        return process_id in self.warmups.get((subtopology_id, partition), ())

    def assignment_epochs(self, current: CurrentAssignment, partitions: CommittedPartitions) -> Iterator[int]:
        """The assignment epoch of each committed partition; NOT_ASSIGNED for one that is not the member's.

        A partition belongs to the active task of its number, in the subtopology that reads its topic.
        """
        for topic, _, partition in partitions():
            subtopology_id = self.sources.get(topic)
            epoch = None if subtopology_id is None else current.assignment_epoch(subtopology_id, partition)
            yield NOT_ASSIGNED if epoch is None else epoch

    def tombstones(self) -> list[Record]:
        """The records that delete the group, but for its offsets."""
        return group_tombstones(self.group_id, self.members)

    # -- replay --------------------------------------------------------------------------------------------------

    def replay_group(self, key: Any, value: Any) -> None:
        """Replay StreamsGroupMetadata."""
        self.group_epoch = value.epoch
        self.metadata_hash = value.metadata_hash
        self.validated_topology_epoch = value.validated_topology_epoch
        self.last_assignment_configs = {c.key: c.value for c in value.last_assignment_configs or ()}

    def replay_topology(self, key: Any, value: Any) -> None:
        """Replay StreamsGroupTopology."""
        self.topology = value
        self.sources = {} if value is None else source_topics(value)
        self.configured = self.metadata_seen = None

    def _replay_removed(self, member: StreamsMember) -> None:
        self._replay_disown(member)
        self._replay_release(member)
        self.task_offsets.pop(member.member_id, None)
        if not self.members:
            self.shutdown_member_id = None

    def _replay_metadata(self, member: StreamsMember, member_metadata: MemberMetadata) -> None:
        self._replay_disown(member)
        self._replay_release(member)
        member.member_metadata = member_metadata
        if member_metadata.instance_id is not None:
            self.static_members[member_metadata.instance_id] = member.member_id
        self._replay_own(member)

    def _replay_release(self, member: StreamsMember) -> None:
        """The member no longer has its instance id, unless another one has it already."""
        instance_id = member.member_metadata.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _replay_assignment(self, member: StreamsMember, current: CurrentAssignment) -> None:
        self._replay_disown(member)
        member.current = current
        self._replay_own(member)

    def _replay_own(self, member: StreamsMember) -> None:
        process_id = member.member_metadata.process_id
        for tasks in (member.current.assigned, member.current.pending):
            for subtopology_id, epochs in tasks.active.items():
                self.active.update(((subtopology_id, p), process_id) for p in epochs)
            for copies, held in self._copies(tasks):
                for task in each_task(held):
                    copies.setdefault(task, set()).add(process_id)

    def _replay_disown(self, member: StreamsMember) -> None:
        process_id = member.member_metadata.process_id
        for tasks in (member.current.assigned, member.current.pending):
            for subtopology_id, epochs in tasks.active.items():
                for p in epochs:
                    if self.active.get((subtopology_id, p)) == process_id:
                        del self.active[subtopology_id, p]
            for copies, held in self._copies(tasks):
                for task in each_task(held):
                    processes = copies.get(task)
                    if processes is not None:
                        processes.discard(process_id)
                        if not processes:
                            del copies[task]

    def _copies(
        self, tasks: TasksTupleWithEpochs
    ) -> tuple[tuple[dict[tuple[str, int], set[str]], TasksBySubtopology], ...]:
        return (self.standbys, tasks.standby), (self.warmups, tasks.warmup)

    REPLAYS: ClassVar[Mapping[int, Callable[[Any, Any, Any], None]]] = {
        17: replay_group,
        19: ModernGroup.replay_member,
        20: ModernGroup.replay_target_epoch,
        21: ModernGroup.replay_target,
        22: ModernGroup.replay_current,
        23: replay_topology,
    }
