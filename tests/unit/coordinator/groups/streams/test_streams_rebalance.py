"""What a heartbeat brings beside the own tasks: standbys, new group epochs, waits, a shutdown, the last member."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, make_topic
from unit.coordinator.groups.streams.kit import StreamsWorld, as_dict, statuses, subtopology, topic_info, topology

from broker.coordinator.groups.common.group import PendingTarget
from broker.coordinator.groups.streams import sticky_assignor
from broker.coordinator.groups.streams import target as streams_target
from broker.coordinator.groups.streams.member import STABLE, CurrentAssignment, TasksTupleWithEpochs
from broker.coordinator.groups.streams.records import current_record
from broker.coordinator.groups.streams.sticky_assignor import Previous, Subtopology, assign_steps
from broker.coordinator.groups.streams.topology import ASSIGNMENT_DELAYED
from protocol.errors import ErrorCode
from protocol.messages import configs
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.streams_group import StreamsGroupHeartbeatRequestEndpoint
from protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic


@pytest.fixture
def world():
    with StreamsWorld({"in": 4}) as made:
        yield made


# -- standbys ---------------------------------------------------------------------------------------------------------

STATEFUL = topology(subtopology("0", "in", changelogs=(topic_info("g-store-changelog"),)))


def with_standbys(world: StreamsWorld, *members: Any) -> None:
    for member in members:
        member.join()
    for _ in range(6):
        for member in members:
            member.ack()


def test_standbys_are_on_the_other_process():
    topics = {"in": 2, "g-store-changelog": 2}
    with StreamsWorld(topics, group_streams_num_standby_replicas="1") as world:
        a, b = world.member("a", shape=STATEFUL), world.member("b", shape=STATEFUL)
        with_standbys(world, a, b)
        assert (a.active, b.active) == ({"0": [0]}, {"0": [1]})
        assert (a.standby, b.standby) == ({"0": [1]}, {"0": [0]})
        assert world.describe().group_state == "Stable"


def test_one_process_has_no_standbys():
    topics = {"in": 2, "g-store-changelog": 2}
    with StreamsWorld(topics, group_streams_num_standby_replicas="1") as world:
        a, b = world.member("a", "p", shape=STATEFUL), world.member("b", "p", shape=STATEFUL)
        with_standbys(world, a, b)
        assert a.standby == b.standby == {}


def test_standby_becomes_active_in_one_step_when_the_owner_goes():
    topics = {"in": 2, "g-store-changelog": 2}
    with StreamsWorld(topics, group_streams_num_standby_replicas="1") as world:
        a, b = world.member("a", shape=STATEFUL), world.member("b", shape=STATEFUL)
        with_standbys(world, a, b)
        b.leave()
        reply = a.beat()
        assert (as_dict(reply.active_tasks), as_dict(reply.standby_tasks)) == ({"0": [0, 1]}, {})
        assert world.describe().group_state == "Stable"


def test_standbys_have_no_assignment_epochs_in_the_log():
    topics = {"in": 2, "g-store-changelog": 2}
    with StreamsWorld(topics, group_streams_num_standby_replicas="1") as world:
        a, b = world.member("a", shape=STATEFUL), world.member("b", shape=STATEFUL)
        with_standbys(world, a, b)
        current = world.group().members["a"].current
        assert current.assigned.standby == {"0": frozenset({1})}
        assert current.assignment_epoch("0", 1) is None
        assert current.assignment_epoch("0", 0) == 2


# -- what moves the group epoch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"rack_id": "r"},
        {"process_id": "other"},
        {"rebalance_timeout_ms": 5},
        {"user_endpoint": StreamsGroupHeartbeatRequestEndpoint(host="h", port=1)},
        {"client_tags": []},
    ],
)
def test_what_a_member_says_anew_moves_the_group_epoch(world, changes):
    a = world.member("a")
    a.join(client_tags=None)
    before = world.group().group_epoch
    a.beat(**changes)
    moved = world.group().group_epoch - before
    assert moved == (0 if "client_tags" in changes else 1), "no tags are what it had"
    assert a.beat(**changes).error_code == 0
    assert world.group().group_epoch == before + moved, "the second time it is nothing new"


def test_new_partitions_of_a_source_bring_new_tasks(world):
    a = world.member("a")
    a.join()
    more = CreatePartitionsTopic(name="in", count=6, assignments=None)
    assert world.client.call(CreatePartitionsRequest(topics=[more], timeout_ms=1000), 3).results[0].error_code == 0
    reply = a.beat()
    assert (reply.member_epoch, as_dict(reply.active_tasks)) == (3, {"0": [0, 1, 2, 3, 4, 5]})


def test_topics_of_others_change_nothing(world):
    a = world.member("a")
    a.join()
    make_topic(world.client, "else", 3)
    assert a.beat().member_epoch == 2
    assert world.group().group_epoch == 2


def test_standby_replicas_of_the_group_move_its_epoch():
    topics = {"in": 2, "g-store-changelog": 2}
    with StreamsWorld(topics) as world:
        a, b = world.member("a", shape=STATEFUL), world.member("b", shape=STATEFUL)
        with_standbys(world, a, b)
        assert a.standby == b.standby == {}
        before = world.group().group_epoch
        config = configs.IncrementalAlterConfigsRequestAlterableConfig(
            name="streams.num.standby.replicas", config_operation=0, value="1"
        )
        resource = configs.IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=32, resource_name="g", configs=[config]
        )
        reply = world.client.call(configs.IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert reply.responses[0].error_code == 0
        a.beat()
        assert world.group().group_epoch == before + 1
        b.beat()
        assert a.standby
        assert b.standby


# -- waiting for more members -----------------------------------------------------------------------------------------


def test_first_assignment_waits_for_more_members():
    with StreamsWorld({"in": 4}, group_streams_initial_rebalance_delay_ms="3000") as world:
        a, b = world.member("a"), world.member("b")
        reply = a.join()
        assert (reply.member_epoch, as_dict(reply.active_tasks), statuses(reply)) == (1, {}, [5])
        world.world.advance(2_000)
        reply = b.join()
        assert (reply.member_epoch, as_dict(reply.active_tasks), statuses(reply)) == (1, {}, [5])
        world.world.advance(1_000)
        assert world.group().assignment_epoch == 3
        assert as_dict(a.beat().active_tasks) == {"0": [0, 2]}
        assert as_dict(b.beat().active_tasks) == {"0": [1, 3]}
        assert statuses(a.beat()) == []


def test_group_deleted_while_it_waits_waits_anew():
    with StreamsWorld({"in": 4}, group_streams_initial_rebalance_delay_ms="3000") as world:
        a = world.member("a")
        a.join()
        a.leave()
        world.world.advance(2_000)
        assert world.client.call(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == 0
        assert statuses(a.join()) == [5]
        world.world.advance(2_000)
        assert statuses(a.beat()) == [5]
        world.world.advance(1_000)
        assert statuses(a.beat()) == []


def test_group_that_was_deleted_for_good_leaves_no_wait_behind():
    with StreamsWorld({"in": 4}, group_streams_initial_rebalance_delay_ms="3000") as world:
        a = world.member("a")
        a.join()
        a.leave()
        world.client.call(DeleteGroupsRequest(groups_names=["g"]), 2)
        world.world.advance(3_000)
        assert world.world.broker.groups.of("g").machine.delay_timers == set()


def test_restart_ends_the_wait():
    with StreamsWorld({"in": 4}, group_streams_initial_rebalance_delay_ms="3000") as world:
        a = world.member("a")
        a.join()
        world.restart()
        reply = a.beat()
        assert (statuses(reply), as_dict(reply.active_tasks)) == ([], {"0": [0, 1, 2, 3]})


def test_next_assignment_waits_for_the_interval():
    with StreamsWorld({"in": 4}, group_streams_assignment_interval_ms="1000") as world:
        a, b = world.member("a"), world.member("b")
        assert statuses(a.join()) == [], "the first one is made at once"
        reply = b.join()
        assert (reply.member_epoch, as_dict(reply.active_tasks), statuses(reply)) == (2, {}, [5])
        assert world.describe().group_state == "Assigning"
        world.world.advance(1_000)
        reply = b.beat()
        assert (reply.member_epoch, statuses(reply)) == (3, [])


# -- shutdown ---------------------------------------------------------------------------------------------------------


def test_shutdown_is_told_to_everyone_until_the_group_is_empty(world):
    a, b = world.member("a"), world.member("b")
    a.join()
    b.join()
    assert statuses(a.beat(shutdown_application=True)) == [4]
    assert statuses(b.beat()) == [4]
    a.leave()
    assert statuses(b.beat()) == [4]
    b.leave()
    assert statuses(a.join()) == []


def test_member_that_leaves_may_ask_for_shutdown(world):
    a, b = world.member("a"), world.member("b")
    a.join()
    b.join()
    assert a.leave(shutdown_application=True).status == []
    assert statuses(b.beat()) == [4]


# -- the last member --------------------------------------------------------------------------------------------------


def test_group_without_members_has_an_assignment_of_its_epoch_and_the_next_one_does_not_wait():
    with StreamsWorld({"in": 4}, group_streams_assignment_interval_ms="15000") as world:
        a, b = world.member("a"), world.member("b")
        a.join()
        assert statuses(b.join()) == [ASSIGNMENT_DELAYED]
        a.leave()
        assert world.group().assignment_epoch < world.group().group_epoch, "one is left"
        b.leave()
        found = world.describe()
        assert (found.group_state, found.assignment_epoch, found.group_epoch) == ("Empty", 5, 5)
        world.restart()
        reply = world.member("c").join()
        assert (reply.member_epoch, statuses(reply), as_dict(reply.active_tasks)) == (6, [], {"0": [0, 1, 2, 3]})


def test_target_that_is_still_computed_when_the_last_member_leaves_is_dropped():
    with StreamsWorld({"in": 4}, group_streams_assignment_interval_ms="15000") as world:
        a, b = world.member("a"), world.member("b")
        a.join()
        b.join()
        group = world.group()
        steps = assign_steps({m: Previous(m) for m in ("a", "b")}, [Subtopology("0", 4, False)])
        group.pending_target = PendingTarget(group.group_epoch, steps)
        a.leave()
        b.leave()
        world.world.broker.groups.of("g").deadlines.set(("assign", "g"), world.world.clock.now_ms())
        world.world.run()
        assert (group.pending_target, group.target, group.assignment_epoch) == (None, {}, group.group_epoch)


# -- what is large, and what is out of order --------------------------------------------------------------------------


def test_large_group_is_assigned_between_the_turns(monkeypatch):
    monkeypatch.setattr(streams_target, "WORK_AT_ONCE", 5)
    monkeypatch.setattr(sticky_assignor, "TASKS_A_SLICE", 3)
    topics = {"in": 8, "g-store-changelog": 8}
    with StreamsWorld(topics, group_streams_num_standby_replicas="1") as world:
        a, b = world.member("a", shape=STATEFUL), world.member("b", shape=STATEFUL)
        a.join()  # makes the group, and has all of it at once
        assert (statuses(b.join()), b.epoch, b.active) == ([ASSIGNMENT_DELAYED], 2, {})
        for _ in range(6):
            a.ack()
            b.ack()
        assert [len(m.active["0"]) for m in (a, b)] == [len(m.standby["0"]) for m in (a, b)] == [4, 4]
        assert world.describe().group_state == "Stable"


def test_member_that_left_while_the_target_was_made_gets_none(monkeypatch):
    monkeypatch.setattr(streams_target, "WORK_AT_ONCE", 5)
    with StreamsWorld({"in": 8}) as world:
        a, b = world.member("a"), world.member("b")
        a.join()
        b.join()
        steps = assign_steps({m: Previous(m) for m in ("a", "gone")}, [Subtopology("0", 8, False)])
        world.group().pending_target = PendingTarget(world.group().group_epoch, steps)
        world.world.broker.groups.of("g").deadlines.set(("assign", "g"), world.world.clock.now_ms())
        world.world.run()
        assert (world.group().pending_target, set(world.group().target)) == (None, {"a", "b"})


def test_first_assignment_of_a_large_group_is_made_between_the_turns(monkeypatch):
    monkeypatch.setattr(streams_target, "WORK_AT_ONCE", 5)
    with StreamsWorld({"in": 8}, group_streams_initial_rebalance_delay_ms="3000") as world:
        a, b = world.member("a"), world.member("b")
        a.join()
        b.join()
        world.world.advance(3_000)
        world.world.run()
        assert (len(a.beat().active_tasks[0].partitions), len(b.beat().active_tasks[0].partitions)) == (4, 4)


def test_group_found_broken_is_reported_and_served(caplog):
    world = StreamsWorld({"in": 4})
    world.member("a").join()
    shard = world.world.broker.groups.of("g")
    wrong = CurrentAssignment(99, 98, STABLE, TasksTupleWithEpochs(active={"0": {0: 120}}))
    with pytest.raises(AssertionError, match=r"group g: .*member a is at 99, above 2"):
        shard.append([current_record("g", "a", wrong)])
    world.world.run()
    world.world = world.world.crash()
    world.world.broker.groups.of("g").require()
    assert sum("as it was loaded" in r.getMessage() for r in caplog.records) == 2
    world.client, world.check = Client(world.world), lambda: None
    assert world.describe().members[0].member_epoch == 99
    assert statuses(world.member("a").join()) == statuses(world.member("b").join()) == []


def test_group_is_assigned_after_a_member_in_a_state_of_a_newer_broker_was_refused(monkeypatch):
    """Also a group so large that its target is made between the turns: what a refused request begins never ends."""
    monkeypatch.setattr(streams_target, "WORK_AT_ONCE", 0)
    with StreamsWorld({"in": 4}) as world:
        a, b = world.member("a"), world.member("b")
        a.join()
        a.ack()
        newer = world.group().members["a"].current._replace(state=50)
        world.world.broker.groups.of("g").append([current_record("g", "a", newer)])
        world.world.advance(2000)
        grown = CreatePartitionsTopic(name="in", count=6, assignments=None)
        world.client.call(CreatePartitionsRequest(topics=[grown], timeout_ms=1000), 3)
        assert a.ack().error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert a.join().error_code == 0
        b.join()
        for _ in range(6):
            world.world.advance(2000)
            a.ack()
            b.ack()
        assert (len(a.active["0"]), len(b.active["0"])) == (3, 3)
