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

An active task is free if no process has it as active, and the member's own process does not have it as standby or
warm-up. A standby or warm-up task is free if the own process does not have it at all: two copies of one state would
share a directory. A member's own pending task is not free either: it comes back one heartbeat later.

An active task that enters `assigned` gets the target epoch as its assignment epoch; one that stays, or moves to
pending, keeps its own (KAFKA-19779). Consumer groups differ: see consumer/reconcile.py.
Source: KIP-1071; Kafka's CurrentAssignmentBuilder (streams).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def has_copy(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        """Whether a process has it as standby or warm-up."""


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

    def is_free_for_active(subtopology_id: str, partition: int) -> bool:
        return holders.active_process(subtopology_id, partition) is None and not holders.has_copy(
            process_id, subtopology_id, partition
        )

    def is_free_for_copy(subtopology_id: str, partition: int) -> bool:
        return holders.active_process(subtopology_id, partition) != process_id and not holders.has_copy(
            process_id, subtopology_id, partition
        )

    assigned = current.assigned
    active, revoked = _split(assigned.active, target.active)
    standby, no_standby = _split_copies(assigned.standby, target.standby)
    warmup, no_warmup = _split_copies(assigned.warmup, target.warmup)
    revoke = TasksTupleWithEpochs(revoked, no_standby, no_warmup)
    if any(revoke) and _still_owns(owned, revoke):
        return current.moved(epoch, UNREVOKED_TASKS, TasksTupleWithEpochs(active, standby, warmup), revoke)
    with_added, is_waiting = _add(active, target.active, target_epoch, is_free_for_active)
    standby, waits_standby = _add_copies(standby, target.standby, is_free_for_copy)
    warmup, waits_warmup = _add_copies(warmup, target.warmup, is_free_for_copy)
    state = UNRELEASED_TASKS if is_waiting or waits_standby or waits_warmup else STABLE
    return current.moved(target_epoch, state, TasksTupleWithEpochs(with_added, standby, warmup), NOTHING)


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


def _add(
    keep: EpochsBySubtopology, target: TasksBySubtopology, epoch: int, is_free: Callable[[str, int], bool]
) -> tuple[EpochsBySubtopology, bool]:
    """Active tasks with the free ones added, and whether some were not free."""
    has = dict(keep)
    is_waiting = False
    for subtopology_id, in_target in target.items():
        missing = in_target.difference(keep.get(subtopology_id, NO_EPOCHS))
        free = [p for p in missing if is_free(subtopology_id, p)]
        is_waiting = is_waiting or len(free) < len(missing)
        if free:
            has[subtopology_id] = {**keep.get(subtopology_id, NO_EPOCHS), **dict.fromkeys(free, epoch)}
    return has, is_waiting


def _add_copies(
    keep: TasksBySubtopology, target: TasksBySubtopology, is_free: Callable[[str, int], bool]
) -> tuple[TasksBySubtopology, bool]:
    """Standby or warm-up tasks with the free ones added, and whether some were not free."""
    has = dict(keep)
    is_waiting = False
    for subtopology_id, in_target in target.items():
        missing = in_target - keep.get(subtopology_id, NONE_OF_IT)
        free = frozenset(p for p in missing if is_free(subtopology_id, p))
        is_waiting = is_waiting or len(free) < len(missing)
        if free:
            has[subtopology_id] = keep.get(subtopology_id, NONE_OF_IT) | free
    return has, is_waiting
