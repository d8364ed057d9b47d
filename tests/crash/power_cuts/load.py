"""Clients that change a broker in all ways at once, and write down what they asked for and were told."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from core_requests import commit_request, produce_request
from txn_kit import Producer
from wire_peer import Peer

from power_cuts.ledger import Entry, Ledger
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from protocol.messages.transactions import InitProducerIdRequest
from protocol.record_batch import build_batch

NOW_MS = 1_750_000_000_000
KEPT, COMPACT = "kept", "compact"
PARTITIONS = 4
GROUPS = 3
KEYS = 6
SIZES = (10, 10, 60, 700, 5000)


class Caller(Peer):
    """A connection as the kits of the broker's core want a client to be."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        topics: dict[str, Any] = {}
        self.world = SimpleNamespace(
            clock=SimpleNamespace(now_ms=lambda: NOW_MS),
            broker=SimpleNamespace(metadata=SimpleNamespace(topics=topics)),
        )


class Load:
    """Workers on one broker, until `stop`; the recording's length is the time."""

    def __init__(self, address: str, recording: Path, ledger: Ledger, seed: int, phase: str) -> None:
        self.address = address
        self.recording = recording
        self.ledger = ledger
        self.phase = phase
        self.is_over = False
        self.errors: list[str] = []
        self._numbers = count(1)  # no value comes twice
        work = [self.plain, self.idempotent, self.transactions, self.transactions, self.commits, self.topics, self.keys]
        self._threads = [
            threading.Thread(target=self._run, args=(each, f"{phase}{number}", Random(f"{seed} {phase} {number}")))
            for number, each in enumerate(work)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Errors: AssertionError: a worker has failed."""
        self.is_over = True
        for thread in self._threads:
            thread.join(60)
        assert not self.errors, self.errors

    def now(self) -> int:
        return os.stat(self.recording).st_size

    def told(self, entry: Entry, **facts: Any) -> None:
        entry.facts.update(facts)
        entry.told = self.now()

    def _run(self, work: Callable[[Caller, str, Random], None], name: str, rng: Random) -> None:
        try:
            with Caller(self.address) as client:
                while not self.is_over:
                    work(client, name, rng)
        except Exception as error:  # any error: it is told at the end
            self.errors.append(f"{name}: {type(error).__name__}: {error}")

    def _value(self, name: str, rng: Random) -> bytes:
        return b"%s:%d:" % (name.encode(), next(self._numbers)) + b"." * rng.choice(SIZES)

    # -- what they do

    def plain(self, client: Caller, name: str, rng: Random) -> None:
        """Batches to several partitions, many in one packet."""
        while not self.is_over:
            sent = []
            for _ in range(rng.randint(1, 8)):
                index, value = rng.randrange(PARTITIONS), self._value(name, rng)
                entry = self.ledger.ask("record", self.now(), partition=index, value=value)
                client.send(produce_request(KEPT, index, value), 9)
                sent.append(entry)
            for entry in sent:
                answer = client.receive(0, 9).responses[0].partition_responses[0]
                assert answer.error_code == 0, answer
                self.told(entry, offset=answer.base_offset)

    def idempotent(self, client: Caller, name: str, rng: Random) -> None:
        """Up to five batches of one producer in flight."""
        producer_id = self._new_id(client)
        index = rng.randrange(PARTITIONS)
        sequence = 0
        while not self.is_over and sequence < 300:
            sent = []
            for _ in range(rng.randint(1, 5)):
                value = self._value(name, rng)
                batch = build_batch(
                    [(None, value)],
                    timestamp_ms=NOW_MS,
                    producer_id=producer_id,
                    producer_epoch=0,
                    base_sequence=sequence,
                )
                sequence += 1
                data = TopicProduceData(name=KEPT, partition_data=[PartitionProduceData(index=index, records=batch)])
                sent.append(self.ledger.ask("record", self.now(), partition=index, value=value))
                client.send(ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[data]), 9)
            for entry in sent:
                answer = client.receive(0, 9).responses[0].partition_responses[0]
                assert answer.error_code == 0, answer
                self.told(entry, offset=answer.base_offset)

    def _new_id(self, client: Caller) -> int:
        entry = self.ledger.ask("producer id", self.now())
        answer = client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
        assert answer.error_code == 0, answer
        self.told(entry, id=answer.producer_id)
        return int(answer.producer_id)

    def transactions(self, client: Caller, name: str, rng: Random) -> None:
        """Records on two partitions and an offset, committed or aborted."""
        producer = Producer(client, f"tx-{name}", v2=False)  # type: ignore[arg-type]  # it calls, as a Client does
        entry = self.ledger.ask("producer id", self.now())
        in_time(producer.init, 4)
        self.told(entry, id=producer.id, epoch=producer.epoch, name=producer.name)
        group = f"group-{name}"
        while not self.is_over:
            number = next(self._numbers)
            values = {index: self._value(name, rng) for index in rng.sample(range(PARTITIONS), 2)}
            commit = rng.random() < 0.7
            facts = {"values": values, "group": group, "offset": number, "commit": commit}
            self.ledger.ask("transaction begun", self.now(), **facts)
            partitions = {KEPT: list(values)}
            in_time(_worst, producer.add, partitions)
            for index, value in values.items():
                code = producer.produce(value, topic=KEPT, index=index, version=9)
                assert code == 0, code
            in_time(producer.add_offsets, group)
            in_time(_worst, producer.send_offsets, {0: number}, group, KEPT)
            if rng.random() < 0.1:
                return  # it is left open; the next one of this name ends it
            entry = self.ledger.ask("transaction", self.now(), **facts)
            in_time(producer.end, commit=commit)
            self.told(entry)

    def commits(self, client: Caller, name: str, rng: Random) -> None:
        """One offset on several partitions, again and again, several commits in a packet."""
        for number in range(1, 100_000):
            if self.is_over:
                return
            sent = []
            for each in range(rng.randint(1, 6)):
                group, value = f"commits-{name}-{rng.randrange(GROUPS)}", number * 10 + each
                sent.append(self.ledger.ask("commit", self.now(), group=group, offset=value))
                client.send(commit_request(group, dict.fromkeys(range(PARTITIONS), value), KEPT), 8)
            for entry in sent:
                answer = client.receive(8, 8)
                codes = {p.error_code for topic in answer.topics for p in topic.partitions}
                if codes == {0}:
                    self.told(entry)
                else:  # the topic of offsets is being made
                    assert codes <= {14, 15, 16}, codes

    def topics(self, client: Caller, name: str, rng: Random) -> None:
        """Topics that are made, written to, deleted, and made again under the same name."""
        for number in range(1000):
            if self.is_over:
                return
            topic = f"made-{name}-{number % 3}"
            entry = self.ledger.ask("topic", self.now(), name=topic, exists=True)
            make(client, topic, rng.randint(1, 3))
            self.told(entry)
            entry = self.ledger.ask("made record", self.now(), name=topic, value=b"%d" % number)
            answer = client.call(produce_request(topic, 0, b"%d" % number), 9).responses[0].partition_responses[0]
            assert answer.error_code == 0, answer
            self.told(entry)
            if number % 5 == 4:
                stays = f"made-{name}-stays-{number}"
                entry = self.ledger.ask("topic", self.now(), name=stays, exists=True)
                make(client, stays, 2)
                self.told(entry)
            entry = self.ledger.ask("topic", self.now(), name=topic, exists=False)
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=1000)
            assert client.call(request, 6).responses[0].error_code == 0
            self.told(entry)

    def keys(self, client: Caller, name: str, rng: Random) -> None:
        """Values of a few keys in a compacted topic."""
        for number in range(1, 100_000):
            if self.is_over:
                return
            key = b"%s-%d" % (name.encode(), rng.randrange(KEYS))
            entry = self.ledger.ask("key", self.now(), key=key, number=number)
            value = b"%d " % number + b"." * rng.choice(SIZES)
            data = build_batch([(key, value)], timestamp_ms=NOW_MS)
            part = TopicProduceData(name=COMPACT, partition_data=[PartitionProduceData(index=0, records=data)])
            request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[part])
            answer = client.call(request, 9).responses[0].partition_responses[0]
            assert answer.error_code == 0, answer
            self.told(entry)


def in_time(ask: Callable[..., int], *given: Any, **more: Any) -> None:
    """Ask again while a coordinator is made or loaded, or a transaction is being ended. Errors: AssertionError."""
    for _ in range(2000):
        code = ask(*given, **more)
        if code not in (14, 15, 16, 51):
            break
    assert code == 0, f"error {code}"


def _worst(ask: Callable[..., dict[Any, int]], *given: Any) -> int:
    return max(ask(*given).values())


def make(client: Any, name: str, partitions: int, **configs: str) -> None:
    """Create a topic. Errors: AssertionError."""
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
    answer = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=5000), 7)
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message
