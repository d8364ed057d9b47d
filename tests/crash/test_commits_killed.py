"""kill -9 at random moments while 16 connections commit: what was acknowledged is there, whole, and never goes back.

The short form; `make crash` does it 200 times. Power cuts are tried on the simulated disk, which forgets what was not
synced.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from contextlib import suppress
from threading import Thread

import pytest
from core_broker import Client, SimulatedCrash, World, frame, make_topic
from core_requests import commit_request
from power_cut import power_cut

from momus import Broker
from protocol.codegen import codec
from protocol.messages.offsets import (
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

CONNECTIONS = 16
PARTITIONS = 5
NOTHING = -1


def question(group: str) -> OffsetFetchRequest:
    topic = OffsetFetchRequestTopics(name="t", partition_indexes=list(range(PARTITIONS)))
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])])


def told(response: OffsetFetchResponse) -> int | None:
    """The one value on all partitions of a group; None: it cannot be told now."""
    group = response.groups[0]
    if group.error_code:
        return None
    values = {p.committed_offset for topic in group.topics for p in topic.partitions}
    assert len(values) == 1, f"half a commit: {values}"
    return int(values.pop())


def accepted(response: OffsetCommitResponse) -> bool:
    codes = {p.error_code for topic in response.topics for p in topic.partitions}
    assert len(codes) == 1
    return codes == {0}


class Ledger:
    """What one group's committer knows: acknowledged, sent, and seen by a reader."""

    def __init__(self) -> None:
        self.acked = self.sent = self.seen = NOTHING

    def check(self, found: int) -> None:
        assert self.acked <= found <= self.sent, f"{found} is not within {self.acked} and {self.sent}"
        assert found >= self.seen, f"{found} after {self.seen} was told"


# -- on a simulated disk


def simulated_round(seed: int, flush: str, lost: str) -> int:
    rng = random.Random(seed)
    world = World(flush, offsets_topic_num_partitions="4")
    make_topic(Client(world), "t", PARTITIONS)
    ledgers = {f"g{n}": Ledger() for n in range(CONNECTIONS)}
    crashes = 0
    for _ in range(4):
        clients = {group: Client(world) for group in ledgers}
        world.files.kill_at(rng.randrange(1, 120), short_bytes=rng.randrange(3000))
        waiting: dict[str, int | None] = {}
        try:
            while True:
                group = rng.choice(list(ledgers))
                ledger = ledgers[group]
                if group not in waiting:
                    if rng.random() < 0.7:
                        ledger.sent += 1
                        waiting[group] = ledger.sent
                        clients[group].send(commit_request(group, dict.fromkeys(range(PARTITIONS), ledger.sent)), 8)
                    else:
                        waiting[group] = None
                        clients[group].send(question(group), 8)
                if rng.random() < 0.2:
                    world.run()
                for name, client in clients.items():
                    for response in client.replies():
                        value = waiting.pop(name)
                        if value is not None:
                            assert accepted(response)
                            ledgers[name].acked = value
                        else:
                            ledgers[name].seen = max(ledgers[name].seen, told(response) or NOTHING)
        except SimulatedCrash:
            crashes += 1
        for name, client in clients.items():  # what had left before the end
            for response in client.replies():
                value = waiting.pop(name)
                if value is not None:
                    ledgers[name].acked = value
                else:
                    ledgers[name].seen = max(ledgers[name].seen, told(response) or NOTHING)
        world = world.again(power_cut(world.files, rng)) if lost == "part" else world.crash(lose_unsynced=lost == "all")
        for name, ledger in ledgers.items():
            found = told(Client(world).call(question(name), 8))
            assert found is not None
            ledger.check(found)
    return crashes


@pytest.mark.parametrize(("flush", "lost"), [("os", ""), ("fsync", ""), ("fsync", "all"), ("fsync", "part")])
def test_commits_survive_the_death_of_a_simulated_broker(flush, lost, crash_rounds):
    crashes = sum(simulated_round(seed, flush, lost) for seed in range(max(5, crash_rounds)))
    assert crashes >= 4 * max(5, crash_rounds) * 0.9


# -- as a real process


class Line:
    """A blocking connection: one request, one reply."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 60)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, request: object, version: int, response: type) -> object:
        self.socket.sendall(frame(request, version))
        data = self._read(struct.unpack(">i", self._read(4))[0])
        return codec(response, version).decode(data, 5 if version >= response.FLEXIBLE_SINCE else 4)[0]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data


def committer(address: str, group: str, ledger: Ledger, number: int) -> None:
    """Commit, and now and then fetch, until the broker is gone."""
    with suppress(OSError), Line(address) as line:
        while True:
            ledger.sent += 1
            value = ledger.sent
            if number % 4 or value % 3:
                request = commit_request(group, dict.fromkeys(range(PARTITIONS), value))
                if accepted(line.ask(request, 8, OffsetCommitResponse)):
                    ledger.acked = value
            else:
                seen = told(line.ask(question(group), 8, OffsetFetchResponse))
                ledger.seen = max(ledger.seen, NOTHING if seen is None else seen)


def wait_for(address: str, group: str) -> int:
    with Line(address) as line:
        while True:
            found = told(line.ask(question(group), 8, OffsetFetchResponse))
            if found is not None:
                return found
            time.sleep(0.01)


def acknowledged(ledgers: dict[str, Ledger]) -> int:
    """How many values have been sent and acknowledged, about: some were not acknowledged before a later one was."""
    return sum(ledger.acked - NOTHING for ledger in ledgers.values())


@pytest.mark.heavy
@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_commits_survive_kill_9(flush, crash_rounds, tmp_path):
    rng = random.Random(11)
    ledgers = {f"g{n}": Ledger() for n in range(CONNECTIONS)}
    with Broker(flush=flush, data_dir=tmp_path) as broker:
        at = broker.bootstrap_servers
        topic = CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
        with Line(at) as line:
            line.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7, CreateTopicsResponse)
        for _ in range(crash_rounds):
            threads = [
                Thread(target=committer, args=(at, group, ledger, n))
                for n, (group, ledger) in enumerate(ledgers.items())
            ]
            enough = acknowledged(ledgers) + 101
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.02, 0.3))
            while acknowledged(ledgers) < enough and all(map(Thread.is_alive, threads)):
                time.sleep(0.01)
            broker.kill()
            for thread in threads:
                thread.join()
            broker.start()
            for group, ledger in ledgers.items():
                ledger.check(wait_for(at, group))
    assert acknowledged(ledgers) > 100 * crash_rounds
