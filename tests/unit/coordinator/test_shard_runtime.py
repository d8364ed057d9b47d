"""The runtime of a shard: its timers, its loading in slices, and what happens to it when its log fails."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request, committed

from broker.coordinator.runtime import LOADING, READY, UNLOADED, Shard
from broker.coordinator.shard_parts import LoneLog
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from protocol.messages.group_admin import DescribeGroupsRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from storage.files.errors import StorageError
from storage.log.log import Log

KEY = b"\0\x63"  # a record type that is nobody's


class Machine:
    """Remembers what it was told; each timer that runs out leaves a record."""

    def __init__(self, timers: list[tuple[str, int]]) -> None:
        self.values: list[bytes | None] = []
        self.rung: list[tuple[Any, int]] = []
        self.timers = timers

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int = -1) -> None:
        self.values.append(value)

    def after_batch(self) -> None:
        """Nothing to assert."""

    def on_timer(self, name: Any, ctx: Any) -> Decision:
        self.rung.append((name, ctx.now_ms))
        return Decision(records=[(KEY, str(name).encode())])

    def on_load(self, ctx: Any) -> Decision:
        return Decision(timers=[(name, ctx.now_ms + ms) for name, ms in self.timers])

    def fingerprint(self) -> list[bytes | None]:
        return self.values


class Bench:
    """One shard of a real broker, over a log and a machine of its own."""

    def __init__(self, flush: str = "os", *timers: tuple[str, int], **settings: Any) -> None:
        self.world = World(flush)
        self.timers = list(timers)
        self.shard = Shard(
            self.world.broker.turn,
            self.world.broker.parked,
            "bench",
            LoneLog(lambda: Log.open(self.world.env, "/data/bench-0")),
            lambda: Machine(self.timers),
            **settings,
        )

    def append(self, *values: bytes) -> None:
        self.shard.append([(KEY, value) for value in values], self.world.clock.now_ms())

    def after(self, ms: int) -> int:
        return self.world.clock.now_ms() + ms

    @property
    def rung(self) -> list[Any]:
        return [name for name, _ in self.shard.machine.rung]


@pytest.fixture
def bench():
    bench = Bench()
    bench.shard.require()
    return bench


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


def test_whoever_keeps_something_of_the_machine_is_told_of_a_reload(bench):
    told = []
    bench.shard.when_reloaded.append(lambda: told.append(bench.shard.state))
    bench.world.files.inject(1)
    bench.append(b"lost")
    bench.world.run()
    assert told == [READY]


def filled(**settings: Any) -> Bench:
    """A shard with 3 MB to replay, not loaded."""
    bench = Bench("os", ("load", 50), **settings)
    bench.shard.require()
    for n in range(60):
        bench.append(*[b"%d" % n + b"v" * 500] * 100)
        bench.world.run()
    assert bench.shard.log.size_bytes > 3_000_000
    bench.shard.machine = Machine([])
    bench.shard.state = UNLOADED
    return bench


def test_whoever_keeps_something_of_the_machine_is_told_of_a_reload_in_slices_when_it_is_done():
    bench = filled()
    with pytest.raises(KafkaError):
        bench.shard.require()
    bench.world.run()
    told = []
    bench.shard.when_reloaded.append(lambda: told.append(bench.shard.state))
    bench.world.files.inject(1)
    bench.append(b"lost")
    bench.world.turn()
    assert (bench.shard.state, told) == (LOADING, [])
    bench.world.run()
    assert told == [READY]


def test_large_log_is_replayed_in_slices_between_which_clients_are_told_to_come_again():
    bench = filled()
    shard = bench.shard
    with pytest.raises(KafkaError) as told:
        shard.require()
    assert told.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    slices = 0
    while shard.state is LOADING:
        slices += 1
        assert bench.world.broker.turn.jobs.step()
        if shard.state is LOADING:
            with pytest.raises(KafkaError):
                shard.require()
    assert slices > 2
    shard.require()
    assert len(shard.machine.values) == 6000
    bench.world.advance(50)
    assert bench.rung == ["load"]


def test_large_log_of_what_must_be_there_at_once_is_replayed_at_once():
    bench = filled(load_at_once_bytes=1 << 62)
    bench.shard.require()
    assert bench.shard.state is READY
    assert len(bench.shard.machine.values) == 6000


@pytest.mark.parametrize("taken", [0, 2])
def test_small_log_is_loaded_in_slices_until_a_request_needs_it(taken):
    bench = filled(load_at_once_bytes=1 << 62)
    shard, jobs = bench.shard, bench.world.broker.turn.jobs
    loading = shard.load()
    next(loading)
    for _ in range(taken):
        assert jobs.step()
    assert shard.state is LOADING
    shard.require()
    assert shard.state is READY
    assert len(shard.machine.values) == 6000
    assert not jobs
    assert list(loading) == []


def test_small_log_that_no_request_needs_is_loaded_in_slices():
    bench = filled(load_at_once_bytes=1 << 62)
    jobs, slices = bench.world.broker.turn.jobs, 0
    for _ in bench.shard.load():
        slices += jobs.step()
    assert slices > 2
    assert len(bench.shard.machine.values) == 6000


def test_load_that_was_overtaken_by_a_reload_changes_nothing():
    bench = filled()
    with pytest.raises(KafkaError):
        bench.shard.require()
    bench.world.broker.turn.jobs.step()
    bench.shard.reload()
    while bench.world.broker.turn.jobs:
        bench.world.broker.turn.jobs.step()
        if bench.shard.state is READY:
            assert len(bench.shard.machine.values) == 6000
            bench.append(b"new")
            break
    bench.world.run()
    assert len(bench.shard.machine.values) == 6001
    assert bench.shard.machine.values[-1] == b"new"


def test_load_that_fails_in_the_background_is_told_to_the_next_who_asks_and_tried_again_for_the_one_after(monkeypatch):
    bench = filled()
    original = Log.batches

    def broken(self: Log, from_offset: int) -> Any:
        for number, found in enumerate(original(self, from_offset)):
            if number == 30:
                raise OSError(5, "Input/output error")
            yield found

    monkeypatch.setattr(Log, "batches", broken)
    with pytest.raises(KafkaError):
        bench.shard.require()
    bench.world.run()
    assert bench.shard.state is UNLOADED
    monkeypatch.setattr(Log, "batches", original)
    with pytest.raises(StorageError, match="Input/output error"):
        bench.shard.require()
    with pytest.raises(KafkaError):
        bench.shard.require()
    bench.world.run()
    assert bench.shard.state is READY
    assert len(bench.shard.machine.values) == 6000


# -- from outside


def test_requests_to_a_group_whose_shard_is_being_loaded_are_told_so_and_served_later(monkeypatch):
    world = World("os")
    client = Client(world)
    make_topic(client, "t", 4)
    client.call(commit_request("g", dict.fromkeys(range(4), 7)), 8)
    again = world.crash()
    shard = again.broker.groups.of("g")
    shard.state = UNLOADED
    shard.load_at_once_bytes = 0
    client = Client(again)
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    for request, version in (
        (question, 8),
        (commit_request("g", {0: 9}), 8),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4),
        (DescribeGroupsRequest(groups=["g"]), 5),
    ):
        client.send(request, version)
    again.turn()
    fetched, commit, beat, described = client.replies()
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert fetched.groups[0].error_code == loading
    assert commit.topics[0].partitions[0].error_code == loading
    assert beat.error_code in (loading, ErrorCode.NONE)  # a heartbeat is better answered than not
    assert described.groups[0].error_code == loading
    again.run()
    assert committed(again, "g") == dict.fromkeys(range(4), 7)


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
