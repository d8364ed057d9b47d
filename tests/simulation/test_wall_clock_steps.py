"""A wall clock that steps, both ways: what waits goes by the time that passes, what lies on disk by the wall clock."""

from __future__ import annotations

from typing import Any

import pytest
from consumer_kit import Groups
from core_broker import Client, World, make_topic
from core_requests import commit_request, committed, fetch_request, produce_request
from txn_kit import Producer, state_of

from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
)
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest

HOUR_MS = 3_600_000
STEPS = pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS, 30 * 24 * HOUR_MS, -30 * 24 * HOUR_MS])


def world_with_topic(**settings: str) -> tuple[World, Client]:
    world = World("os", **settings)
    client = Client(world)
    make_topic(client)
    return world, client


def step(world: World, ms: int) -> None:
    """The wall clock is set to another time; nothing passes."""
    world.clock.step(ms)
    world.run()


@STEPS
@pytest.mark.parametrize("shortcuts", [False, True])
def test_parked_fetch_waits_as_long_as_it_asked(step_ms, shortcuts):
    world, client = world_with_topic(shortcuts=shortcuts)
    for _ in range(4):  # the later ones are served by the shortcut
        client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
        world.run()
        step(world, step_ms)
        assert client.replies() == []
        world.advance(499)
        assert client.replies() == []
        world.advance(1)
        assert len(client.replies()) == 1


def join(client: Client, member_id: str = "") -> Any:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    client.send(request, 3)
    client.world.run()
    return client.replies()


def heartbeat(client: Client, member: Any) -> int:
    request = HeartbeatRequest(group_id="g", generation_id=member.generation_id, member_id=member.member_id)
    return int(client.call(request, 4).error_code)


@STEPS
def test_session_of_a_classic_member_lasts_as_long_as_it_said(step_ms):
    world, client = world_with_topic()
    (member,) = join(client)
    sync = SyncGroupRequest(group_id="g", generation_id=member.generation_id, member_id=member.member_id)
    assert client.call(sync, 3).error_code == 0
    for _ in range(3):
        step(world, step_ms)
        world.advance(9_000)
        assert heartbeat(client, member) == 0
    step(world, step_ms)
    world.advance(10_001)
    assert heartbeat(client, member) == 25


@STEPS
def test_rebalance_ends_when_its_timeout_has_passed(step_ms):
    world, client = world_with_topic()
    (first,) = join(client)
    second = Client(world)
    assert join(second) == []  # it waits for the first member, which sends heartbeats and does not join
    step(world, step_ms)
    for _ in range(2):
        world.advance(9_000)
        assert heartbeat(client, first) == 27
        assert second.replies() == []
    world.advance(3_000)
    assert [each.error_code for each in second.replies()] == [0]


@STEPS
def test_session_of_a_consumer_group_member_lasts_as_long_as_it_said(step_ms):
    world, client = world_with_topic()

    def beat(member_id: str, epoch: int, **more: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **more)
        return client.call(request, 1)

    answer = beat("m", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[])
    for _ in range(3):
        step(world, step_ms)
        world.advance(44_000)
        assert beat("m", answer.member_epoch).error_code == 0
    step(world, step_ms)
    world.advance(45_001)
    assert beat("m", answer.member_epoch).error_code == 25


@pytest.mark.parametrize("step_ms", [-HOUR_MS, -30 * 24 * HOUR_MS])
def test_assignment_after_the_clock_went_back_does_not_wait_for_the_old_time(step_ms):
    with Groups({"t": 4}, group_consumer_assignment_interval_ms="1000") as groups:
        groups.joined("a")
        groups.world.clock.step(step_ms)
        groups.joined("a", "b")


@STEPS
@pytest.mark.parametrize("restarts", [False, True])
def test_transaction_times_out_when_its_time_has_passed(step_ms, restarts):
    world, client = world_with_topic(shortcuts=True)
    make_topic(client, "u")
    producer = Producer(client)
    assert producer.init(timeout_ms=60_000) == 0
    assert producer.produce(b"1") == 0
    world.advance(30_000)
    step(world, step_ms)
    assert producer.produce(b"2") == 0
    assert producer.produce(b"3", topic="u") == 0  # adds a partition: the transaction goes on
    if restarts and step_ms < 0:
        client = Client(world.restart())
        world = client.world
        world.advance(30_000)
    world.advance(29_000)
    assert state_of(client).transaction_state == "Ongoing"
    world.advance(10_000 if not restarts else 20_000)
    assert state_of(client).transaction_state in ("CompleteAbort", "PrepareAbort")


def test_offsets_and_records_expire_by_the_wall_clock():
    world, client = world_with_topic()
    client.call(commit_request("g", {0: 5}), 8)
    client.call(produce_request("t", 0, b"v"), 9)
    step(world, 30 * 24 * HOUR_MS)
    assert committed(world, "g") == {0: 5}  # the next check comes in ten minutes
    world.advance(600_000)
    assert committed(world, "g") == {}
    topic = world.broker.metadata.topics["t"]
    assert world.broker.partitions.get(topic, 0).log_start_offset == 1


def test_wall_clock_that_went_back_expires_nothing_before_its_time():
    world, client = world_with_topic()
    client.call(commit_request("g", {0: 5}), 8)
    step(world, -HOUR_MS)
    world.advance(HOUR_MS)
    assert committed(world, "g") == {0: 5}
