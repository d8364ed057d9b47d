"""How a member's tasks change roles between active, standby and warm-up: in one step where nothing is in the way.

Task 0 of subtopology "0" is looked at; the member is at epoch 5, its target at 6.
"""

from __future__ import annotations

from typing import Any

import pytest

from broker.coordinator.groups.streams.member import (
    STABLE,
    UNRELEASED_TASKS,
    UNREVOKED_TASKS,
    CurrentAssignment,
    TasksTuple,
    TasksTupleWithEpochs,
)
from broker.coordinator.groups.streams.reconcile import reconcile

ONE = frozenset({0})
NONE: dict[str, Any] = {}


class Held:
    """Who has tasks: the process that has each active task, and those that have copies of it, in the role looked at."""

    def __init__(
        self, active: dict[int, str] | None = None, copies: dict[int, set[str]] | None = None, role: str = "standby"
    ) -> None:
        self.active = active or {}
        self.copies = {role: copies or {}}

    def active_process(self, subtopology_id: str, partition: int) -> str | None:
        return self.active.get(partition)

    def has_standby(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        return process_id in self.copies.get("standby", {}).get(partition, ())

    def has_warmup(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        return process_id in self.copies.get("warmup", {}).get(partition, ())


def has(active: Any = (), standby: Any = (), warmup: Any = (), epoch: int = 4) -> TasksTupleWithEpochs:
    return TasksTupleWithEpochs(
        {"0": dict.fromkeys(active, epoch)} if active else NONE,
        {"0": frozenset(standby)} if standby else NONE,
        {"0": frozenset(warmup)} if warmup else NONE,
    )


def wants(active: Any = (), standby: Any = (), warmup: Any = ()) -> TasksTuple:
    return TasksTuple(*({"0": frozenset(part)} if part else NONE for part in (active, standby, warmup)))


def step(
    assigned: TasksTupleWithEpochs,
    target: TasksTuple,
    held: Held,
    owned: TasksTuple | None = None,
    pending: TasksTupleWithEpochs | None = None,
) -> CurrentAssignment:
    state = STABLE if pending is None else UNREVOKED_TASKS
    current = CurrentAssignment(5, 4, state, assigned, pending or TasksTupleWithEpochs())
    return reconcile(current, "me", 6, target, held, owned)


@pytest.mark.parametrize("role", ["standby", "warmup"])
def test_copy_becomes_active_at_once_and_has_the_new_epoch(role):
    after = step(has(**{role: [0]}), wants(active=[0]), Held(copies={0: {"me"}}, role=role))
    assert (after.member_epoch, after.state, after.assigned) == (6, STABLE, has(active=[0], epoch=6))


@pytest.mark.parametrize("role", ["standby", "warmup"])
def test_copy_stays_one_while_another_process_still_has_the_task(role):
    after = step(has(**{role: [0]}), wants(active=[0]), Held({0: "other"}, {0: {"me"}}, role))
    assert (after.member_epoch, after.state, after.assigned) == (6, UNRELEASED_TASKS, has(**{role: [0]}))
    assert after.pending == TasksTupleWithEpochs()


def test_copy_stays_one_while_the_member_has_other_tasks_to_give_back():
    target = wants(active=[0])
    after = step(has(active=[1], standby=[0]), target, Held({1: "me"}, {0: {"me"}}))
    assert (after.member_epoch, after.state, after.assigned) == (5, UNREVOKED_TASKS, has(standby=[0]))
    assert after.pending == has(active=[1])
    owned = wants(standby=[0])
    done = reconcile(after, "me", 6, target, Held({1: "me"}, {0: {"me"}}), owned)
    assert (done.member_epoch, done.state, done.assigned) == (6, STABLE, has(active=[0], epoch=6))


@pytest.mark.parametrize("role", ["standby", "warmup"])
def test_copy_of_another_member_of_the_process_still_blocks_the_active_task(role):
    after = step(has(), wants(active=[0]), Held(copies={0: {"me"}}, role=role))
    assert (after.state, after.assigned) == (UNRELEASED_TASKS, has())


def test_active_task_becomes_a_standby_while_it_is_given_back():
    after = step(has(active=[0]), wants(standby=[0]), Held({0: "me"}))
    assert (after.member_epoch, after.state) == (5, UNREVOKED_TASKS)
    assert (after.assigned, after.pending) == (has(standby=[0]), has(active=[0]))


def test_active_task_that_is_given_back_already_is_a_standby_at_the_new_epoch():
    after = step(has(active=[0]), wants(standby=[0]), Held({0: "me"}), owned=wants())
    assert (after.member_epoch, after.state, after.assigned) == (6, STABLE, has(standby=[0]))


def test_standby_is_not_given_while_another_member_of_the_process_has_the_task_as_active():
    after = step(has(), wants(standby=[0]), Held({0: "me"}))
    assert (after.state, after.assigned) == (UNRELEASED_TASKS, has())


def test_active_task_does_not_become_a_warmup_in_one_step():
    after = step(has(active=[0]), wants(warmup=[0]), Held({0: "me"}))
    assert (after.assigned, after.pending) == (has(), has(active=[0]))


@pytest.mark.parametrize(("before", "then"), [("standby", "warmup"), ("warmup", "standby")])
def test_copies_swap_their_roles_with_nothing_to_give_back(before, then):
    after = step(has(**{before: [0]}), wants(**{then: [0]}), Held(copies={0: {"me"}}, role=before))
    assert (after.member_epoch, after.state, after.assigned) == (6, STABLE, has(**{then: [0]}))


@pytest.mark.parametrize(("before", "then"), [("standby", "warmup"), ("warmup", "standby")])
def test_copies_swap_their_roles_also_while_others_are_given_back(before, then):
    after = step(has(active=[1], **{before: [0]}), wants(**{then: [0]}), Held({1: "me"}, {0: {"me"}}, before))
    assert (after.state, after.assigned, after.pending) == (UNREVOKED_TASKS, has(**{then: [0]}), has(active=[1]))


def test_standby_that_is_wanted_no_more_is_given_back_as_ever():
    after = step(has(standby=[0, 1]), wants(standby=[1]), Held(copies={0: {"me"}, 1: {"me"}}))
    assert (after.state, after.assigned, after.pending) == (UNREVOKED_TASKS, has(standby=[1]), has(standby=[0]))


def test_task_of_the_own_that_is_to_be_given_back_comes_back_a_heartbeat_later():
    after = step(has(), wants(active=[0]), Held({0: "me"}), owned=wants(), pending=has(active=[0]))
    assert (after.member_epoch, after.state, after.assigned) == (6, UNRELEASED_TASKS, has())


def test_tasks_that_swap_roles_between_each_other_move_together():
    after = step(has(active=[0], standby=[1]), wants(active=[1], standby=[0]), Held({0: "me"}, {1: {"me"}}))
    assert (after.assigned, after.pending) == (has(standby=[0, 1]), has(active=[0]))
    held = Held({0: "me"}, {0: {"me"}, 1: {"me"}})
    done = reconcile(after, "me", 6, wants(active=[1], standby=[0]), held, wants(standby=[0, 1]))
    assert (done.member_epoch, done.state) == (6, STABLE)
    assert done.assigned == TasksTupleWithEpochs({"0": {1: 6}}, {"0": ONE})


@pytest.mark.parametrize(("role", "other"), [("standby", "warmup"), ("warmup", "standby")])
def test_copy_in_the_other_role_of_another_member_still_blocks_the_active_task(role, other):
    after = step(has(**{role: [0]}), wants(active=[0]), Held(copies={0: {"me"}}, role=other))
    assert (after.state, after.assigned) == (UNRELEASED_TASKS, has(**{role: [0]}))
