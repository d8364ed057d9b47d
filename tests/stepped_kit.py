"""Worlds whose background jobs go on step by step between requests, as a seed says, and histories that tell themselves.

World.run ends every job before the next request comes, so nothing ever happens in the middle of one. A SteppedWorld
does a few steps at a time. A History draws what happens next; when something is wrong, its lines come with the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from core_broker import DATA, Client, World
from power_cut import power_cut

from broker.coordinator.runtime import Shard
from protocol.messages.reassign import AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic
from storage.files.sim_env import MemoryFiles, sim_env


class Pace:
    """How many steps of the jobs may come before the next request; the same for a world and those that follow it."""

    def __init__(self, rng: Random, choices: Sequence[int] | None = None) -> None:
        """Choices: numbers to draw from. None: all steps, always."""
        self.rng = rng
        self._choices = choices
        self.is_held = False  # nothing runs but what the test runs by hand
        self.is_quick = False  # all steps, for a while

    def draw(self) -> int | None:
        """The number of steps; None: all."""
        return None if self._choices is None or self.is_quick else self.rng.choice(self._choices)

    @contextmanager
    def held(self) -> Iterator[None]:
        """World.run does nothing meanwhile, not even in the start of a process."""
        self.is_held = True
        try:
            yield
        finally:
            self.is_held = False

    @contextmanager
    def quick(self) -> Iterator[None]:
        """World.run ends all jobs meanwhile."""
        self.is_quick = True
        try:
            yield
        finally:
            self.is_quick = False


class SteppedWorld(World):
    """A World at some Pace."""

    def __init__(self, flush: str, env: Any = None, *, pace: Pace, **more: Any) -> None:
        self.pace = pace
        self._left: int | None = None
        super().__init__(flush, env, **more)

    def run(self) -> None:
        """As World.run, with no more steps of jobs than the pace draws; and nothing while it is held."""
        if not self.pace.is_held:
            self._left = self.pace.draw()
            super().run()

    def may_step(self) -> bool:
        """What a client waits for goes on in any case."""
        if self._left is None or self.broker.turn.jobs.is_hurried:
            return True
        self._left -= 1
        return self._left >= 0

    def settle(self) -> None:
        """All that there is to do."""
        with self.pace.quick():
            self.run()

    def answer(self) -> None:
        """What has been asked, with the syncs it waits for, and no job."""
        while self.turn() or self.syncs:
            if self.syncs:
                self.sync()

    def step_jobs(self, most: int) -> None:
        """So many steps of the jobs, or all there are."""
        for _ in range(most):
            if not self.broker.turn.jobs:
                return
            self.broker.turn.begin()
            self.broker.turn.jobs.step()

    def crash(self, *, lose_unsynced: bool = False) -> World:
        """As World.crash; a power cut takes all that was not synced, or at fsync any part of it."""
        if lose_unsynced and self.flush == "fsync" and self.pace.rng.random() < 0.7:
            return self.again(power_cut(self.files, self.pace.rng))
        return super().crash(lose_unsynced=lose_unsynced)

    def again(self, files: MemoryFiles, **settings: str) -> SteppedWorld:
        """A new process on this disk, at the same pace."""
        env = sim_env(self.env.rng.getrandbits(32), self.clock.now_ms() + 1000, files)
        return SteppedWorld(self.flush, env, brokers=self.brokers, pace=self.pace, **{**self.settings, **settings})

    def copied(self) -> MemoryFiles:
        """What a fork of this process begins with."""
        files = MemoryFiles()
        self.broker.directory.copy_to(files, DATA, sync=self.flush == "fsync")
        return files


class History:
    """What happened to one broker, drawn from a seed; `do_NAME` happens as often as its weight says."""

    WEIGHTS = ""  # "NAME:WEIGHT NAME:WEIGHT ..."

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.lines: list[str] = []
        self.world: Any = None
        self.client: Any = None
        self.producers: dict[Any, Any] = {}
        self.flush = self.rng.choice(["os", "fsync"])

    def weights(self) -> dict[str, int]:
        """How often each thing happens now."""
        return {name: int(weight) for name, weight in (each.split(":") for each in self.WEIGHTS.split())}

    def note(self, *words: Any) -> None:
        """Add to the line of what happens now."""
        self.lines[-1] += " " + " ".join(str(word) for word in words)

    def is_likely(self, probability: float) -> bool:
        """Whether what has this probability happens."""
        return self.rng.random() < probability

    def step(self) -> None:
        """The next thing that happens."""
        weights = self.weights()
        name = self.rng.choices(list(weights), list(weights.values()))[0]
        self.lines.append(f"{len(self.lines)} {name}")
        getattr(self, f"do_{name}")()

    def steps(self, count: int) -> None:
        """So many things that happen."""
        for _ in range(count):
            self.step()

    def go_on(self, world: Any) -> None:
        """Clients come back to a process that has started."""
        self.world = world
        world.settle()
        self.connect()

    def connect(self) -> None:
        """A connection for everybody."""
        self.client = Client(self.world)
        for producer in self.producers.values():
            producer.client = self.client

    @contextmanager
    def told(self) -> Iterator[None]:
        """What goes wrong comes with what happened before it."""
        try:
            yield
        except Exception as error:
            error.add_note(f"seed {self.seed}, flush {self.flush}:\n" + "\n".join(self.lines))
            raise

    # -- ends and starts

    def loses_power(self, probability: float = 0.5) -> bool:
        """Whether a crash is a power cut; only what is synced survives one, so only flush=fsync is asked for more."""
        return self.flush == "fsync" and self.is_likely(probability)

    def do_crash(self) -> None:
        self.go_on(self.world.crash())

    def do_restart(self) -> None:
        self.go_on(self.world.restart())

    def do_power(self) -> None:
        if self.flush == "fsync":
            self.go_on(self.world.crash(lose_unsynced=True))


def ended(act: Callable[[], Any], died: type[BaseException]) -> bool:
    """Whether something ran to its end before the process died."""
    try:
        act()
    except died:
        return False
    return True


def move_leader(client: Client, topic: str, node_id: int) -> None:
    """Another broker leads the first partition of a topic."""
    partition = ReassignablePartition(partition_index=0, replicas=[node_id])
    topics = [ReassignableTopic(name=topic, partitions=[partition])]
    answer = client.call(AlterPartitionReassignmentsRequest(topics=topics), 1)
    assert answer.responses[0].partitions[0].error_code == 0


_remove_tree = MemoryFiles.remove_tree


def remove_backwards(files: MemoryFiles, path: str) -> None:
    """In place of MemoryFiles.remove_tree: no disk says in which order the files of a directory go."""
    for name in reversed(files.listdir(path)):
        if not files.listdir(f"{path}/{name}"):
            files.remove(f"{path}/{name}")
    _remove_tree(files, path)


def let_load_at_once(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    """Shards made from now on load larger logs in slices. Compiled ones do not: their default cannot be replaced."""
    monkeypatch.setitem(getattr(Shard.__init__, "__kwdefaults__", {}), "load_at_once_bytes", most_bytes)
