"""The endpoints of a streams application: when they are told, cleared and changed, and which partitions they have."""

from __future__ import annotations

from typing import Any

import pytest
from unit.coordinator.groups.streams.kit import StreamsWorld, subtopology, topology

from broker.coordinator.groups.streams.member import STABLE, CurrentAssignment, TasksTupleWithEpochs
from broker.coordinator.groups.streams.records import current_record
from protocol.messages.streams_group import StreamsGroupHeartbeatRequestEndpoint


@pytest.fixture
def world():
    with StreamsWorld({"in": 4}) as made:
        yield made


def test_endpoints_are_told_whenever_the_member_knows_others(world):
    a = world.member("a", endpoint=("host-a", 1))
    b = world.member("b", endpoint=("host-b", 2))
    reply = a.join()
    assert reply.endpoint_information_epoch == 0, "the group was made by this very request"
    assert [e.user_endpoint.host for e in reply.partitions_by_user_endpoint] == ["host-a"]
    reply = a.beat()
    assert (reply.endpoint_information_epoch, reply.partitions_by_user_endpoint) == (0, None)
    reply = b.join()
    assert reply.endpoint_information_epoch == 1
    told = {e.user_endpoint.host: e for e in reply.partitions_by_user_endpoint}
    assert [(p.topic, p.partitions) for p in told["host-a"].active_partitions] == [("in", [0, 1, 2, 3])]
    assert told["host-b"].active_partitions == []
    reply = a.beat()
    assert reply.endpoint_information_epoch == 2
    told = {e.user_endpoint.host: e for e in reply.partitions_by_user_endpoint}
    assert [(p.topic, p.partitions) for p in told["host-a"].active_partitions] == [("in", [0, 1])]


def test_member_without_endpoint_moves_no_endpoint_epoch(world):
    a, b = world.member("a", endpoint=("host-a", 1)), world.member("b")
    a.join()
    reply = b.join()
    assert reply.endpoint_information_epoch == 0
    assert reply.partitions_by_user_endpoint is None


def endpoints(reply: Any) -> dict[str, Any] | None:
    """What a reply tells of the endpoints: host -> active and standby partitions by topic."""
    if reply.partitions_by_user_endpoint is None:
        return None
    return {
        e.user_endpoint.host: tuple(
            {p.topic: p.partitions for p in partitions} for partitions in (e.active_partitions, e.standby_partitions)
        )
        for e in reply.partitions_by_user_endpoint
    }


def test_join_without_endpoint_clears_it_and_a_heartbeat_without_keeps_it(world):
    a, b = world.member("a", endpoint=("host-a", 1)), world.member("b")
    a.join()
    b.join()
    a.ack()
    epoch, known = world.group().group_epoch, world.group().endpoint_epoch
    assert a.beat().error_code == 0
    assert (world.group().group_epoch, world.group().endpoint_epoch) == (epoch, known), "null: it stays"
    a.endpoint = None
    reply = a.join()
    assert (world.group().group_epoch, reply.endpoint_information_epoch) == (epoch + 1, known + 1)
    assert endpoints(reply) == {}
    assert world.group().members["a"].member_metadata.user_endpoint is None


def test_other_endpoint_is_told_though_no_task_moves(world):
    a, b = world.member("a", endpoint=("host-a", 1)), world.member("b", endpoint=("host-b", 1))
    a.join()
    b.join()
    a.beat()
    a.ack()
    b.beat()
    known = a.beat().endpoint_information_epoch
    moved = StreamsGroupHeartbeatRequestEndpoint(host="elsewhere", port=1)
    reply = b.beat(user_endpoint=moved)
    assert (reply.endpoint_information_epoch, reply.active_tasks) == (known + 1, None)
    told = {"host-a": ({"in": [0, 1]}, {}), "elsewhere": ({"in": [2, 3]}, {})}
    assert endpoints(reply) == endpoints(a.beat()) == told
    assert endpoints(b.beat(user_endpoint=moved)) is None, "it is no other one any more"


def test_same_endpoint_and_tasks_of_a_member_that_joins_again_are_no_news(world):
    a = world.member("a", endpoint=("host-a", 1))
    a.join()
    a.beat()
    known = world.group().endpoint_epoch
    assert (a.join().endpoint_information_epoch, world.group().endpoint_epoch) == (known, known)


def test_endpoint_of_a_static_member_is_told_once_when_another_takes_over(world):
    world.member("b", endpoint=("host-b", 1)).join()
    a = world.member("a", "p", endpoint=("host-a", 1), instance="i")
    a.join()
    a.go_for_a_while()
    successor = world.member("a2", "p", endpoint=("host-a", 1), instance="i")
    assert sorted(endpoints(successor.join()) or ()) == ["host-a", "host-b"]
    assert len(successor.beat(endpoint_information_epoch=99).partitions_by_user_endpoint) == 2


def test_topic_of_which_a_member_has_no_partition_is_not_told_with_its_endpoint():
    shape = topology(subtopology("0", "in", "small"))
    with StreamsWorld({"in": 4, "small": 1}) as world:
        a, b = world.member("a", shape=shape, endpoint=("host-a", 1)), world.member("b", shape=shape)
        b.endpoint = ("host-b", 1)
        a.join()
        b.join()
        a.beat()
        a.ack()
        assert endpoints(b.beat(endpoint_information_epoch=99)) == {
            "host-a": ({"in": [0, 1], "small": [0]}, {}),
            "host-b": ({"in": [2, 3]}, {}),
        }


def test_warmup_tasks_of_another_broker_are_told_as_standbys():
    held = TasksTupleWithEpochs({"0": {0: 2}}, {"0": frozenset({2})}, {"0": frozenset({1})})
    with StreamsWorld({"in": 4}) as world:
        a = world.member("a", endpoint=("host-a", 1))
        a.join()
        world.world.broker.groups.of("g").append([current_record("g", "a", CurrentAssignment(2, 1, STABLE, held))])
        world.world.run()
        assert endpoints(a.beat(endpoint_information_epoch=99)) == {"host-a": ({"in": [0]}, {"in": [1, 2]})}
