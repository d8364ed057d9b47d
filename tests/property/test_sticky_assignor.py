"""What the sticky assignor of streams groups promises: every task once, evenly, where it was, copies elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.groups.streams.member import TasksTuple
from broker.coordinator.groups.streams.sticky_assignor import Previous, Subtopology, assign, each_task

subtopologies = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=4).map(
    lambda found: [Subtopology(str(i), tasks, stateful) for i, (tasks, stateful) in enumerate(found)]
)
processes = st.lists(st.integers(1, 4), min_size=1, max_size=6)  # members of each
replicas = st.integers(0, 2)
partitions = st.dictionaries(st.sampled_from("01239"), st.frozensets(st.integers(0, 14), max_size=6), max_size=4)
offsets = st.dictionaries(st.tuples(st.sampled_from("0129"), st.integers(0, 14)), st.integers(-2, 9), max_size=6)
# what members have, and how much state they reported: also such as never was
histories = st.lists(st.tuples(st.builds(TasksTuple, partitions, partitions), offsets), max_size=24)


def members_of(sizes: list[int]) -> dict[str, Previous]:
    return {f"m{p}-{i}": Previous(f"p{p}") for p, size in enumerate(sizes) for i in range(size)}


def told(members: dict[str, Previous], assigned: dict[str, TasksTuple]) -> dict[str, Previous]:
    """The members as they are before the next assignment."""
    return {m: Previous(previous.process_id, assigned.get(m, TasksTuple())) for m, previous in members.items()}


def all_tasks(found: list[Subtopology]) -> list[tuple[str, int]]:
    return sorted((s.subtopology_id, p) for s in found for p in range(s.tasks))


def spread(counts: list[int]) -> int:
    return max(counts) - min(counts)


def actives(assigned: dict[str, TasksTuple]) -> dict[str, list[tuple[str, int]]]:
    return {m: sorted(each_task(tasks.active)) for m, tasks in assigned.items()}


@pytest.mark.heavy
@given(subtopologies, processes, histories, replicas)
def test_every_task_is_active_once_and_copied_where_it_is_not(found, sizes, history, copies):
    members = members_of(sizes)
    before = {m: Previous(p.process_id, *h) for (m, p), h in zip(members.items(), history, strict=False)}
    members.update(before)
    assigned = assign(members, found, copies)
    assert assigned.keys() == members.keys()
    assert sorted(t for tasks in actives(assigned).values() for t in tasks) == all_tasks(found)
    where: dict[tuple[str, int], list[str]] = {}
    for m, tasks in assigned.items():
        assert tasks.warmup == {}
        for task in [*each_task(tasks.active), *each_task(tasks.standby)]:
            where.setdefault(task, []).append(members[m].process_id)
    stateful = {s.subtopology_id for s in found if s.is_stateful}
    for (subtopology_id, partition), holders in where.items():
        assert len(set(holders)) == len(holders), f"{subtopology_id}_{partition} is twice on one process"
        wanted = 1 + copies if subtopology_id in stateful else 1
        assert len(holders) == min(wanted, len(sizes))


@given(subtopologies, processes)
def test_first_assignment_is_even_over_the_members(found, sizes):
    assigned = assign(members_of(sizes), found)
    assert spread([len(tasks) for tasks in actives(assigned).values()]) <= 1


@given(subtopologies, st.integers(1, 8), histories)
def test_members_of_their_own_process_are_even_whatever_they_had(found, size, history):
    members = members_of([1] * size)
    members.update({m: Previous(p.process_id, *h) for (m, p), h in zip(list(members.items()), history, strict=False)})
    assert spread([len(tasks) for tasks in actives(assign(members, found)).values()]) <= 1


@given(subtopologies, processes, replicas)
def test_nothing_moves_when_nothing_has_changed(found, sizes, copies):
    members = members_of(sizes)
    first = assign(members, found, copies)
    second = assign(told(members, first), found, copies)
    assert actives(second) == actives(first)


@given(subtopologies, st.integers(2, 8), st.data())
def test_who_stays_keeps_everything_when_another_goes(found, size, data):
    members = members_of([1] * size)
    first = assign(members, found)
    gone = data.draw(st.sampled_from(sorted(members)))
    left = {m: previous for m, previous in told(members, first).items() if m != gone}
    second = assign(left, found)
    for m, tasks in actives(second).items():
        assert set(tasks) >= set(actives(first)[m])


@given(subtopologies, st.integers(1, 8))
def test_only_what_the_newcomer_gets_moves(found, size):
    members = members_of([1] * size)
    first = assign(members, found)
    second = assign({**told(members, first), "new": Previous("new")}, found)
    moved = [task for m, tasks in actives(second).items() for task in tasks if task not in actives(first).get(m, [])]
    assert sorted(moved) == sorted(actives(second)["new"])


@given(subtopologies, st.integers(2, 6), st.data())
def test_task_whose_owner_goes_falls_to_a_copy_that_has_room(found, size, data):
    stateful = [Subtopology(s.subtopology_id, s.tasks, True) for s in found]
    members = members_of([1] * size)
    first = assign(members, stateful, 1)
    gone = data.draw(st.sampled_from(sorted(members)))
    left = {m: previous for m, previous in told(members, first).items() if m != gone}
    second = assign(left, stateful, 1)
    share = -(-len(all_tasks(stateful)) // len(left))
    for task in actives(first)[gone]:
        (heir,) = (m for m, tasks in first.items() if task in each_task(tasks.standby))
        now = next(m for m, tasks in actives(second).items() if task in tasks)
        assert now == heir or len(actives(second)[heir]) >= share - 1


@given(subtopologies, processes, histories, replicas)
def test_same_question_has_the_same_answer_in_any_order(found, sizes, history, copies):
    members = members_of(sizes)
    members.update({m: Previous(p.process_id, *h) for (m, p), h in zip(list(members.items()), history, strict=False)})
    backwards = dict(reversed(members.items()))
    assert assign(members, found, copies) == assign(backwards, list(reversed(found)), copies)


def test_nobody_gets_nothing():
    assert assign({}, [Subtopology("0", 3, True)], 1) == {}
