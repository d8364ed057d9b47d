"""Snapshots, forks and restores: neither of two clusters sees the other, and each is as if its history were its alone.

Random work is done in a family of clusters: appends, commits, transactions, cleaning, retention, deletions, restarts,
and snapshots, forks and restores in between. Each cluster notes its own history, in which a fork or a restore is a kill
and a start. At the end the history is played to a cluster that has nobody beside it, and both must hold the same, byte
by byte in the logs. In memory, where clusters share bytes, and on a disk, where they share files.
"""

from __future__ import annotations

import errno
import hashlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import core_broker
import pytest
from budget import IS_DEEP
from core_broker import Client, World
from core_pair import log_bytes
from core_requests import commit_request
from txn_kit import Producer

from broker.cluster.data.copies import copy_directory
from protocol.errors import KafkaError
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from protocol.record_batch import build_batch
from storage.clock.manual_clock import ManualClock
from storage.files.env import Env, Rng, SystemFiles
from storage.files.sim_env import MemoryFiles
from storage.files.troubles import Trouble

START_MS = 1_700_000_000_000
SETTINGS = {
    "log_cleaner_backoff_ms": "200",
    "log_retention_check_interval_ms": "300",
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": "100",
    "transaction_state_log_num_partitions": "2",
}
TOPICS = {
    "kept": {"internal.segment.bytes": "2000", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "short": {"internal.segment.bytes": "1500", "retention.bytes": "4000"},
    "t": {},
}
STEPS = 70
SEEDS = 40 if IS_DEEP else 20
MOST_CLUSTERS = 4

Step = tuple[Any, ...]
MakeFiles = Callable[[], tuple[Any, str]]  # where a cluster's data lies: files, and a path in them


class Branch:
    """One cluster, and what has happened to it."""

    def __init__(self, place: tuple[Any, str], history: list[Step], *, now_ms: int = START_MS, starts: int = 0) -> None:
        self.files, self.path = place
        self.history = history
        self.starts = starts
        self.world = self._start(now_ms)

    def _start(self, now_ms: int) -> World:
        clock = ManualClock(now_ms)
        if hasattr(self.files, "clock"):  # files on disk have the system's
            self.files.clock = clock
        env = Env(clock, Rng(self.starts), self.files)
        core_broker.DATA = self.path
        try:
            world = World("os", env, **SETTINGS)
        finally:
            core_broker.DATA = "/data"
        self.client = Client(world)
        self.producers = {name: Producer(self.client, name) for name in ("tx", "ty")}
        return world

    # -- steps, of which the answers do not matter: they follow from the state

    def do(self, step: Step) -> None:
        self.history.append(step)
        getattr(self, "_" + step[0])(*step[1:])

    def _create(self, name: str) -> None:
        config = [CreatableTopicConfig(name=key, value=value) for key, value in TOPICS[name].items()]
        wanted = CreatableTopic(name=name, num_partitions=2, replication_factor=1, configs=config)
        self.client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7)

    def _delete(self, name: str) -> None:
        self.client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000), 6)

    def _append(self, topic: str, index: int, key: int, size: int) -> None:
        records = build_batch([(b"k%d" % key, bytes([key]) * size)], timestamp_ms=self.world.clock.now_ms())
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])
        self.client.call(ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[data]), 9)

    def _fail(self, topic: str, index: int) -> None:
        """A write that finds the disk full: a part of it is cut off again."""
        self.files.troubles[self.path + "/"] = lambda kind, path, size: Trouble(errno.ENOSPC, short_bytes=7)
        self._append(topic, index, 0, 300)
        self.files.troubles.clear()

    def _commit(self, group: str, index: int, offset: int) -> None:
        self.client.call(commit_request(group, {index: offset}), 8)

    def _cut(self, topic: str, index: int, offset: int) -> None:
        wanted = DeleteRecordsTopic(
            name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)]
        )
        self.client.call(DeleteRecordsRequest(topics=[wanted], timeout_ms=1000), 2)

    def _work(self, name: str, topic: str, index: int, value: int) -> None:
        """A batch within a transaction, and an offset."""
        producer = self.producers[name]
        if producer.id < 0:
            producer.init()
        producer.produce(b"%d" % value, topic=topic, index=index)
        producer.send_offsets({index: value})

    def _end(self, name: str, commit: bool) -> None:
        if self.producers[name].id >= 0:
            self.producers[name].end(commit=commit)

    def _advance(self, ms: int) -> None:
        self.world.advance(ms)

    def _restart(self) -> None:
        """kill -9 and a start; after a fork or a restore, the start alone."""
        now_ms = self.world.clock.now_ms() + 1000
        self.starts += 1
        self.world.run()
        if isinstance(self.files, MemoryFiles):
            self.files = self.files.crash()
        else:  # another process: nothing of this one's is written to again, and no descriptor stays
            self.files.close()
            self.world.broker.directory._lock.release()
        self.world = self._start(now_ms)

    # -- copies

    def fork(self, place: tuple[Any, str]) -> Branch:
        """Another cluster that goes on from this one."""
        files, path = place
        self.world.broker.directory.copy_to(files, path)
        return self._next(place, list(self.history), self.world.clock.now_ms(), self.starts)

    @staticmethod
    def _next(place: tuple[Any, str], history: list[Step], now_ms: int, starts: int) -> Branch:
        return Branch(place, [*history, ("restart",)], now_ms=now_ms + 1000, starts=starts + 1)

    # -- what it holds

    def state(self) -> dict[str, Any]:
        """Logs and what they say; everything is loaded for it."""
        world = self.world
        world.run()
        broker = world.broker
        found: dict[str, Any] = {"cluster": broker.cluster_id, "now": world.clock.now_ms()}
        for topic in broker.metadata.topics.values():
            if topic.internal:
                for index, shard in enumerate(broker.shards_of(topic.name)):
                    if broker.directory.exists(topic.name, index):
                        shard.require()
                        found[shard.name] = log_bytes(shard.log)
                continue
            for index in range(len(topic.partitions)):
                try:
                    log = broker.partitions.get(topic, index).log
                except KafkaError as error:
                    found[f"{topic.name}-{index}"] = error.code
                    continue
                found[f"{topic.name}-{index}"] = (
                    topic.topic_id,
                    log.log_start_offset,
                    log.end_offset,
                    [segment.base_offset for segment in log.segments],
                    log_bytes(log),
                )
        return {**found, **world.fingerprints()}


class Snapshot:
    """A stored copy."""

    def __init__(self, branch: Branch, place: tuple[Any, str]) -> None:
        self.place = place
        branch.world.broker.directory.copy_to(*place)
        self.history, self.starts = list(branch.history), branch.starts
        self.now_ms = branch.world.clock.now_ms()
        self.digest = digest(*place)

    def begin(self, place: tuple[Any, str]) -> Branch:
        """A cluster that begins from it."""
        copy_directory(*self.place, *place)
        return Branch._next(place, self.history, self.now_ms, self.starts)


def digest(files: Any, path: str) -> str:
    """Of all names and bytes below a path."""
    found = hashlib.sha256()
    for name in files.listdir(path):
        folder, _, index = name.rpartition("-")
        names = [f"{name}/{each}" for each in files.listdir(f"{path}/{name}")] if folder and index.isdigit() else [name]
        for each in names:
            found.update(repr((each, files.read_file(f"{path}/{each}"))).encode())
    return found.hexdigest()


def random_step(rng: random.Random) -> Step:
    topic, index = rng.choice([*TOPICS]), rng.randrange(2)
    name = rng.choice(["tx", "ty"])
    steps: dict[str, tuple[Step, int]] = {
        "append": (("append", topic, index, rng.randrange(6), rng.choice([10, 300, 900])), 30),
        "commit": (("commit", f"g{rng.randrange(3)}", index, rng.randrange(100)), 12),
        "work": (("work", name, topic, index, rng.randrange(100)), 12),
        "end": (("end", name, rng.random() < 0.6), 8),
        "cut": (("cut", topic, index, rng.choice([-1, rng.randrange(20)])), 4),
        "delete": (("delete", topic), 2),
        "fail": (("fail", topic, index), 3),
        "create": (("create", topic), 4),
        "advance": (("advance", rng.choice([50, 700, 3000])), 8),
        "restart": (("restart",), 2),
    }
    return rng.choices([step for step, _ in steps.values()], [weight for _, weight in steps.values()])[0]


def play(seed: int, make_place: MakeFiles) -> tuple[list[Branch], list[Snapshot]]:
    """Random work, with snapshots, forks and restores."""
    rng = random.Random(seed)
    branches, snapshots = [Branch(make_place(), [])], list[Snapshot]()
    for name in TOPICS:
        branches[0].do(("create", name))
    for _ in range(STEPS):
        at = rng.randrange(len(branches))
        what = rng.random()
        if what < 0.06:
            snapshots.append(Snapshot(branches[at], make_place()))
        elif what < 0.10 and len(branches) < MOST_CLUSTERS:
            branches.append(branches[at].fork(make_place()))
        elif what < 0.14 and snapshots and len(branches) < MOST_CLUSTERS:
            branches.append(rng.choice(snapshots).begin(make_place()))
        elif what < 0.18 and snapshots:  # a restore: this cluster goes on from the snapshot
            branches[at] = rng.choice(snapshots).begin(make_place())
        else:
            branches[at].do(random_step(rng))
    return branches, snapshots


def alone(history: list[Step]) -> Branch:
    """The same history, with nobody beside."""
    branch = Branch((MemoryFiles(), "/data"), [])
    for step in history:
        branch.do(step)
    return branch


def check(seed: int, make_place: MakeFiles) -> int:
    """Play, and compare. Answers how many clusters came from a copy."""
    branches, snapshots = play(seed, make_place)
    for branch in branches:
        state, expected = branch.state(), alone(list(branch.history)).state()
        wrong = [name for name in expected.keys() | state.keys() if state.get(name) != expected.get(name)]
        assert not wrong, (seed, wrong, branch.history)
    for snapshot in snapshots:
        assert digest(*snapshot.place) == snapshot.digest, f"seed {seed}: a snapshot has changed"
    return sum(("restart",) in branch.history for branch in branches)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Scans after a start tell of transactions that were cut short, on purpose."""
    caplog.set_level("ERROR")


@pytest.mark.heavy
def test_clusters_in_memory_share_bytes_and_see_nothing_of_each_other() -> None:
    copies = sum(check(seed, lambda: (MemoryFiles(), "/data")) for seed in range(SEEDS))
    assert copies > SEEDS


@pytest.mark.heavy
def test_clusters_on_disk_share_files_and_see_nothing_of_each_other(tmp_path: Path) -> None:
    disk, places = SystemFiles(64), 0

    def make_place() -> tuple[Any, str]:
        nonlocal places
        places += 1
        return disk.share(), str(tmp_path / f"{places}")

    for seed in range(100, 100 + SEEDS // 3):
        check(seed, make_place)
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
    disk.close()
