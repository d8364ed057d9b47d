"""Transactional producers side by side over shared partitions and groups: who waits for an answer need not wait again.

Kafka answers EndTxn before the transaction is complete, and its clients meet CONCURRENT_TRANSACTIONS next. Here EndTxn
is answered after that: over any order of requests, turns and syncs no request is told anything but success.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from core_broker import Client, World, make_topic
from txn_kit import Producer, committed, fetched, visible

from protocol.messages.transactions import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, AddPartitionsToTxnTopic

PRODUCERS, TRANSACTIONS, PARTITIONS = 8, 30, 3


class Asker:
    """One producer with a connection of its own: a request when the one before is answered."""

    def __init__(self, world: World, number: int, rng: Random, *, v2: bool) -> None:
        self.rng = rng
        self.client = Client(world)
        self.producer = Producer(self.client, f"tx-{number}", v2=v2)
        assert self.producer.init() == 0
        self.group = f"g{number % 3}"
        self.partition = number  # whose offset it commits
        self.committed: list[bytes] = []
        self.offset = -1
        self.codes: set[int] = set()
        self.requests = self.ask()
        self.done = False
        self.step()

    def step(self) -> None:
        """The next request, if the last one has its answer."""
        if self.done or (self.client.asked and not self.take()):
            return
        request = next(self.requests, None)
        if request is None:
            self.done = True
        else:
            self.client.send(*request)

    def take(self) -> bool:
        for reply in self.client.replies():
            self.codes.update(codes_of(reply))
            if self.producer.v2 and hasattr(reply, "producer_epoch"):
                self.producer._is_now(reply.producer_id, reply.producer_epoch)
        return not self.client.asked

    def ask(self) -> Iterator[tuple[Any, int]]:
        producer = self.producer
        for number in range(TRANSACTIONS):
            index, commit = self.rng.randrange(PARTITIONS), self.rng.random() < 0.7
            value = f"{producer.name}:{number}".encode()
            if not producer.v2:
                yield self.add_partition(index), 3
            yield producer.produce_request(value, index=index), 12 if producer.v2 else 11
            if not producer.v2:
                yield self.add_group(), 3
            yield producer.offsets_request({self.partition: number}, self.group, "o"), 5 if producer.v2 else 3
            yield producer.end_request(commit=commit), 5 if producer.v2 else 4
            if commit:
                self.committed.append(value)
                self.offset = number

    def add_partition(self, index: int) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.producer.name,
            v3_and_below_producer_id=self.producer.id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[index])],
        )

    def add_group(self) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(
            transactional_id=self.producer.name,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            group_id=self.group,
        )


def codes_of(reply: Any) -> set[int]:
    """Every error code in a reply, however deep."""
    if isinstance(reply, list):
        return {code for each in reply for code in codes_of(each)}
    found = set()
    for name in getattr(reply, "__slots__", ()):
        value = getattr(reply, name)
        found |= {value} if name.endswith("error_code") else codes_of(value)
    return found


@pytest.mark.parametrize("flush", ["memory", "os", "fsync"])
@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("seed", range(3))
def test_producer_that_waits_for_its_answers_never_hears_of_concurrent_transactions(flush, v2, seed):
    rng = Random(seed)
    world = World(flush)
    client = Client(world)
    make_topic(client, "t", PARTITIONS)
    make_topic(client, "o", PRODUCERS)
    askers = [Asker(world, number, rng, v2=v2) for number in range(PRODUCERS)]
    world.auto_sync = False
    for _ in range(100_000):
        chance = rng.random()
        if chance < 0.6:
            rng.choice(askers).step()
        elif chance < 0.9:
            world.turn()
        elif world.syncs:
            world.sync()
        if all(asker.done for asker in askers):
            break
    assert all(asker.done for asker in askers)
    assert set().union(*(asker.codes for asker in askers)) == {0}
    world.auto_sync = True
    seen = [value for index in range(PARTITIONS) for value in visible(client, "t", index)]
    assert sorted(seen) == sorted(value for asker in askers for value in asker.committed)
    for asker in askers:
        told = committed(client, asker.group, "o", (asker.partition,), stable=True)
        assert told == {asker.partition: (asker.offset, 0)}
    for index in range(PARTITIONS):
        answer = fetched(client, "t", index)
        assert answer.last_stable_offset == answer.high_watermark
