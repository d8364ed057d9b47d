"""Transactions and a broker that dies: at every write of a script, at `fsync` with every mixture of what the logs lost.

After each death a new broker starts on what is left. It must end what was decided, abort what was open, and lose
nothing that was answered; every partition gets its marker, a second one only where the first was not known to be
complete.
"""

from __future__ import annotations

import itertools

import pytest
from core_broker import Client, SimulatedCrash, World, make_topic
from txn_kit import ABORT, COMMIT, Producer, committed, fetched, markers_of, states_in_log, transaction_values, visible

from broker.coordinator.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from protocol.messages.coordinator_records import TransactionLogValue
from protocol.record_batch import iter_batches, iter_records
from storage.sim_env import MemoryFiles

OFFSETS = "__consumer_offsets"
PARTITIONS = 2
TIMEOUT_MS = 60_000


class Script:
    """What a client does, and what it was told before the broker died."""

    def __init__(self, client: Client, *, v2: bool) -> None:
        self.producer = Producer(client, v2=v2)
        self.answered: list[str] = []  # the steps that were answered with success

    def run(self, *, commit: bool) -> None:
        producer = self.producer
        self._step("init", producer.init(timeout_ms=TIMEOUT_MS))
        for number in (1, 2):
            if not producer.v2:
                for index in range(PARTITIONS):
                    self._step(f"add {number}", producer.add({"t": [index]})["t", index])
                self._step(f"add offsets {number}", producer.add_offsets())
            for index in range(PARTITIONS):
                self._step(f"produce {number}", producer.produce(f"{number}-{index}".encode(), index=index))
            self._step(f"offsets {number}", *producer.send_offsets({0: number * 10, 1: number * 10 + 1}).values())
            self._step(f"end {number}", producer.end(commit=commit))

    def _step(self, name: str, *codes: int) -> None:
        assert not any(codes), (name, codes)
        self.answered.append(name)


def start(flush: str) -> World:
    world = World(flush, offsets_topic_num_partitions="1", transaction_state_log_num_partitions="1")
    make_topic(Client(world), "t", PARTITIONS)
    return world


def logs_of(files: MemoryFiles) -> list[str]:
    """The directories with something in them that a power cut could take."""
    return sorted(
        {
            path.rpartition("/")[0]
            for path, inode in inodes(files)
            if inode.synced_bytes < len(inode.data) and path.endswith(".log")
        }
    )


def inodes(files: MemoryFiles):
    return [
        (f"{directory}/{name}", inode)
        for directory, names in files._names.items()
        for name, inode in names.items()
        if inode is not None
    ]


def power_cut(files: MemoryFiles, losing: tuple[str, ...]) -> MemoryFiles:
    """The disk after a power cut that took what was not synced in some directories, and nothing elsewhere."""
    after = files.crash()
    before = dict(inodes(files))
    for path, inode in inodes(after):
        if path.rpartition("/")[0] in losing:
            kept = before[path].synced_bytes
            del inode.data[kept:]
            inode.synced_bytes = kept
    return after


def died_at(flush: str, nth: int, *, v2: bool, commit: bool, short_bytes: int = 0):
    """The world after the script was killed in its nth change of the disk; None: it came through."""
    world = start(flush)
    script = Script(Client(world), v2=v2)
    world.files.kill_at(nth, short_bytes=short_bytes)
    try:
        script.run(commit=commit)
    except SimulatedCrash:
        return world, script
    return None


def check(died: World, files: MemoryFiles, script: Script, *, commit: bool) -> None:
    """A new broker starts on what was left: it is as transactions promise, now and when all has timed out."""
    was_deciding = last_state(files) in (PREPARE_COMMIT, PREPARE_ABORT)
    world = died.again(files)
    client = Client(world)
    order_is_kept(world)
    # what was decided is over by now; what was open is over when its time is
    world.advance(TIMEOUT_MS + 1)
    states = states_in_log(world) if world.broker.transactions.shards else []
    assert not states or states[-1] in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT), states
    ended = [state for state in states if state in (COMPLETE_COMMIT, COMPLETE_ABORT)]
    # nothing hangs: the last stable offset is the end, no offset is unstable
    for index in range(PARTITIONS):
        answer = fetched(client, "t", index)
        assert answer.error_code == 0
        assert answer.last_stable_offset == answer.high_watermark
    offsets = committed(client, partitions=(0, 1), stable=True)
    assert all(code == 0 for _, code in offsets.values())
    # all of a transaction or nothing, everywhere alike
    seen = [visible(client, "t", index) for index in range(PARTITIONS)]
    decided = ended.count(COMPLETE_COMMIT)
    for index in range(PARTITIONS):
        assert seen[index] == [f"{n}-{index}".encode() for n in range(1, decided + 1)]
        assert offsets[index][0] == (decided * 10 + index if decided else -1)
    # what was answered is so
    answered = sum(step.startswith("end") for step in script.answered)
    assert len(ended) >= answered
    assert ended[:answered] == [COMPLETE_COMMIT if commit else COMPLETE_ABORT] * answered
    if commit:
        assert decided in (answered, answered + 1)
    else:
        assert decided == 0
    # a marker for each time a partition was part of what was decided, and another one for what was to be sent again
    decisions = [value for value in values_in_log(world) if value.transaction_status in (PREPARE_COMMIT, PREPARE_ABORT)]
    for topic, index in (("t", 0), ("t", 1), (OFFSETS, 0)):
        expected = sum(
            index in each.partition_ids
            for value in decisions
            for each in value.transaction_partitions
            if each.topic == topic
        )
        markers = markers_of(world, topic, index)
        assert expected <= len(markers) <= expected + was_deciding, (topic, index, markers)
        assert {kind for _, _, kind in markers} <= {COMMIT if commit else ABORT, ABORT}
    # and it goes on
    successor = Producer(client, script.producer.name, v2=script.producer.v2)
    assert successor.init() == 0
    assert successor.epoch > script.producer.epoch or successor.id != script.producer.id
    if not successor.v2:
        assert successor.add({"t": [0]}) == {("t", 0): 0}
        assert successor.add_offsets() == 0
    assert successor.produce(b"after") == 0
    assert successor.send_offsets({0: 99}) == {0: 0}
    assert successor.end() == 0
    assert visible(client)[-1:] == [b"after"]
    assert committed(client, stable=True) == {0: (99, 0)}


def last_state(files: MemoryFiles) -> int | None:
    """The state in the last record that is whole on this disk."""
    state = None
    for path, inode in inodes(files):
        if path.startswith("/data/__transaction_state-0/") and path.endswith(".log"):
            data = bytes(inode.data)
            for position, header in iter_batches(data):
                for _, value in transaction_values(iter_records(data[position : position + header.size])):
                    state = value.transaction_status
    return state


def values_in_log(world: World) -> list[TransactionLogValue]:
    """Every record of every transactional id, in order."""
    found = []
    for shard in world.broker.transactions.shards:
        shard.require()
        for _, batch in shard.log.batches(0):
            found += [value for _, value in transaction_values(iter_records(batch))]
    return found


def order_is_kept(world: World) -> None:
    """Data lies only where the coordinator's log names the partition: Ongoing was durable before it."""
    broker = world.broker
    broker.transactions.open()
    named = {
        (value.producer_id, topic.topic, index)
        for value in values_in_log(world)
        for topic in value.transaction_partitions or ()
        for index in topic.partition_ids
    }
    topic = broker.metadata.topics["t"]
    logs = [("t", index, broker.partition(topic, index).log) for index in range(PARTITIONS)]
    logs += [(OFFSETS, shard.machine.index, shard.log) for shard in broker.group_shards if shard.log is not None]
    for name, index, log in logs:
        for header, _ in log.batches(0):
            if header.producer_id >= 0:
                assert (header.producer_id, name, index) in named, (name, index)


FLOWS = pytest.mark.parametrize(
    ("v2", "commit"), [(False, True), (True, True), (True, False)], ids=["v1-commit", "v2-commit", "v2-abort"]
)


@FLOWS
@pytest.mark.parametrize("short_bytes", [0, 20])
def test_killed_at_every_write(v2, commit, short_bytes):
    deaths = 0
    for nth in itertools.count(1):
        died = died_at("os", nth, v2=v2, commit=commit, short_bytes=short_bytes)
        if died is None:
            break
        world, script = died
        check(world, world.files.crash(), script, commit=commit)
        deaths += 1
    assert deaths > 15


@FLOWS
def test_power_cut_at_every_write_with_every_mixture_of_losses(v2, commit):
    mixtures = 0
    for nth in itertools.count(1):
        died = died_at("fsync", nth, v2=v2, commit=commit)
        if died is None:
            break
        world, script = died
        at_risk = logs_of(world.files)
        for count in range(len(at_risk) + 1):
            for losing in itertools.combinations(at_risk, count):
                check(world, power_cut(world.files, losing), script, commit=commit)
                mixtures += 1
    assert mixtures > 40


def test_script_that_nobody_kills_leaves_one_marker_a_transaction():
    for flush, v2, commit in itertools.product(("memory", "os", "fsync"), (False, True), (False, True)):
        world = start(flush)
        script = Script(Client(world), v2=v2)
        script.run(commit=commit)
        ending = [PREPARE_COMMIT, COMPLETE_COMMIT] if commit else [PREPARE_ABORT, COMPLETE_ABORT]
        states = [state for state, _ in itertools.groupby(states_in_log(world))]
        assert states == [EMPTY, ONGOING, *ending, ONGOING, *ending]
        for topic, index in (("t", 0), ("t", 1), (OFFSETS, 0)):
            epochs = [1, 2] if v2 else [0, 0]
            kind = COMMIT if commit else ABORT
            assert markers_of(world, topic, index) == [(script.producer.id, epoch, kind) for epoch in epochs]
