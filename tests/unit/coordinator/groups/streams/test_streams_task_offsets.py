"""Task offsets of streams members: accepted, shown, forgotten, and who gets a task because of them.

What the broker answers is what Apache Kafka 4.4.0 answered to the same requests.
"""

from __future__ import annotations

import pytest
from unit.coordinator.groups.streams.kit import StreamsWorld, subtopology, topic_info, topology

from broker.coordinator.groups.streams.member import TasksTuple
from broker.coordinator.groups.streams.sticky_assignor import Previous, Subtopology, assign
from protocol.errors import ErrorCode
from protocol.messages.streams_group import StreamsGroupHeartbeatRequestTaskOffset

STATEFUL = topology(subtopology("0", "in", changelogs=(topic_info("g-log"),)))

Offsets = dict[tuple[str, int], int]


@pytest.fixture
def world():
    with StreamsWorld({"in": 4, "g-log": 4}) as made:
        yield made


def reported(offsets: Offsets) -> list[StreamsGroupHeartbeatRequestTaskOffset]:
    return [
        StreamsGroupHeartbeatRequestTaskOffset(subtopology_id=s, partition=p, offset=o) for (s, p), o in offsets.items()
    ]


def shown(world: StreamsWorld, number: int = 0) -> tuple[Offsets, Offsets]:
    member = world.describe().members[number]
    first, second = (
        {(o.subtopology_id, o.partition): o.offset for o in found}
        for found in (member.task_offsets, member.task_end_offsets)
    )
    return first, second


def test_offsets_are_shown_in_the_order_of_tasks_and_not_checked_against_the_topology(world):
    a = world.member("a", shape=STATEFUL)
    a.join()
    a.beat(task_offsets=reported({("9", 7): -2, ("0", 3): 5, ("0", 1): 6}))
    found = world.describe().members[0].task_offsets
    assert [(o.subtopology_id, o.partition, o.offset) for o in found] == [("0", 1, 6), ("0", 3, 5), ("9", 7, -2)]


def test_each_list_replaces_the_one_before_and_null_keeps_it(world):
    a = world.member("a", shape=STATEFUL)
    a.join()
    a.beat(task_offsets=reported({("0", 1): 5}), task_end_offsets=reported({("0", 1): 9}))
    assert shown(world) == ({("0", 1): 5}, {("0", 1): 9})
    a.beat(task_offsets=reported({("0", 2): 6}))
    assert shown(world) == ({("0", 2): 6}, {("0", 1): 9})
    a.beat()
    assert shown(world) == ({("0", 2): 6}, {("0", 1): 9})
    a.beat(task_offsets=[], task_end_offsets=reported({}))
    assert shown(world) == ({}, {})


@pytest.mark.parametrize("field", ["task_offsets", "task_end_offsets"])
def test_task_that_is_named_twice_is_refused_and_nothing_is_kept(world, field):
    a = world.member("a", shape=STATEFUL)
    a.join()
    twice = [*reported({("0", 3): 5}), *reported({("0", 3): 6})]
    reply = a.beat(**{field: twice})
    assert (reply.error_code, reply.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Task offsets contain a duplicate entry for subtopology 0 and partition 3.",
    )
    assert shown(world) == ({}, {})


def test_offsets_write_nothing_and_move_no_epoch(world):
    a = world.member("a", shape=STATEFUL)
    a.join()
    a.beat()
    log, epoch = world.world.broker.groups.of("g").log, world.group().group_epoch
    before = log.end_offset
    a.beat(task_offsets=reported({("0", 1): 5}))
    assert (log.end_offset, world.group().group_epoch) == (before, epoch)


def test_offsets_are_gone_with_a_restart_and_with_the_member(world):
    a, b = world.member("a", shape=STATEFUL), world.member("b", shape=STATEFUL)
    a.join()
    b.join()
    for member in (a, b):
        member.beat(task_offsets=reported({("0", 1): 5}))
    a.leave()
    a.join()
    assert (shown(world, 0), shown(world, 1)) == (({("0", 1): 5}, {}), ({}, {}))
    world.restart()
    assert shown(world) == ({}, {})


def test_offsets_of_the_heartbeat_that_makes_the_group_are_not_kept_but_those_of_a_join_are(world):
    a = world.member("a", shape=STATEFUL)
    a.join(task_offsets=reported({("0", 1): 5}))
    assert shown(world) == ({}, {})
    a.join(task_offsets=reported({("0", 1): 5}))
    assert shown(world) == ({("0", 1): 5}, {})


def test_offsets_stay_while_a_static_member_is_away_and_are_not_those_of_its_successor(world):
    a = world.member("a", "p", shape=STATEFUL, instance="i")
    a.join()
    a.beat(task_offsets=reported({("0", 1): 5}))
    a.go_for_a_while()
    assert shown(world) == ({("0", 1): 5}, {})
    world.member("a2", "p", shape=STATEFUL, instance="i").join()
    assert shown(world) == ({}, {})


def test_task_goes_to_who_has_most_of_its_state_when_its_owner_is_gone():
    with StreamsWorld({"in": 1, "g-log": 1}) as world:
        a, b, c = (world.member(m, shape=STATEFUL) for m in "abc")
        for member in (a, b, c):
            member.join()
        b.beat(task_offsets=reported({("0", 0): 50}))
        c.beat(task_offsets=reported({("0", 0): 70}))
        a.leave()
        for member in (b, c, b, c):
            member.ack()
        assert (b.active, c.active) == ({}, {"0": [0]})


# -- the assignor -----------------------------------------------------------------------------------------------------

ONE = [Subtopology("0", 1, is_stateful=True)]
TASK = ("0", 0)
STANDBY = TasksTuple({}, {"0": frozenset({0})})
ACTIVE = TasksTuple({"0": frozenset({0})})


def owner(members: dict[str, Previous], replicas: int = 0) -> tuple[str, list[str]]:
    """Who gets the one task, and who a copy of it."""
    given = assign(members, ONE, replicas)
    (active,) = [m for m, tasks in given.items() if tasks.active]
    return active, [m for m, tasks in given.items() if tasks.standby]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param({"a": Previous("pa"), "b": Previous("pb", offsets={TASK: 1})}, "b", id="some state before none"),
        pytest.param(
            {"a": Previous("pa", offsets={TASK: 5}), "b": Previous("pb", offsets={TASK: 6})}, "b", id="more before less"
        ),
        pytest.param(
            {"a": Previous("pa", offsets={TASK: 99}), "b": Previous("pb", STANDBY)}, "b", id="a standby before offsets"
        ),
        pytest.param(
            {"a": Previous("pa", STANDBY, {TASK: 5}), "b": Previous("pb", STANDBY, {TASK: 6})},
            "b",
            id="of two standbys the one with more",
        ),
        pytest.param(
            {"a": Previous("pa", offsets={TASK: 99}), "b": Previous("pb", ACTIVE)}, "b", id="the owner before all"
        ),
        pytest.param(
            {"a": Previous("pa", offsets={TASK: 0}), "b": Previous("pb", offsets={TASK: -2})}, "a", id="0 before -2"
        ),
    ],
)
def test_active_task_goes_to(members, expected):
    assert owner(members)[0] == expected


def test_standby_goes_to_the_former_owner_and_then_to_who_has_most_state():
    members = {
        "a": Previous("pa", ACTIVE),
        "b": Previous("pb"),
        "c": Previous("pc", offsets={TASK: 3}),
        "d": Previous("pd", offsets={TASK: 4}),
    }
    assert owner(members, 1) == ("a", ["d"])
    assert owner(members, 2) == ("a", ["c", "d"])


def test_standby_passes_over_a_process_that_has_the_task_and_takes_the_next_with_state():
    members = {
        "a": Previous("pa", ACTIVE),
        "a2": Previous("pa", offsets={TASK: 99}),
        "b": Previous("pb"),
        "c": Previous("pc", offsets={TASK: 1}),
    }
    assert owner(members, 1) == ("a", ["c"])


def test_later_candidate_is_taken_if_its_process_and_itself_have_less_to_do():
    found = [Subtopology("0", 5, is_stateful=True)]  # a may have three
    busy = Previous("pa", TasksTuple({"0": frozenset({0, 1})}), {("0", 4): 50})
    assert 4 in assign({"a": busy, "b": Previous("pb", offsets={("0", 4): 1})}, found)["b"].active["0"]
    idle = {"a": Previous("pa", offsets={("0", 4): 50}), "b": Previous("pb", offsets={("0", 4): 1})}
    assert 4 in assign(idle, found)["a"].active["0"]
