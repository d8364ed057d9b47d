"""The sticky assignor of streams groups: which member gets which active and standby tasks.

    active    1. the previous owner, while it is below its share
              2. who has some of the state already, if it is below its share
              3. the least loaded process, and in it the least loaded member
    standby   never on a process that has the task: the copy would be useless there, and share its directory
              1. the previous owner, 2. who has some of the state, while below the share of all tasks
              3. the least loaded process; if no process is left there are fewer standbys

Some of the state have the previous standbys, and after them all who reported an offset for the task, each with more
offset first. The first of these is taken, or a later one if its process and it itself have less to do.

A member's share is tasks divided by members, rounded up; once a member has its share, the share of the others is
computed from what is left. Between processes of equal load the one with the least loaded member comes first, then the
one with the first member id: the result depends on the arguments alone. (In Kafka it depends on the order of a heap.)
Source: KIP-1071; Kafka's StickyTaskAssignor.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from broker.coordinator.groups.assignors.spec import run
from broker.coordinator.groups.streams.member import NO_OFFSETS, TasksBySubtopology, TasksTuple, each_task

Task: TypeAlias = tuple[str, int]  # subtopology, partition
Targets: TypeAlias = dict[str, TasksTuple]  # by member id
Steps: TypeAlias = Generator[None, None, Targets]  # returns the targets; the event loop may run between two steps

TASKS_A_SLICE: Final = 1_000  # assigned in one turn of the event loop: about 5 ms


class Subtopology(NamedTuple):
    """A subtopology to assign."""

    subtopology_id: str
    tasks: int
    is_stateful: bool


class Previous(NamedTuple):
    """A member, the tasks that it has, and how much state of tasks."""

    process_id: str
    tasks: TasksTuple = TasksTuple()
    offsets: Mapping[Task, int] = NO_OFFSETS  # as it reported them
    instance_id: str | None = None


class Share:
    """How many tasks a member may have; computed again each time a member has its share."""

    __slots__ = ("limit", "members", "tasks")

    def __init__(self, tasks: int, members: int) -> None:
        self.tasks = tasks
        self.members = members
        self.limit = -(-tasks // members) if members else 0

    def note(self, count: int) -> None:
        """A member now has `count` tasks."""
        if count == self.limit:
            self.members -= 1
            self.tasks -= count
            self.limit = -(-self.tasks // self.members) if self.members else 0


class Process:
    """The members of one process: they share a state directory."""

    __slots__ = ("counts", "members", "number", "tasks", "total")

    def __init__(self, number: int) -> None:
        self.number = number
        self.members: list[str] = []
        self.counts: list[tuple[int, int]] = []  # a heap of (tasks, index of the member), old entries too
        self.tasks: set[Task] = set()
        self.total = 0

    @property
    def load(self) -> float:
        """Tasks for each of its members."""
        return self.total / len(self.members)


class Assignor:
    """One assignment in the making."""

    def __init__(
        self, members: Mapping[str, Previous], subtopologies: Sequence[Subtopology], standby_replicas: int
    ) -> None:
        self.standby_replicas = standby_replicas
        self.active = sorted((s.subtopology_id, p) for s in subtopologies for p in range(s.tasks))
        self.stateful = sorted((s.subtopology_id, p) for s in subtopologies if s.is_stateful for p in range(s.tasks))
        self.active_share = Share(len(self.active), len(members))
        self.share = Share(len(self.active) + len(self.stateful) * standby_replicas, len(members))
        self.processes: dict[str, Process] = {}
        self.process_of: dict[str, Process] = {}
        self.index: dict[str, int] = {}  # of a member in its process
        self.count = dict.fromkeys(sorted(members), 0)
        self.assigned: dict[str, tuple[list[Task], list[Task]]] = {m: ([], []) for m in self.count}
        self.owner: dict[Task, str] = {}
        copies: dict[Task, list[tuple[bool, int, str]]] = {}  # task -> (is no standby, minus the offset, member id)
        self.loads: list[tuple[float, int, int, Process]] = []  # a heap of (load, fewest tasks of a member, number)
        for member_id in self.count:
            process_id, tasks, offsets, _ = members[member_id]
            process = self.processes.setdefault(process_id, Process(len(self.processes)))
            self.index[member_id] = len(process.members)
            process.counts.append((0, len(process.members)))
            process.members.append(member_id)
            self.process_of[member_id] = process
            for task in each_task(tasks.active):
                self.owner[task] = member_id
            standby = each_task(tasks.standby)
            for task in standby:
                copies.setdefault(task, []).append((False, -offsets.get(task, 0), member_id))
            for task in offsets.keys() - set(standby):
                copies.setdefault(task, []).append((True, -offsets[task], member_id))
        self.copies = {task: [member_id for *_, member_id in sorted(found)] for task, found in copies.items()}
        self.loads = [(0.0, 0, p.number, p) for p in self.processes.values()]  # all the same: a heap

    def steps(self) -> Steps:
        """Assign all tasks; yields so that the event loop can run."""
        for given, _ in enumerate(self._assign_active(), 1):
            if given % TASKS_A_SLICE == 0:
                yield
        if self.standby_replicas > 0:
            for given, _ in enumerate(self._assign_standby(), 1):
                if given % TASKS_A_SLICE == 0:
                    yield
        yield
        return {
            m: TasksTuple(by_subtopology(tasks), by_subtopology(copies)) for m, (tasks, copies) in self.assigned.items()
        }

    # -- active --------------------------------------------------------------------------------------------------

    def _assign_active(self) -> Iterator[None]:
        # Tasks of one number in several subtopologies belong together: one member then has the joined partitions.
        rest = []
        for task in sorted(self.active, key=by_partition):
            member_id = self.owner.get(task)
            if member_id is not None and self.count[member_id] < self.active_share.limit:
                self._give(member_id, task, is_active=True)
            else:
                rest.append(task)
            yield
        homeless = []
        for task in rest:
            member_id = self._less_loaded(self.copies.get(task, ()))
            if member_id is not None and self.count[member_id] < self.active_share.limit:
                self._give(member_id, task, is_active=True)
            else:
                homeless.append(task)
            yield
        for task in sorted(homeless):
            process = self._least_loaded_process(task, even_if_there=True)
            assert process is not None, "there is a process with a member"
            self._give(self._least_loaded_member(process), task, is_active=True)
            yield

    # -- standby -------------------------------------------------------------------------------------------------

    def _assign_standby(self) -> Iterator[None]:
        rest: list[tuple[Task, int]] = []
        for task in sorted(self.stateful, key=by_partition, reverse=True):
            for given in range(self.standby_replicas):
                member_id = self._previous_holder(task)
                if member_id is None:
                    rest.append((task, self.standby_replicas - given))
                    break
                self._give(member_id, task, is_active=False)
            yield
        for task, replicas in sorted(rest, reverse=True):
            for _ in range(replicas):
                process = self._least_loaded_process(task, even_if_there=False)
                if process is None:
                    break  # fewer processes than copies
                self._give(self._least_loaded_member(process), task, is_active=False)
            yield

    def _previous_holder(self, task: Task) -> str | None:
        owner = self.owner.get(task)
        if owner is not None and task not in self.process_of[owner].tasks and self.count[owner] < self.share.limit:
            return owner
        candidates = (m for m in self.copies.get(task, ()) if task not in self.process_of[m].tasks)
        copy = self._less_loaded(candidates)
        return copy if copy is not None and self.count[copy] < self.share.limit else None

    # -- loads ---------------------------------------------------------------------------------------------------

    def _give(self, member_id: str, task: Task, *, is_active: bool) -> None:
        process = self.process_of[member_id]
        process.tasks.add(task)
        process.total += 1
        self.count[member_id] = count = self.count[member_id] + 1
        self.assigned[member_id][0 if is_active else 1].append(task)
        heapq.heappush(process.counts, (count, self.index[member_id]))
        fewest = self.count[self._least_loaded_member(process)]
        heapq.heappush(self.loads, (process.load, fewest, process.number, process))
        if is_active:
            self.active_share.note(count)
        self.share.note(count)

    def _less_loaded(self, members: Iterable[str]) -> str | None:
        """The first, or a later one that has less to do, as has its process; None for none."""
        found, least, fewest = None, 0.0, 0
        for member_id in members:
            load, count = self.process_of[member_id].load, self.count[member_id]
            if found is None or (load < least and count < fewest):
                found, least, fewest = member_id, load, count
        return found

    def _least_loaded_process(self, task: Task, *, even_if_there: bool) -> Process | None:
        passed, found = [], None
        while self.loads and found is None:
            entry = heapq.heappop(self.loads)
            load, _, _, process = entry
            if load != process.load:
                continue  # an old entry; a newer one of the process follows
            passed.append(entry)
            if even_if_there or task not in process.tasks:
                found = process
        for entry in passed:
            heapq.heappush(self.loads, entry)
        return found

    def _least_loaded_member(self, process: Process) -> str:
        while True:
            count, index = process.counts[0]
            member_id = process.members[index]
            if self.count[member_id] == count:
                return member_id
            heapq.heappop(process.counts)


def assign_steps(
    members: Mapping[str, Previous], subtopologies: Sequence[Subtopology], standby_replicas: int = 0
) -> Steps:
    """Assign each task once as active, and up to `standby_replicas` times as standby."""
    return (yield from Assignor(members, subtopologies, standby_replicas).steps()) if members else {}


def assign(members: Mapping[str, Previous], subtopologies: Sequence[Subtopology], standby_replicas: int = 0) -> Targets:
    """`assign_steps`, all steps at once."""
    return run(assign_steps(members, subtopologies, standby_replicas))


def by_partition(task: Task) -> tuple[int, str]:
    """The sort key that puts tasks of the same number side by side."""
    return task[1], task[0]


def by_subtopology(tasks: Sequence[Task]) -> TasksBySubtopology:
    """The reverse of each_task."""
    found: dict[str, set[int]] = {}
    for subtopology_id, partition in tasks:
        found.setdefault(subtopology_id, set()).add(partition)
    return {subtopology_id: frozenset(partitions) for subtopology_id, partitions in found.items()}
