"""The next step of one streams group member towards its target assignment, as a pure function.

    keep     assigned, and in the target
    revoke   assigned, and not in the target
    add      in the target, and free; what is not free yet is *unreleased*

| state                    | the heartbeat's owned tasks          | next                                               |
|--------------------------|--------------------------------------|----------------------------------------------------|
| STABLE at the target     | any                                  | unchanged                                          |
| UNREVOKED                | not sent, or some pending one in it  | unchanged                                          |
| UNREVOKED                | none of the pending ones             | as below, from the epoch after the one it is at    |
| STABLE below, UNRELEASED | revoke is empty, or none of it owned | target epoch; has keep and add; maybe UNRELEASED   |
| STABLE below, UNRELEASED | not sent, or some of revoke in it    | UNREVOKED at its epoch; keep, and revoke pending   |
| UNKNOWN                  | not sent, or any                     | FENCED_MEMBER_EPOCH                                |
| UNKNOWN                  | none                                 | as STABLE below, from the target epoch             |

An active task is free if no process has it as active, and no other member of the own process has it as standby or
warm-up. A standby or warm-up task is free if no other member of the own process has it at all: two copies of one state
would share a directory. A member's own pending task is not free either: it comes back one heartbeat later.

A task that the member has in one role and is to have in another changes its role in one step:

    standby or warm-up to active    nothing to revoke; it stays a copy until the active task is given
    active to standby               the standby is given at once, while the active task is still to be revoked
    standby to warm-up, or back     at once; nothing to revoke

An active task that enters `assigned` gets the target epoch as its assignment epoch; one that stays, or moves to
pending, keeps its own (KAFKA-19779). Consumer groups differ: see consumer/reconcile.py.
Source: KIP-1071; Kafka's CurrentAssignmentBuilder (streams).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from broker.coordinator.groups.streams.member import (
    NO_EPOCHS,
    NONE_OF_IT,
    NOTHING,
    STABLE,
    UNKNOWN,
    UNRELEASED_TASKS,
    UNREVOKED_TASKS,
    CurrentAssignment,
    EpochsBySubtopology,
    TasksBySubtopology,
    TasksTuple,
    TasksTupleWithEpochs,
)
from protocol.errors import ErrorCode, KafkaError


class Holders(Protocol):
    """The processes that have a task, or have not confirmed that they gave it back."""

    def active_process(self, subtopology_id: str, partition: int) -> str | None:
        """The process that has it as active."""

    def has_standby(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        """Whether a process has it as standby."""

    def has_warmup(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        """Whether a process has it as warm-up."""


def reconcile(
    current: CurrentAssignment,
    process_id: str,
    target_epoch: int,
    target: TasksTuple,
    holders: Holders,
    owned: TasksTuple | None,
) -> CurrentAssignment:
    """The member's current assignment after this heartbeat; the very same object if nothing changes.

    owned   the tasks in the heartbeat; None if it has no lists: the member then still owns everything
    Errors: FENCED_MEMBER_EPOCH: a member in a state of a newer broker that still has tasks.
    """
    if current.is_reconciled_to(target_epoch):
        return current
    epoch = current.member_epoch
    if current.state == UNKNOWN:
        if owned is None or any(owned):
            raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, "the member's state is unknown; it must rejoin")
        epoch = target_epoch
    elif current.state == UNREVOKED_TASKS:
        if _still_owns(owned, current.pending):
            return current
        epoch += 1
    return _next(current, epoch, target_epoch, target, _Free(process_id, current.assigned, holders), owned)


def _next(
    current: CurrentAssignment,
    epoch: int,
    target_epoch: int,
    target: TasksTuple,
    free: _Free,
    owned: TasksTuple | None,
) -> CurrentAssignment:
    """What a member has next: less, at `epoch`, as long as it has to give something back; else all that is free."""
    assigned = current.assigned
    active, revoked = _split(assigned.active, target.active)
    added, is_waiting = _added(active, target.active, free.for_active)
    standby, no_standby = _split_copies(assigned.standby, target.standby)
    new_standby, waits_standby = _added(standby, target.standby, free.for_standby)
    warmup, no_warmup = _split_copies(assigned.warmup, target.warmup)
    new_warmup, waits_warmup = _added(warmup, target.warmup, free.for_warmup)
    # what changes its role in this step
    standby = _union(standby, _both(new_standby, assigned.active), _both(new_standby, assigned.warmup))
    warmup = _union(warmup, _both(new_warmup, assigned.standby))
    promoted_standby, promoted_warmup = _both(assigned.standby, target.active), _both(assigned.warmup, target.active)
    revoke = TasksTupleWithEpochs(
        revoked,
        _without(no_standby, new_warmup, promoted_standby),
        _without(no_warmup, new_standby, promoted_warmup),
    )
    if any(revoke) and _still_owns(owned, revoke):
        held = TasksTupleWithEpochs(active, _union(standby, promoted_standby), _union(warmup, promoted_warmup))
        return current.moved(epoch, UNREVOKED_TASKS, held, revoke)
    held = TasksTupleWithEpochs(
        _with_added(active, added, target_epoch),
        _union(standby, new_standby, _without(promoted_standby, added)),
        _union(warmup, new_warmup, _without(promoted_warmup, added)),
    )
    state = UNRELEASED_TASKS if is_waiting or waits_standby or waits_warmup else STABLE
    return current.moved(target_epoch, state, held, NOTHING)


class _Free:
    """Which tasks a member may be given in which role."""

    def __init__(self, process_id: str, assigned: TasksTupleWithEpochs, holders: Holders) -> None:
        self.process_id = process_id
        self.assigned = assigned
        self.holders = holders

    def for_active(self, subtopology_id: str, partition: int) -> bool:
        """No process has it as active, and no other member of the own one a copy."""
        return (
            self.holders.active_process(subtopology_id, partition) is None
            and not self._is_standby_of_another(subtopology_id, partition)
            and not self._is_warmup_of_another(subtopology_id, partition)
        )

    def for_standby(self, subtopology_id: str, partition: int) -> bool:
        """No other member of the own process has it in any role."""
        runs_here = self.holders.active_process(subtopology_id, partition) == self.process_id
        return (
            (not runs_here or _has(self.assigned.active, subtopology_id, partition))
            and not self.holders.has_standby(self.process_id, subtopology_id, partition)
            and not self._is_warmup_of_another(subtopology_id, partition)
        )

    def for_warmup(self, subtopology_id: str, partition: int) -> bool:
        """The own process does not have it as active, nor another member of it a copy."""
        return (
            self.holders.active_process(subtopology_id, partition) != self.process_id
            and not self._is_standby_of_another(subtopology_id, partition)
            and not self.holders.has_warmup(self.process_id, subtopology_id, partition)
        )

    def _is_standby_of_another(self, subtopology_id: str, partition: int) -> bool:
        return self.holders.has_standby(self.process_id, subtopology_id, partition) and not _has(
            self.assigned.standby, subtopology_id, partition
        )

    def _is_warmup_of_another(self, subtopology_id: str, partition: int) -> bool:
        return self.holders.has_warmup(self.process_id, subtopology_id, partition) and not _has(
            self.assigned.warmup, subtopology_id, partition
        )


def _still_owns(owned: TasksTuple | None, tasks: TasksTupleWithEpochs) -> bool:
    if owned is None:
        return True
    return any(
        not owned_tasks.get(subtopology_id, NONE_OF_IT).isdisjoint(partitions)
        for owned_tasks, held in zip(owned, tasks.lists(), strict=True)
        for subtopology_id, partitions in held.items()
    )


def _split(has: EpochsBySubtopology, target: TasksBySubtopology) -> tuple[EpochsBySubtopology, EpochsBySubtopology]:
    """Active tasks to keep and to revoke."""
    keep: dict[str, Mapping[int, int]] = {}
    revoke: dict[str, Mapping[int, int]] = {}
    for subtopology_id, epochs in has.items():
        in_target = target.get(subtopology_id, NONE_OF_IT)
        kept = {p: e for p, e in epochs.items() if p in in_target}
        if kept:
            keep[subtopology_id] = kept
        if len(kept) < len(epochs):
            revoke[subtopology_id] = {p: e for p, e in epochs.items() if p not in in_target}
    return keep, revoke


def _split_copies(has: TasksBySubtopology, target: TasksBySubtopology) -> tuple[TasksBySubtopology, TasksBySubtopology]:
    """Standby or warm-up tasks to keep and to revoke."""
    keep: dict[str, frozenset[int]] = {}
    revoke: dict[str, frozenset[int]] = {}
    for subtopology_id, partitions in has.items():
        in_target = target.get(subtopology_id, NONE_OF_IT)
        if partitions & in_target:
            keep[subtopology_id] = partitions & in_target
        if partitions - in_target:
            revoke[subtopology_id] = partitions - in_target
    return keep, revoke


def _added(
    keep: Mapping[str, Collection[int]], target: TasksBySubtopology, is_free: Callable[[str, int], bool]
) -> tuple[TasksBySubtopology, bool]:
    """The free tasks of the target that are not kept, and whether some were not free."""
    added: dict[str, frozenset[int]] = {}
    is_waiting = False
    for subtopology_id, in_target in target.items():
        missing = in_target.difference(keep.get(subtopology_id, NONE_OF_IT))
        free = frozenset(p for p in missing if is_free(subtopology_id, p))
        is_waiting = is_waiting or len(free) < len(missing)
        if free:
            added[subtopology_id] = free
    return added, is_waiting


def _with_added(keep: EpochsBySubtopology, added: TasksBySubtopology, epoch: int) -> EpochsBySubtopology:
    """Active tasks with those that are added at an epoch."""
    has = dict(keep)
    for subtopology_id, partitions in added.items():
        has[subtopology_id] = {**keep.get(subtopology_id, NO_EPOCHS), **dict.fromkeys(partitions, epoch)}
    return has


def _has(tasks: Mapping[str, Collection[int]], subtopology_id: str, partition: int) -> bool:
    return partition in tasks.get(subtopology_id, NONE_OF_IT)


def _union(*parts: TasksBySubtopology) -> TasksBySubtopology:
    found: dict[str, frozenset[int]] = {}
    for tasks in parts:
        for subtopology_id, partitions in tasks.items():
            found[subtopology_id] = found.get(subtopology_id, NONE_OF_IT) | partitions
    return found


def _both(tasks: TasksBySubtopology, others: Mapping[str, Collection[int]]) -> TasksBySubtopology:
    """The tasks that are in both."""
    found = {s: partitions.intersection(others.get(s, NONE_OF_IT)) for s, partitions in tasks.items()}
    return {s: partitions for s, partitions in found.items() if partitions}


def _without(tasks: TasksBySubtopology, *parts: Mapping[str, Collection[int]]) -> TasksBySubtopology:
    """The tasks that are in none of the others."""
    found = {s: partitions.difference(*(o.get(s, NONE_OF_IT) for o in parts)) for s, partitions in tasks.items()}
    return {s: partitions for s, partitions in found.items() if partitions}
