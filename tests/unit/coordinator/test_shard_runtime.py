"""The runtime of a shard: its timers, and what happens to it when its log fails."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request
from shard_kit import Bench, Machine

from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)

# -- timers


def test_timer_rings_once_when_it_is_due_and_not_before(bench):
    bench.shard.deadlines.set("a", bench.after(100))
    bench.world.advance(99)
    assert bench.rung == []
    bench.world.advance(1)
    assert bench.rung == ["a"]
    bench.world.advance(1000)
    assert bench.rung == ["a"]
    assert bench.shard.machine.values == [b"a"], "what it decided was applied"
    assert bench.shard.log.flushed_offset == 1, "and written"


def test_timer_that_moved_on_rings_only_then(bench):
    bench.shard.deadlines.set("a", bench.after(100))
    for _ in range(10):
        bench.world.advance(50)
        bench.shard.deadlines.set("a", bench.after(100))
    bench.world.advance(99)
    assert bench.rung == []
    bench.world.advance(1)
    assert bench.rung == ["a"]


def test_timer_that_moved_back_rings_early_and_not_again(bench):
    bench.shard.deadlines.set("a", bench.after(1000))
    bench.shard.deadlines.set("a", bench.after(10))
    bench.world.advance(10)
    assert bench.rung == ["a"]
    bench.world.advance(2000)
    assert bench.rung == ["a"]


def test_timer_that_was_cancelled_does_not_ring_unless_it_is_set_again(bench):
    bench.shard.deadlines.set("a", bench.after(100))
    bench.shard.deadlines.set("a", None)
    bench.shard.deadlines.set("never", None)
    bench.world.advance(200)
    assert bench.rung == []
    bench.shard.deadlines.set("a", bench.after(100))
    bench.shard.deadlines.set("a", None)
    bench.shard.deadlines.set("a", bench.after(150))
    bench.world.advance(149)
    assert bench.rung == []
    bench.world.advance(1)
    assert bench.rung == ["a"]


def test_timers_ring_in_the_order_in_which_they_are_due(bench):
    for name, ms in (("late", 30), ("early", 10), ("middle", 20)):
        bench.shard.deadlines.set(name, bench.after(ms))
    bench.world.advance(100)
    assert bench.rung == ["early", "middle", "late"]


def test_one_timer_that_fails_does_not_keep_others_from_ringing(bench, monkeypatch):
    def refuse(name: Any, ctx: Any) -> Decision:
        if name == "bad":
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no")
        return Machine.on_timer(bench.shard.machine, name, ctx)

    monkeypatch.setattr(bench.shard.machine, "on_timer", refuse)
    bench.shard.deadlines.set("bad", bench.after(10))
    bench.shard.deadlines.set("good", bench.after(10))
    bench.world.advance(10)
    assert bench.rung == ["good"]


def test_timers_are_set_anew_by_a_reload_and_those_of_before_are_gone():
    bench = Bench("os", ("load", 50))
    bench.shard.require()
    bench.shard.deadlines.set("old", bench.after(10))
    bench.world.files.inject(1)
    bench.append(b"lost")
    bench.world.run()
    bench.world.advance(49)
    assert bench.rung == []
    bench.world.advance(1)
    assert bench.rung == ["load"]


# -- state and log


def test_failed_write_leaves_the_state_that_the_log_has(bench):
    bench.append(b"kept")
    bench.world.run()
    before = bench.shard.machine
    bench.world.files.inject(1)
    bench.append(b"lost")
    assert bench.shard.machine.values == [b"kept", b"lost"], "state runs ahead of the log within a turn"
    bench.world.run()
    assert bench.shard.machine is not before
    assert bench.shard.machine.values == [b"kept"]
    bench.append(b"next")
    bench.world.run()
    assert bench.shard.machine.values == [b"kept", b"next"]
    assert bench.shard.log.end_offset == 2


# -- from outside


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_parked_members_are_told_to_find_the_coordinator_anew_when_a_write_fails(flush):
    world = World(flush, group_initial_rebalance_delay_ms="3000")
    member, other = Client(world), Client(world)
    make_topic(other, "t", 4)
    other.call(commit_request("g", {0: 1}), 8)
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        group_instance_id="i",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )
    member.send(join, 5)
    world.run()
    assert member.replies() == [], "it waits for more members"
    shard = world.broker.groups.of("g")
    neighbour = next(name for name in map(str, range(100)) if world.broker.groups.of(name) is shard)
    world.files.inject(1)
    other.send(commit_request(neighbour, {0: 2}), 8)
    world.run()
    assert [answer.error_code for answer in member.replies()] == [ErrorCode.NOT_COORDINATOR]
    member.send(join, 5)
    world.advance(3000)
    assert member.replies()[-1].error_code == 0
