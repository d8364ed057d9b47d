"""StreamsGroupHeartbeat from outside: who may join, what a heartbeat is refused for, how tasks change hands."""

from __future__ import annotations

import pytest
from unit.coordinator.groups.streams.kit import (
    STATELESS,
    StreamsWorld,
    as_dict,
    statuses,
    subtopology,
    tasks,
    topic_info,
    topology,
)

from protocol.errors import ErrorCode
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest

INVALID = ErrorCode.INVALID_REQUEST
BAD_TOPOLOGY = ErrorCode.STREAMS_INVALID_TOPOLOGY


@pytest.fixture
def world():
    with StreamsWorld({"in": 4}) as made:
        yield made


# -- the first member -------------------------------------------------------------------------------------------------


def test_first_member_gets_all_tasks_at_epoch_2(world):
    reply = world.member("a").join()
    assert (reply.member_epoch, reply.member_id, reply.heartbeat_interval_ms) == (2, "a", 5000)
    assert as_dict(reply.active_tasks) == {"0": [0, 1, 2, 3]}
    assert (reply.standby_tasks, reply.warmup_tasks, statuses(reply)) == ([], [], [])


def test_heartbeat_that_changes_nothing_sends_no_tasks_and_writes_nothing(world):
    a = world.member("a")
    a.join()
    log = world.world.broker.groups.of("g").log
    before = log.end_offset
    reply = a.beat()
    assert (reply.member_epoch, reply.active_tasks, reply.standby_tasks, reply.warmup_tasks) == (2, None, None, None)
    assert log.end_offset == before


def test_epoch_0_from_a_member_keeps_its_tasks_and_tells_them_again(world):
    a = world.member("a")
    a.join()
    reply = a.join()
    assert (reply.member_epoch, as_dict(reply.active_tasks)) == (2, {"0": [0, 1, 2, 3]})


def test_heartbeat_after_a_restart_goes_on_where_it_was(world):
    a = world.member("a")
    a.join()
    world.restart()
    reply = a.beat()
    assert (reply.member_epoch, reply.active_tasks, statuses(reply)) == (2, None, [])
    assert world.group().group_epoch == 2


# -- what a request is refused for ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"member_id": ""}, INVALID),
        ({"member_id": "  "}, INVALID),
        ({"group_id": ""}, INVALID),
        ({"rack_id": ""}, INVALID),
        ({"instance_id": ""}, INVALID),
        ({"member_epoch": -2}, INVALID),
        ({"member_epoch": -2, "instance_id": "i"}, INVALID),
        ({"member_epoch": -3}, INVALID),
        ({"rebalance_timeout_ms": -1}, INVALID),
        ({"topology": None}, INVALID),
        ({"active_tasks": None}, INVALID),
        ({"active_tasks": tasks({"0": [0]})}, INVALID),
        ({"standby_tasks": tasks({"0": [0]})}, INVALID),
        ({"standby_tasks": None}, INVALID),
        ({"warmup_tasks": None}, INVALID),
        ({"warmup_tasks": tasks({"0": [0]})}, INVALID),  # here because the member joins
        ({"topology": topology(subtopology("0", regex=("in.*",)))}, INVALID),
        ({"topology": topology(subtopology("0", "in"), epoch=-1)}, INVALID),
        ({"topology": topology(subtopology("0", "in", changelogs=(topic_info("c", 2),)))}, BAD_TOPOLOGY),
        ({"topology": topology(subtopology("0", "in", changelogs=(topic_info("c", 2),)), epoch=-1)}, BAD_TOPOLOGY),
        ({"topology": topology(subtopology("0", "__consumer_offsets"))}, BAD_TOPOLOGY),
        ({"topology": topology(subtopology("0", "in", sinks=("__transaction_state",)))}, BAD_TOPOLOGY),
        ({"topology": topology(subtopology("0", "in", changelogs=(topic_info("a b"),)))}, BAD_TOPOLOGY),
        ({"topology": topology(subtopology("0", "in", repartition=(topic_info("."),)))}, BAD_TOPOLOGY),
        ({"topology": topology(subtopology("0", "in"), subtopology("0", "in"))}, BAD_TOPOLOGY),
    ],
)
def test_join_that_is_wrong_in_itself_is_refused(world, changes, code):
    reply = world.member("a").join(**changes)
    assert reply.error_code == code
    assert reply.error_message
    assert world.list() == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"topology": STATELESS},
        {"active_tasks": []},
        {"active_tasks": [], "standby_tasks": []},
        {"standby_tasks": [], "warmup_tasks": []},
        {"active_tasks": tasks({"0": [4]}), "standby_tasks": [], "warmup_tasks": []},
        {"active_tasks": tasks({"0": [-1]}), "standby_tasks": [], "warmup_tasks": []},
        {"active_tasks": [], "standby_tasks": tasks({"1": [0]}), "warmup_tasks": []},
    ],
)
def test_heartbeat_that_is_wrong_in_itself_is_refused(world, changes):
    a = world.member("a")
    a.join()
    assert a.beat(**changes).error_code == INVALID


def test_kind_of_the_group_is_looked_at_before_the_epoch_of_a_topology(world):
    joins = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=9, topic_partitions=[]
    )
    joins.subscribed_topic_names = ["in"]
    assert world.client.call(joins, 1).error_code == 0
    shape = topology(subtopology("0", "in"), epoch=-1)
    assert world.member("a", shape=shape).join().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    twice = topology(subtopology("0", "in"), subtopology("0", "in"))
    assert world.member("a", shape=twice).join().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_topic_names_are_looked_at_before_anything_else(world):
    shape = topology(subtopology("0", "__consumer_offsets"))
    assert world.member("a", shape=shape).join(member_id="").error_code == BAD_TOPOLOGY


def test_request_for_an_unknown_group_is_refused(world):
    a = world.member("a")
    assert a.beat(member_epoch=1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert a.leave().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_request_from_an_unknown_member_is_refused(world):
    world.member("a").join()
    b = world.member("b")
    assert b.beat(member_epoch=2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert b.leave().error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("setting", ["classic,consumer", "classic"])
def test_without_the_protocol_both_apis_are_unsupported(setting):
    with StreamsWorld({"in": 1}, group_coordinator_rebalance_protocols=setting) as world:
        assert world.member("a").join().error_code == ErrorCode.UNSUPPORTED_VERSION
        assert world.describe().error_code == ErrorCode.UNSUPPORTED_VERSION


# -- epochs -----------------------------------------------------------------------------------------------------------


def test_member_ahead_of_the_broker_is_fenced(world):
    a = world.member("a")
    a.join()
    assert a.beat(member_epoch=3).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_member_whose_reply_was_lost_passes_with_what_it_has(world):
    a, b = world.member("a"), world.member("b")
    a.join()
    before = a.epoch
    b.join()
    a.beat()  # told to give tasks 2 and 3 back
    a.ack()  # done: epoch 3, and this reply gets lost
    assert a.epoch == before + 1
    assert a.ack(member_epoch=before).member_epoch == a.epoch
    assert a.beat(member_epoch=before).error_code == ErrorCode.FENCED_MEMBER_EPOCH, "it says nothing of its tasks"
    more = {"active_tasks": tasks({"0": [0, 1, 2]}), "standby_tasks": [], "warmup_tasks": []}
    assert a.send(member_epoch=before, **more).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert a.ack(member_epoch=before - 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH


# -- tasks change hands -----------------------------------------------------------------------------------------------


def test_task_goes_to_another_member_only_after_it_was_given_back(world):
    a, b = world.member("a"), world.member("b")
    a.join()
    reply = b.join()
    assert (reply.member_epoch, as_dict(reply.active_tasks)) == (3, {}), "nothing is free yet"
    assert world.describe().group_state == "Reconciling"
    reply = a.beat()
    assert (reply.member_epoch, as_dict(reply.active_tasks)) == (2, {"0": [0, 1]})
    assert as_dict(b.beat().active_tasks) is None, "a has not said that it gave them back"
    assert a.beat().member_epoch == 2
    reply = a.ack()
    assert (reply.member_epoch, reply.active_tasks) == (3, None)
    reply = b.beat()
    assert (reply.member_epoch, as_dict(reply.active_tasks)) == (3, {"0": [2, 3]})
    assert world.describe().group_state == "Stable"


def test_assignment_epochs_stay_with_the_tasks_that_stay(world):
    a, b = world.member("a"), world.member("b")
    a.join()
    b.join()
    a.beat()
    assert world.group().members["a"].current.pending.active == {"0": {2: 2, 3: 2}}
    a.ack()
    b.beat()
    members = world.group().members
    assert members["a"].current.assigned.active == {"0": {0: 2, 1: 2}}
    assert members["b"].current.assigned.active == {"0": {2: 3, 3: 3}}
    b.leave()
    assert as_dict(a.beat().active_tasks) == {"0": [0, 1, 2, 3]}
    assert world.group().members["a"].current.assigned.active == {"0": {0: 2, 1: 2, 2: 4, 3: 4}}


def test_second_revocation_starts_one_epoch_further_on(world):
    a, b, c = (world.member(m) for m in "abc")
    a.join()
    b.join()
    a.beat()
    c.join()
    world.member("d").join()
    reply = a.ack()  # has given back 2 and 3, and learns that it shall have one only
    assert (reply.member_epoch, len((as_dict(reply.active_tasks) or {})["0"])) == (3, 1)
    current = world.group().members["a"].current
    assert (current.member_epoch, current.previous_member_epoch, current.state) == (3, 2, 2)


def test_own_pending_task_comes_back_a_heartbeat_later(world):
    a, b = world.member("a"), world.member("b")
    a.join()
    b.join()
    a.beat()
    b.leave()  # tasks 2 and 3 are a's again, and still pending
    reply = a.ack()
    assert (reply.member_epoch, reply.active_tasks) == (4, None)
    assert as_dict(a.beat().active_tasks) == {"0": [0, 1, 2, 3]}


def test_member_that_leaves_frees_its_tasks_at_once(world):
    a, b = world.member("a"), world.member("b")
    a.join()
    b.join()
    reply = a.leave()
    assert (reply.error_code, reply.member_epoch, reply.member_id, reply.status) == (0, -1, "a", [])
    assert as_dict(b.beat().active_tasks) == {"0": [0, 1, 2, 3]}
    assert a.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_silent_member_is_fenced_after_its_session_timeout(world):
    a, b = world.member("a"), world.member("b")
    a.join()
    world.world.advance(30_000)
    b.join()
    world.world.advance(14_999)
    assert len(world.group().members) == 2
    world.world.advance(1)
    assert list(world.group().members) == ["b"]
    assert as_dict(b.beat().active_tasks) == {"0": [0, 1, 2, 3]}


def test_member_that_does_not_give_back_is_fenced_after_its_rebalance_timeout(world):
    a, b = world.member("a"), world.member("b")
    a.join(rebalance_timeout_ms=20_000)
    b.join()
    a.beat()
    for _ in range(3):
        world.world.advance(6_000)
        assert a.beat().error_code == b.beat().error_code == 0
    world.world.advance(2_000)
    assert a.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert as_dict(b.beat().active_tasks) == {"0": [0, 1, 2, 3]}


def test_timeouts_run_on_after_a_restart(world):
    a, b = world.member("a"), world.member("b")
    a.join(rebalance_timeout_ms=20_000)
    b.join()
    a.beat()
    world.restart()
    for _ in range(4):
        world.world.advance(5_000)
        a.beat()
        b.beat()
    assert list(world.group().members) == ["b"]
    world.world.advance(45_000)
    assert world.group().members == {}


def test_member_that_gave_back_in_time_stays(world):
    a, b = world.member("a"), world.member("b")
    a.join(rebalance_timeout_ms=10_000)
    b.join()
    a.beat()
    world.world.advance(9_000)
    a.ack()
    world.world.advance(9_000)
    assert sorted(world.group().members) == ["a", "b"]
