"""Random histories of one shard of groups, compared with a plain model after each step.

Commits and transactions with offsets meet images taken in steps, cleaning, failed writes, kills, power cuts, starts in
slices, forks, topics and groups that go and come back, leaders that move and clocks that are set.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import Any

import pytest
from budget import short_and_slow
from core_broker import DATA, Client, SimulatedCrash, make_topic
from core_requests import commit_request
from offset_commits_history import GROUPS, INTERNAL, PARTITIONS, TOPICS, OffsetCommits
from offsets_model_kit import Key, OffsetModel, told_offsets
from stepped_kit import Pace, SteppedWorld, ended, let_load_at_once, move_leader
from txn_kit import Producer

from broker.coordinator import runtime
from broker.coordinator.offsets import imaging, snapshots
from broker.coordinator.runtime import READY
from broker.upkeep import maintenance
from storage.segments import recovery, scan

STEPS = 120
NEVER_MS = "604800000"
LOADS_OR_FAILS = {0, 14, 16}  # what a commit may be told while its shard is loaded, or when it cannot be written


class OffsetHistory(OffsetCommits):
    """One history, and what it should have come to."""

    WEIGHTS = (
        "commit:10 send:14 end:9 init:1 delete_offsets:3 delete_group:1 remake_topic:1 "
        "image:4 image_steps:10 advance:12 fail:4 work:4 fork:2 set_clock:1 read:2 "
        "crash:4 restart:1 power:3 kill:4 slices:3 move:4"
    )

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(seed)
        rng = self.rng
        self.model = OffsetModel()
        self.now = 0  # counts what is written
        self.written: set[tuple[Key, int]] = set()
        self.generation = 0  # of producers
        self.has_synced = False  # what there was at some time; a fork begins without
        self.image: Any = None  # one that is being taken
        self.outlived_until = 0  # until this line the last image should meet what comes after it
        self.node = 0
        monkeypatch.setattr(runtime, "COST_A_SLICE", rng.choice([1, 20, 4000]))
        monkeypatch.setattr(imaging, "LEAST_RECORDS", rng.choice([10, 60, 10_000, 10_000]))
        self.monkeypatch = monkeypatch
        self.at_once_bytes = rng.choice([0, 0, 3000, 1 << 20])
        self.load_at_once(self.at_once_bytes)
        self.pace = Pace(rng, rng.choice([None, (0, 1, 3, 10, 100)]))
        self.world = SteppedWorld(
            self.flush,
            pace=self.pace,
            brokers=rng.choice([1, 2]),
            offsets_topic_num_partitions="1",
            transaction_state_log_num_partitions="1",
            log_cleaner_delete_retention_ms="1000",
            producer_id_expiration_ms=rng.choice(["3000", "86400000"]),
            transactional_id_expiration_ms=NEVER_MS,
            log_flush_offset_checkpoint_interval_ms="2000",
            message_max_bytes=rng.choice(["1000012", "1000012", "360"]),
        )
        self.connect()
        Producer(self.client, "first").init()  # makes the topic of transactions, which can move then
        self.move(0)
        for topic in TOPICS:
            make_topic(self.client, topic, len(PARTITIONS))

    def weights(self) -> dict[str, int]:
        """More of what an image may not outlive: failed writes while it is taken, transactions that end after it."""
        weights = super().weights()
        if self.image is not None:
            weights |= {"fail": 20, "image_steps": 20}
        elif len(self.lines) < self.outlived_until:
            weights |= {"image": 0, "end": 20, "work": 20, "crash": 8, "delete_offsets": 0, "power": 0}
        elif self.model.pending:
            weights |= {"image": 10}
        return weights

    def load_at_once(self, most_bytes: int) -> None:
        """From the next start on: larger logs of groups are loaded in slices, and may have images."""
        let_load_at_once(self.monkeypatch, most_bytes)

    def connect(self) -> None:
        super().connect()
        self.image = None
        if self.node:
            self.client = Client(self.world, self.node)
            for producer in self.producers.values():
                producer.client = self.client

    def places(self) -> list[Key]:
        """Some partitions of a topic, for a group."""
        group, topic = self.rng.choice(GROUPS), self.rng.choice(TOPICS)
        found = [(group, topic, p) for p in self.rng.sample(PARTITIONS, self.rng.randint(1, len(PARTITIONS)))]
        self.note(repr(group), topic, [p for _, _, p in found])
        return found

    def value(self, places: Iterable[Key]) -> int:
        """A value that was never written before, for some partitions."""
        self.now += 1
        self.written.update((key, 1000 + self.now) for key in places)
        return 1000 + self.now

    # -- the answers

    def answers(self, stable: bool) -> dict[Key, tuple[int, int]]:
        return told_offsets(self.client, GROUPS, TOPICS, PARTITIONS, stable=stable)

    def difference(self, model: OffsetModel) -> dict[Any, Any]:
        """Key -> (what is told, what should be); and which offsets are told to be pending, where that is wrong."""
        told = self.answers(stable=False)
        assert not {key for key, (_, code) in told.items() if code}
        wanted = {key: model.committed.get(key, (0, -1))[1] for key in told}
        wrong: dict[Any, Any] = {k: (told[k][0], wanted[k]) for k in told if told[k][0] != wanted[k]}
        unstable = {key for key, (_, code) in self.answers(stable=True).items() if code}
        pending = {key for offsets in model.pending.values() for key in offsets}
        if unstable != pending:
            wrong["pending"] = f"too many {sorted(unstable - pending)}, too few {sorted(pending - unstable)}"
        return wrong

    def check(self) -> None:
        wrong = self.difference(self.model)
        assert not wrong, wrong

    # -- what the broker does

    def take_image(self) -> Any:
        shard = self.world.broker.groups.shards[0]
        return imaging.take_image(shard) if shard.state is READY else iter(())

    def do_image(self) -> None:
        if self.image is None:
            self.image = self.take_image()
            next(self.image, None)
            if self.model.pending:
                self.outlived_until = len(self.lines) + self.rng.choice([0, 25])

    def do_image_steps(self) -> None:
        for _ in range(self.rng.choice([1, 3, 50])):
            if self.image is not None and next(self.image, "end") == "end":
                self.image = None
            self.world.run()

    def do_advance(self) -> None:
        for _ in range(self.rng.choice([1, 3])):
            self.world.advance(self.rng.choice([300, 1100, 2100, 4100]))

    def do_set_clock(self) -> None:
        self.world.clock.step(self.rng.choice([-3_600_000, 60_000]))

    def move(self, node: int) -> None:
        """The log of offsets and that of transactions get another leader."""
        for name in INTERNAL:
            move_leader(self.client, name, node + 1)
        self.node = node
        self.go_on(self.world)

    def do_move(self) -> None:
        if self.world.brokers > 1:
            self.move(1 - self.node)

    def do_fork(self) -> None:
        files = self.world.copied()
        self.has_synced = False
        if self.is_likely(0.5):  # the origin goes on, and must not change the copy
            for _ in range(3):
                self.commit(self.places(), 5)
            self.world.advance(2100)
        self.go_on(self.world.again(files))

    # -- what ends the process

    def do_power(self) -> None:
        """With flush=os some acknowledged writes are lost. What is told after that is right, and does not change."""
        if self.flush == "fsync":
            return super().do_power()
        if not self.has_synced:
            with self.pace.quick():
                self.world.advance(2100)
            self.has_synced = True
            return None
        if self.is_likely(0.7):  # an image of what is about to be lost
            self.do_commit()
            for _ in self.take_image():
                self.world.run()
        files = self.world.files
        partitions = [f"{DATA}/{name}" for name in files.listdir(DATA) if name.rpartition("-")[2].isdigit()]
        for directory in ("", DATA, *partitions):
            files.sync_dir(directory)  # a file system's journal does this by itself within seconds
        self.producers.clear()
        self.generation += 1
        if self.is_likely(0.5):  # what is left is small, and grows
            self.load_at_once(1 << 20)
        self.go_on(self.world.crash(lose_unsynced=True))
        self.load_at_once(self.at_once_bytes)
        self.move(self.node)
        for topic in TOPICS:
            if topic not in self.world.broker.metadata.topics:
                make_topic(self.client, topic, len(PARTITIONS))
        self.model = OffsetModel()
        self.now += 1
        for key, (value, _) in self.answers(stable=False).items():
            if value != -1:
                assert (key, value) in self.written, (key, value)
                self.model.committed[key] = self.now, value
        # transactions that the coordinator may have forgotten stay open
        self.model.pending[-1] = {key: (0, None) for key, (_, code) in self.answers(stable=True).items() if code}
        return None

    def do_kill(self) -> None:
        """In the middle of something, which has happened or not."""
        act, places = self.rng.choice(["commit", "advance", "delete_group", "image"]), self.places()
        group, value = places[0][0], self.value(places)
        self.note("in", act)
        after = self.model.copy()
        self.world.files.kill_at(self.rng.randint(1, 9), short_bytes=self.rng.choice([0, 0, 50, 200]))
        if act == "commit":
            for key in places:
                after.commit(key, self.now, value)
            done = ended(lambda: self.commit(places, value), SimulatedCrash)
        elif act == "delete_group":
            codes: list[int] = []
            done = ended(lambda: codes.append(self.delete_group(group)), SimulatedCrash)
            if codes in ([], [0]):
                after.forget(group=group)
        elif act == "image":
            done = ended(lambda: [self.world.run() for _ in self.take_image()], SimulatedCrash)
        else:
            done = ended(lambda: self.world.advance(4100), SimulatedCrash)
        self.world.files.heal()
        self.go_on(self.world.crash(lose_unsynced=self.loses_power()))
        if done or self.difference(self.model):
            self.model = after

    def do_slices(self) -> None:
        """A start whose recovery and loads go on step by step, with commits, forks and failed writes between."""
        rng = self.rng
        self.has_synced = False
        with self.pace.held():
            new = self.world.crash(lose_unsynced=self.loses_power())
            new.step_jobs(rng.randint(0, 60))
            client = Client(new, self.node)
            for _ in range(rng.randint(1, 12)):
                if self.is_likely(0.3):
                    files = new.copied()
                    if self.is_likely(0.3):
                        new = new.again(files)
                        client = Client(new, self.node)
                if self.is_likely(0.15):
                    new.files.inject(1, error=errno.ENOSPC)
                self.commit_at_once(new, client)
                new.files.heal()
                new.step_jobs(rng.randint(0, 5))
            if self.is_likely(0.3):
                new = new.crash()
        self.go_on(new)

    def commit_at_once(self, world: SteppedWorld, client: Client) -> None:
        """A commit that may be refused while its shard is loaded."""
        places = self.places()
        group, topic, _ = places[0]
        value = self.value(places)
        client.send(commit_request(group, {p: value for _, _, p in places}, topic), 8)
        world.answer()
        for answer in client.replies():  # one, or none: it waits for something, and nobody will know
            codes = {row.error_code for row in answer.topics[0].partitions}
            assert codes <= LOADS_OR_FAILS
            if codes == {0}:
                for key in places:
                    self.model.commit(key, self.now, value)


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch):
    """Everything that goes on in slices has many of them, and the cleaner has something to do."""
    monkeypatch.setattr(maintenance, "LEAST_DIRTY_BYTES", 1000)
    monkeypatch.setattr(snapshots, "GROUPS_A_SLICE", 1)
    monkeypatch.setattr(snapshots, "CELLS_A_SLICE", 1)
    monkeypatch.setattr(imaging, "KEPT_A_SLICE", 2)
    monkeypatch.setattr(recovery, "SLICE", 3)
    monkeypatch.setattr(scan, "SLICE", 3)


@pytest.mark.parametrize("seed", short_and_slow(range(250), 24))
def test_offsets_are_those_of_the_model(seed, monkeypatch):
    history = OffsetHistory(seed, monkeypatch)
    with history.told():
        for _ in range(STEPS):
            history.step()
            history.check()
        history.world.settle()
        with history.pace.quick():
            history.world.check_replay()
        history.lines.append("the end")
        history.do_crash()
        history.check()
