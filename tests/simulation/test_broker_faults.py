"""Whole brokers under random clients, random disks and random ends, one seed a run.

Writers commit and produce numbers; readers ask. Syncs end late, turns come in between, writes and syncs fail, the
process dies or the power goes. Whatever happens: nothing that was told is taken back, be it to the writer or to a
reader; nothing that was refused is ever seen; what was committed together is seen together.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from budget import slow
from core_broker import Client, World, make_topic
from core_requests import commit_request, fetch_request, produce_request

from protocol.errors import ErrorCode
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.record_batch import iter_batches, iter_records
from storage.files.sim_env import sim_env

GROUPS = ["a", "b", "c"]
LOGS = ["x", "y"]
PARTITIONS = 4
STEPS = 250
PAST_FAILURES: list[tuple[str, int]] = []  # (flush, seed): kept once they have found something
RETRY = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.KAFKA_STORAGE_ERROR}


class Numbers:
    """What is known of one group's commits or one log's records: numbers that only grow."""

    def __init__(self) -> None:
        self.last = 0  # asked for
        self.known = 0  # told to anybody: to stay for ever
        self.refused: set[int] = set()

    def told(self, number: int) -> None:
        self.known = max(self.known, number)

    def seen(self, number: int, known_when_asked: int, what: str) -> None:
        assert number >= known_when_asked, f"{what} was {known_when_asked}, and is {number}"
        assert number <= self.last, f"{what}: nobody has ever asked for {number}"
        assert number not in self.refused, f"{what}: {number} was refused"
        self.told(number)


class Simulation:
    def __init__(self, flush: str, seed: int) -> None:
        self.flush = flush
        self.random = random.Random(seed)
        self.world = World(flush, sim_env(seed))
        self.commits = {group: Numbers() for group in GROUPS}
        self.records = {log: Numbers() for log in LOGS}
        make_topic(Client(self.world), "t", PARTITIONS)
        for log in LOGS:
            make_topic(Client(self.world), log)
        self.connect()

    def connect(self) -> None:
        self.world.auto_sync = False
        self.cut_may_fail = False
        self.asked: dict[Client, list[Any]] = {}
        self.writers = {name: self.client() for name in (*GROUPS, *LOGS)}
        self.readers = [self.client() for _ in range(3)]

    def client(self) -> Client:
        client = Client(self.world)
        self.asked[client] = []
        return client

    # -- what clients do

    def commit(self) -> None:
        group = self.random.choice(GROUPS)
        numbers, client = self.commits[group], self.writers[group]
        numbers.last += 1
        client.send(commit_request(group, dict.fromkeys(range(PARTITIONS), numbers.last)), 8)
        self.asked[client].append(("commit", numbers, numbers.last))

    def produce(self) -> None:
        log = self.random.choice(LOGS)
        numbers, client = self.records[log], self.writers[log]
        numbers.last += 1
        client.send(produce_request(log, 0, b"%d" % numbers.last), 9)
        self.asked[client].append(("produce", numbers, numbers.last))

    def read(self) -> None:
        client = self.random.choice([*self.readers, *self.writers.values()])
        if self.random.random() < 0.5:
            group = self.random.choice(GROUPS)
            question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
            client.send(question, 8)
            self.asked[client].append(("offsets", self.commits[group], self.commits[group].known))
        else:
            log = self.random.choice(LOGS)
            client.send(fetch_request(log, 0, 0, max_wait_ms=self.random.choice((0, 500))), 12)
            self.asked[client].append(("records", self.records[log], self.records[log].known))

    def listen(self) -> None:
        """Take what replies there are, and judge them."""
        for client, asked in self.asked.items():
            for answer in client.replies():
                kind, numbers, number = asked.pop(0)
                getattr(self, f"on_{kind}")(answer, numbers, number)
            assert not client.closed

    def on_commit(self, answer: Any, numbers: Numbers, number: int) -> None:
        (code,) = {p.error_code for p in answer.topics[0].partitions}
        assert not code or code in RETRY
        numbers.refused.add(number) if code else numbers.told(number)

    def on_produce(self, answer: Any, numbers: Numbers, number: int) -> None:
        code = answer.responses[0].partition_responses[0].error_code
        assert not code or code in RETRY
        numbers.refused.add(number) if code else numbers.told(number)

    def on_offsets(self, answer: Any, numbers: Numbers, known: int) -> None:
        group = answer.groups[0]
        if group.error_code:
            assert group.error_code in RETRY
            return
        found = {p.committed_offset for topic in group.topics for p in topic.partitions}
        assert len(found) <= 1, f"group {group.group_id} is torn: {found}"
        numbers.seen(found.pop() if found else 0, known, f"group {group.group_id}")

    def on_records(self, answer: Any, numbers: Numbers, known: int) -> None:
        partition = answer.responses[0].partitions[0]
        if partition.error_code:
            assert partition.error_code in RETRY
            return
        data = bytes(partition.records or b"")
        values = [
            int(record.value)
            for position, header in iter_batches(data)
            for record in iter_records(data[position : position + header.size])
        ]
        assert values == sorted(set(values))
        assert not numbers.refused & set(values)
        numbers.seen(values[-1] if values else 0, known, f"log {answer.responses[0].topic}")

    # -- what happens to them

    def step(self) -> None:
        world, chance = self.world, self.random.random()
        if chance < 0.3:
            self.commit()
        elif chance < 0.45:
            self.produce()
        elif chance < 0.65:
            self.read()
        elif chance < 0.8:
            world.turn()
        elif chance < 0.92:
            if world.syncs:
                world.sync(fail=self.random.random() < 0.1)
        elif chance < 0.94:
            world.advance(self.random.choice((1, 100, 1000)))
        elif chance < 0.97:
            kinds = self.random.choice((("write",), ("write",), ("write", "truncate"), ("sync",)))
            self.cut_may_fail |= "truncate" in kinds
            world.files.inject(self.random.randrange(1, 4), kinds=kinds, short_bytes=self.random.randrange(200))
        elif chance < 0.98:
            world.files.heal()
        else:
            self.die()
        self.listen()

    def settle(self) -> None:
        self.world.files.heal()
        self.world.auto_sync = True
        self.world.run()
        self.listen()

    def die(self) -> None:
        power = self.flush == "fsync" and self.random.random() < 0.7
        if self.random.random() < 0.2:
            self.settle()
            self.world = self.world.restart()
        else:
            self.world = self.world.crash(lose_unsynced=power)
        if self.cut_may_fail:  # what could not be cut off, and was whole, a process leaves to the next
            for numbers in (*self.commits.values(), *self.records.values()):
                numbers.refused.clear()
        self.connect()
        self.check()

    def check(self) -> None:
        """All that anybody knows is there."""
        self.settle()
        for name, numbers in (*self.commits.items(), *self.records.items()):
            reader = self.client()
            if name in GROUPS:
                question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)])
                self.on_offsets(reader.call(question, 8), numbers, numbers.known)
            else:
                self.on_records(reader.call(fetch_request(name, 0, 0), 12), numbers, numbers.known)
        self.world.auto_sync = False


@pytest.mark.parametrize(
    ("flush", "seed"),
    [*PAST_FAILURES, *((flush, seed) for flush in ("memory", "os", "fsync") for seed in range(10))]
    + [slow(flush, seed) for flush in ("memory", "os", "fsync") for seed in range(10, 30)],
)
def test_broker_with_random_faults_takes_nothing_back_and_shows_nothing_refused(flush, seed):
    simulation = Simulation(flush, seed)
    for _ in range(STEPS):
        simulation.step()
    simulation.check()
    assert all(numbers.known for numbers in simulation.commits.values())
