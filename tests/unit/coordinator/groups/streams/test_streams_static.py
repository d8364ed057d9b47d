"""Static members of streams groups: who may have an instance id, how one leaves for a while, who takes over.

The codes and texts are those of Apache Kafka 4.4.0, asked with the same requests.
"""

from __future__ import annotations

from typing import Any

import pytest
from unit.coordinator.groups.streams.kit import (
    StreamsWorld,
    as_dict,
    statuses,
    subtopology,
    tasks,
    topic_info,
    topology,
)

from broker.coordinator.groups.common.group import PendingTarget
from broker.coordinator.groups.streams.sticky_assignor import Previous, Subtopology, assign_steps
from protocol.errors import ErrorCode
from protocol.messages.streams_group import StreamsGroupHeartbeatRequestKeyValue
from protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic


@pytest.fixture
def world():
    with StreamsWorld({"in": 4}) as made:
        yield made


def pair(world: StreamsWorld, **how: Any) -> tuple[Any, Any]:
    """A static member, and one that may take over: the same process and instance, another member id."""
    return (
        world.member("s1", "p", instance="i", **how),
        world.member("s2", "p", instance="i", **how),
    )


# -- codes ------------------------------------------------------------------------------------------------------------


def test_instance_id_is_kept_and_shown(world):
    s1, _ = pair(world)
    assert (s1.join().error_code, world.describe().members[0].instance_id) == (0, "i")


@pytest.mark.parametrize("newcomer", ["s1", "s2"])
def test_join_with_an_instance_id_that_is_in_use_is_unreleased_even_for_its_owner(world, newcomer):
    s1, _ = pair(world)
    s1.join()
    reply = s1.join(member_id=newcomer)
    assert (reply.error_code, reply.error_message) == (
        ErrorCode.UNRELEASED_INSTANCE_ID,
        f"Static member {newcomer} with instance id i cannot join the group because the instance id is owned by s1 "
        "member.",
    )


@pytest.mark.parametrize(
    "shape", [topology(subtopology("0", "in"), epoch=-1), topology(subtopology("0", "in"), subtopology("0", "in"))]
)
def test_instance_id_in_use_is_looked_at_before_the_topology(world, shape):
    s1, _ = pair(world)
    s1.join()
    assert s1.join(topology=shape).error_code == ErrorCode.UNRELEASED_INSTANCE_ID


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_request_with_an_instance_id_of_another_member_is_fenced(world, epoch):
    s1, s2 = pair(world)
    s1.join()
    reply = s2.beat(member_epoch=epoch)
    assert (reply.error_code, reply.error_message) == (
        ErrorCode.FENCED_INSTANCE_ID,
        "Static member s2 with instance id i was fenced by member s1.",
    )
    assert list(world.group().members) == ["s1"]


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_request_with_an_unknown_instance_id_is_of_an_unknown_member(world, epoch):
    s1, _ = pair(world)
    s1.join()
    reply = s1.beat(member_epoch=epoch, instance_id="other")
    assert (reply.error_code, reply.error_message) == (ErrorCode.UNKNOWN_MEMBER_ID, "Instance id other is unknown.")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"member_epoch": -2, "instance_id": None}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
    ],
)
def test_request_of_a_static_member_that_is_wrong_in_itself_is_refused(world, changes, text):
    s1, _ = pair(world)
    s1.join()
    reply = s1.beat(**changes)
    assert (reply.error_code, reply.error_message) == (ErrorCode.INVALID_REQUEST, text)


def test_heartbeat_without_the_instance_id_is_accepted(world):
    s1, _ = pair(world)
    s1.join()
    reply = s1.beat(instance_id=None)
    assert (reply.error_code, reply.member_epoch, world.describe().members[0].instance_id) == (0, 2, "i")


def test_epoch_0_with_an_unknown_instance_id_gives_the_member_another_one(world):
    s1, s2 = pair(world)
    s1.join()
    assert s1.join(instance_id="new").error_code == 0
    assert [(m.member_id, m.instance_id) for m in world.describe().members] == [("s1", "new")]
    assert s2.join().error_code == 0, "the first id is free"


# -- leaving for a while ----------------------------------------------------------------------------------------------


def test_static_member_that_goes_for_a_while_keeps_its_tasks(world):
    s1, _ = pair(world)
    s1.join()
    reply = s1.go_for_a_while()
    assert (reply.error_code, reply.member_id, reply.member_epoch, reply.status) == (0, "s1", -2, [])
    found = world.describe()
    assert (found.group_state, found.group_epoch, found.members[0].member_epoch) == ("Reconciling", 2, -2)
    assert as_dict(found.members[0].assignment.active_tasks) == {"0": [0, 1, 2, 3]}
    current = world.group().members["s1"].current
    assert current.assigned.active == {"0": dict.fromkeys(range(4), 0)}
    assert s1.beat(member_epoch=2).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_static_member_that_goes_while_it_gives_back_has_nothing_pending(world):
    s1, _ = pair(world)
    s1.join(rebalance_timeout_ms=10_000)
    world.member("b").join()
    s1.beat()  # has to give two back
    s1.go_for_a_while()
    current = world.group().members["s1"].current
    assert (current.pending.active, len(current.assigned.active["0"])) == ({}, 2)
    world.world.advance(10_001)
    assert sorted(world.group().members) == ["b", "s1"], "the timeout of a rebalance does not end its absence"


def test_static_member_that_does_not_come_back_is_removed_when_its_session_ends(world):
    s1, _ = pair(world)
    b = world.member("b")
    s1.join()
    b.join()
    world.world.advance(30_000)
    b.beat()
    s1.go_for_a_while()
    world.world.advance(14_999)
    assert sorted(world.group().members) == ["b", "s1"]
    world.world.advance(1)
    assert list(world.group().members) == ["b"]
    assert as_dict(b.beat().active_tasks) == {"0": [0, 1, 2, 3]}


def test_commit_of_a_static_member_that_is_away_is_accepted_with_its_epoch_only(world):
    s1, _ = pair(world)
    s1.join()
    s1.go_for_a_while()
    assert s1.commit(-2, {"in": [0]}) == [0]
    assert s1.commit(2, {"in": [0]}) == [ErrorCode.STALE_MEMBER_EPOCH]


def test_static_member_that_leaves_for_good_is_removed(world):
    s1, s2 = pair(world)
    b = world.member("b")
    s1.join()
    b.join()
    before = world.group().group_epoch
    assert s1.leave().error_code == 0
    assert (list(world.group().members), world.group().group_epoch) == (["b"], before + 1)
    assert s2.join().error_code == 0


# -- taking over ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newcomer", ["s1", "s2"])
def test_member_that_takes_over_has_the_same_tasks_at_once_and_the_group_its_epoch(world, newcomer):
    s1, _ = pair(world)
    b = world.member("b")
    s1.join()
    b.join()
    s1.beat()
    s1.ack()
    b.beat()
    held, before = s1.active, world.group().group_epoch
    s1.go_for_a_while()
    assert b.ack().active_tasks is None, "nothing moves meanwhile"
    reply = s1.join(member_id=newcomer)
    assert (reply.error_code, reply.member_epoch, as_dict(reply.active_tasks)) == (0, before, held)
    assert (world.group().group_epoch, sorted(world.group().members)) == (before, sorted(["b", newcomer]))
    assert world.describe().group_state == "Stable"
    if newcomer == "s2":
        assert s1.beat().error_code == ErrorCode.FENCED_INSTANCE_ID
        assert s1.beat(instance_id=None).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert s1.beat(member_id=newcomer).error_code == 0


def test_tasks_of_a_member_that_takes_over_may_be_committed_with_its_first_epoch(world):
    s1, s2 = pair(world)
    s1.join()
    s1.go_for_a_while()
    s2.join()
    assert s2.commit(0, {"in": [0]}) == [0], "they are assigned since epoch 0"
    assert s1.commit(2, {"in": [0]}) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize(
    ("changes", "moved"),
    [
        pytest.param({}, 0, id="the same"),
        pytest.param({"rebalance_timeout_ms": 5}, 0, id="another timeout"),
        pytest.param({"process_id": "other"}, 1, id="another process"),
        pytest.param({"rack_id": "r"}, 1, id="another rack"),
        pytest.param({"client_tags": [StreamsGroupHeartbeatRequestKeyValue(key="k", value="v")]}, 1, id="other tags"),
    ],
)
def test_what_the_assignor_looks_at_moves_the_group_epoch_when_a_static_member_is_back(world, changes, moved):
    s1, s2 = pair(world)
    s1.join()
    s1.go_for_a_while()
    reply = s2.join(**changes)
    assert (reply.error_code, reply.member_epoch, as_dict(reply.active_tasks)) == (0, 2 + moved, {"0": [0, 1, 2, 3]})
    assert world.group().group_epoch == 2 + moved


def test_static_member_that_says_something_else_does_not_move_the_group_epoch(world):
    s1, _ = pair(world)
    s1.join()
    s1.beat(rebalance_timeout_ms=5)
    assert (world.group().group_epoch, world.group().members["s1"].member_metadata.rebalance_timeout_ms) == (2, 5)
    s1.beat(rebalance_timeout_ms=6, instance_id=None)
    assert world.group().group_epoch == 3, "without its instance id it counts as any member"


def test_member_that_takes_over_gives_back_what_is_no_longer_its_own(world):
    s1, s2 = pair(world)
    b = world.member("b")
    s1.join()
    b.join()  # two of the four tasks are to be b's
    s1.go_for_a_while()
    reply = s2.join()
    assert as_dict(reply.active_tasks) == {"0": [0, 1]}, "it joins with nothing, so there is nothing to give back"
    assert as_dict(b.beat().active_tasks) == {"0": [2, 3]}


def test_group_that_changed_while_the_member_was_away_is_assigned_with_its_successor(world):
    s1, s2 = pair(world)
    s1.join()
    s1.go_for_a_while()
    more = CreatePartitionsTopic(name="in", count=6, assignments=None)
    world.client.call(CreatePartitionsRequest(topics=[more], timeout_ms=1000), 3)
    reply = s2.join()
    assert (reply.member_epoch, as_dict(reply.active_tasks)) == (3, {"0": [0, 1, 2, 3, 4, 5]})
    assert list(world.group().target) == ["s2"]


def test_state_after_a_restart_is_that_of_a_member_away_and_of_its_successor(world):
    s1, s2 = pair(world)
    s1.join()
    s1.go_for_a_while()
    world.restart()
    assert (world.describe().members[0].member_epoch, world.group().static_members) == (-2, {"i": "s1"})
    assert s2.join().error_code == 0
    world.restart()
    assert world.group().static_members == {"i": "s2"}
    assert statuses(s2.beat()) == []
    world.world.advance(45_000)
    assert world.group().members == {}, "the session ran on"


def test_target_that_is_still_computed_goes_to_the_successor():
    with StreamsWorld({"in": 4}, group_streams_assignment_interval_ms="10000") as world:
        s1, s2 = pair(world)
        s1.join()
        world.member("b").join()  # too early for another target
        s1.go_for_a_while()
        s2.join()
        group = world.group()
        steps = assign_steps({m: Previous(m) for m in ("s1", "b")}, [Subtopology("0", 4, False)])
        group.pending_target = PendingTarget(group.group_epoch, steps, ["s1", "b"], {"s1": "i"})
        world.world.broker.groups.of("g").deadlines.set(("assign", "g"), world.world.clock.now_ms())
        world.world.run()
        assert {m: len(found.active["0"]) for m, found in group.target.items()} == {"s2": 2, "b": 2}


# -- a full group -----------------------------------------------------------------------------------------------------


def test_full_group_takes_its_own_members_again_and_who_comes_for_a_known_instance():
    with StreamsWorld({"in": 1}, group_streams_max_size="1") as world:
        s1, s2 = pair(world)
        assert s1.join().error_code == 0
        assert s1.join(instance_id=None).error_code == 0
        reply = world.member("b").join()
        assert (reply.error_code, reply.error_message) == (
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            "The streams group has reached its maximum capacity of 1 members.",
        )
        assert s2.join(instance_id="other").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert s2.join().error_code == ErrorCode.UNRELEASED_INSTANCE_ID, "it has a place, but not yet"
        s1.go_for_a_while()
        assert s2.join().error_code == 0


# -- standbys ---------------------------------------------------------------------------------------------------------


def test_member_that_takes_over_keeps_its_standby_tasks():
    shape = topology(subtopology("0", "in", changelogs=(topic_info("g-log"),)))
    with StreamsWorld({"in": 2, "g-log": 2}, group_streams_num_standby_replicas="1") as world:
        s1, s2 = pair(world, shape=shape)
        b = world.member("b", shape=shape)
        s1.join()
        b.join()
        for _ in range(4):
            s1.ack()
            b.ack()
        held = s1.active, s1.standby
        assert held == ({"0": [0]}, {"0": [1]})
        s1.go_for_a_while()
        reply = s2.join()
        assert (as_dict(reply.active_tasks), as_dict(reply.standby_tasks)) == held
        assert world.describe().group_state == "Stable"
        assert (
            s2.send(member_epoch=s2.epoch, active_tasks=tasks(s2.active), standby_tasks=[], warmup_tasks=[]).status
            == []
        )
