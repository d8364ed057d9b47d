"""Moving the clock waits for what became due, and not for other work, which never ends under traffic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest
from core_broker import Client, World, make_topic
from txn_kit import Producer

from broker.cluster.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from broker.coordinator.runtime import UNLOADED
from broker.shell.control.of_cluster import clock
from broker.shell.control.routes import Call
from broker.turn.jobs import Jobs
from broker.turn.timers import MOST_A_RUN, Timers
from storage.clock.clock import SystemClock
from storage.clock.movable_clock import MovableClock
from storage.files.sim_env import sim_env

NOW_MS = 1000


class Busy:
    """A broker that always has some job and some sync."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.steps = 0
        self.has_jobs = True
        self.timers, self.jobs = Timers(), Jobs()
        self.durability = SimpleNamespace(idle=False, syncs_done=0)
        self.turn = SimpleNamespace(timers=self.timers, waits=self.timers, jobs=self.jobs, durability=self.durability)

    def job(self, name: str, steps: int, follow_ups: int = 0) -> Iterator[None]:
        yield from repeat(None, steps)
        self.done.append(name)
        if follow_ups:
            self.jobs.add(self.job(f"{name}+", steps, follow_ups - 1))

    async def step(self, seconds: float) -> None:
        """In place of asyncio.sleep: the broker gets one step on."""
        self.steps += 1
        self.timers.run_due(NOW_MS)
        if self.has_jobs and len(self.jobs.waiting) < 3:
            self.jobs.add(self.job("traffic", 20))
        self.jobs.step()
        self.durability.syncs_done += 1


async def settles(busy: Busy, monkeypatch: pytest.MonkeyPatch, limit_s: float = 2.0) -> bool:
    loop = SimpleNamespace(time=lambda: busy.steps / 1000)
    monkeypatch.setattr(clock, "asyncio", SimpleNamespace(sleep=busy.step, get_running_loop=lambda: loop))
    cluster: Any = SimpleNamespace(
        broker=busy, is_removed=False, clock=SimpleNamespace(steady_ms=lambda: NOW_MS, wait_ms=lambda: NOW_MS)
    )
    return bool(await clock.settle(cluster, limit_s))


async def test_clock_settles_under_traffic_once_the_due_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy()
    busy.timers.at(NOW_MS, lambda due_ms, now_ms: busy.jobs.add(busy.job("due", 30, follow_ups=2)))
    busy.timers.at(NOW_MS + 1, lambda due_ms, now_ms: None)  # not due
    assert await settles(busy, monkeypatch)
    assert [name for name in busy.done if name != "traffic"] == ["due", "due+", "due++"]


async def test_clock_settles_once_syncs_that_began_later_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy()
    busy.has_jobs = False
    assert await settles(busy, monkeypatch)
    assert busy.durability.syncs_done == 2 * clock.FOLLOW_UPS


async def test_clock_does_not_settle_while_due_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy()
    busy.jobs.add(busy.job("endless", 10**9))
    assert not await settles(busy, monkeypatch, limit_s=0.3)
    assert "endless" not in busy.done


async def test_clock_is_moved_once_the_coordinators_of_a_start_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions begin when their group is loaded: by a move before that they would not end."""
    moved_at: list[int] = []
    busy = Busy()
    busy.has_jobs, busy.durability.idle = False, True
    now = MovableClock(SystemClock())
    broker = SimpleNamespace(is_loading=True, turn=busy.turn)
    cluster: Any = SimpleNamespace(broker=broker, is_removed=False, clock=now)
    cluster.clock_moved = lambda: moved_at.append(busy.steps)
    cluster.sweep, cluster.is_sweeping = lambda: None, False

    async def step(seconds: float) -> None:
        await busy.step(seconds)
        broker.is_loading = busy.steps < 5

    loop = SimpleNamespace(time=lambda: busy.steps / 1000)
    monkeypatch.setattr(clock, "asyncio", SimpleNamespace(sleep=step, get_running_loop=lambda: loop))
    await clock.move_clock(cluster, Call({}, {}, {"advance_ms": 1000}))
    assert moved_at == [5]


class HeldWorld(World):
    """A broker whose background jobs do one step when told."""

    steps = 0

    def may_step(self) -> bool:
        self.steps -= 1
        return self.steps >= 0


def test_start_is_loading_until_groups_and_transactions_are_loaded() -> None:
    world = World("os")
    client = Client(world)
    make_topic(client, "t")
    for number in range(5):
        producer = Producer(client, f"tx{number}")
        producer.init()
        assert producer.send_offsets({0: 1}, f"g{number}") == {0: 0}
    world.broker.close()
    again = HeldWorld("os", sim_env(files=world.files.crash()))
    steps = 0
    while again.broker.is_loading:
        again.steps = 1
        again.run()
        steps += 1
    assert steps > 5
    of_topic = {OFFSETS_TOPIC: again.broker.groups.shards, TRANSACTIONS_TOPIC: again.broker.transactions.shards}
    for topic, shards in of_topic.items():
        with_log = [shard for index, shard in enumerate(shards) if again.broker.directory.exists(topic, index)]
        assert len(with_log) > 2
        assert all(shard.state is not UNLOADED for shard in with_log)
    assert not world.broker.is_loading


def test_next_deadline_is_the_earliest_that_was_neither_made_nor_cancelled() -> None:
    timers = Timers()
    assert timers.next_deadline_ms is None
    timers.at(1, lambda due_ms, now_ms: None)  # of upkeep
    made = [timers.at(due_ms, lambda due_ms, now_ms: None, is_deadline=True) for due_ms in (5, 3, 9)]
    assert timers.next_deadline_ms == 3
    timers.cancel(made[1])
    assert timers.next_deadline_ms == 5
    timers.run_due(5)
    assert timers.next_deadline_ms == 9
    for due_ms in range(10_000, 12_000):
        timers.cancel(timers.at(due_ms, lambda due_ms, now_ms: None, is_deadline=True))
        timers.at(due_ms, lambda due_ms, now_ms: None, is_deadline=True)
        timers.run_due(due_ms)
    assert len(timers._deadlines) < 1000, "what is made or cancelled is forgotten"


def test_calls_that_are_due_at_once_are_made_in_order_and_so_many_a_run() -> None:
    """100,000 sessions that ended together took steps of 115 ms."""
    timers, made = Timers(), list[int]()
    for number in range(2 * MOST_A_RUN + 50):
        timers.cancel(timers.at(5, lambda *_: made.append(-1)))  # costs nothing
        timers.at(5, lambda *_, number=number: made.append(number))
    sizes = []
    while timers.next_ms is not None and timers.next_ms <= 5:
        timers.run_due(5)
        sizes.append(len(made))
    assert made == list(range(2 * MOST_A_RUN + 50))
    assert sizes == [MOST_A_RUN, 2 * MOST_A_RUN, len(made)]
