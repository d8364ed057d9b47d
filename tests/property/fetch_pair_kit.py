"""Consumers of any version before a pair of brokers, one with shortcuts and one without, and the steps they take."""

from __future__ import annotations

from typing import Any

from core_broker import Client, World, frame, make_topic
from unit.partitions.data_path import append_batch

from protocol.codegen import codec
from protocol.header import decode_response_header
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from protocol.messages.reassign import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from protocol.record_batch import TRANSACTIONAL, build_batch
from storage.files.env import Rng

TOPICS = {"a": 2, "b": 1, "long.name-of_a_topic" * 6: 1}
PLACES = [(name, index) for name, count in TOPICS.items() for index in range(count)]


class Consumer:
    """One connection, on both brokers; what it asks changes little from one Fetch to the next."""

    def __init__(self, version: int, places: list[tuple[str, int]], *, session: bool, **limits: int) -> None:
        self.version = version
        self.places = places
        self.limits = limits
        self.wants_session = session and version >= 7
        self.session_id, self.epoch = 0, 0 if self.wants_session else -1
        self.offsets = dict.fromkeys(places, 0)
        self.changed = list(places)
        self.epochs = {"current_leader_epoch": -1, "last_fetched_epoch": -1}
        self.asked = 0

    def request(self, ids: dict[str, bytes], forgets: bool) -> FetchRequest:
        named = self.changed if self.session_id else self.places
        topics: dict[str, FetchTopic] = {}
        for name, index in named:
            topic = topics.setdefault(name, FetchTopic(topic=name, topic_id=ids[name], partitions=[]))
            offset = self.offsets[name, index]
            topic.partitions.append(
                FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=200, **self.epochs)
            )
        request = FetchRequest(
            session_id=self.session_id, session_epoch=self.epoch, topics=list(topics.values()), **self.limits
        )
        if forgets and self.session_id:
            name, index = self.places[0]
            request.forgotten_topics_data = [ForgottenTopic(topic=name, topic_id=ids[name], partitions=[index])]
        self.changed = []
        return request

    def take(self, response: FetchResponse, names: dict[bytes, str]) -> None:
        """Move on to after what came."""
        if self.wants_session and self.version >= 7:
            self.session_id = response.session_id
            self.epoch = self.epoch + 1 if self.session_id and not response.error_code else 0
            if not self.session_id or response.error_code:
                self.session_id, self.changed = 0, list(self.places)
        for topic in response.responses:
            for part in topic.partitions:
                place = (topic.topic or names.get(topic.topic_id, "?"), part.partition_index)
                data = bytes(part.records or b"")
                if data and place in self.offsets:
                    while len(data) >= 61:
                        base, length = int.from_bytes(data[:8], "big"), int.from_bytes(data[8:12], "big")
                        self.offsets[place] = base + int.from_bytes(data[23:27], "big") + 1
                        data = data[12 + length :]
                    if place not in self.changed:
                        self.changed.append(place)


class Pair:
    """Two clusters and the same consumers on both, one after the other at each broker of them."""

    def __init__(self, flush: str, consumers: list[Consumer], brokers: int = 1) -> None:
        self.worlds = [World(flush, brokers=brokers), World(flush, brokers=brokers)]
        self.worlds[1].broker.clients.shortcuts = {}
        self.consumers = consumers
        self.clients = [[Client(world, i % brokers) for i in range(len(consumers))] for world in self.worlds]
        self.ids: dict[str, bytes] = {}
        for world in self.worlds:
            admin = Client(world)
            self.ids |= {name: make_topic(admin, name, count) for name, count in TOPICS.items()}
            world.env.rng = Rng(7)
        self.read = [0] * len(consumers)
        self.epochs: dict[int, int] = {}

    def fetch(self, which: int, *, forgets: bool = False) -> None:
        consumer = self.consumers[which]
        data = frame(consumer.request(self.ids, forgets), consumer.version)
        consumer.asked += 1
        for clients in self.clients:
            clients[which].send_bytes(data)

    def append(self, place: tuple[str, int], pid: int, count: int) -> None:
        for world in self.worlds:
            topic = world.broker.metadata.topics.get(place[0])
            if topic is None:
                return
            partition = world.broker.partitions.get(topic, place[1])
            world.broker.turn.begin()
            epoch = self.epochs.setdefault(pid, 0) if pid >= 0 else -1
            row = partition.producers.table.get(pid) if pid >= 0 else None
            sequence = row[1] + 1 if row is not None and row[0] == epoch else 0
            batch = build_batch(
                [(None, b"x" * 40)] * count,
                leader_epoch=-1,
                timestamp_ms=world.clock.now_ms(),
                producer_id=pid,
                producer_epoch=epoch,
                base_sequence=sequence if pid >= 0 else -1,
                attributes=TRANSACTIONAL if pid >= 0 else 0,
            )
            append_batch(partition, batch, world.clock.now_ms())
            world.broker.turn.touch(partition.flush_state)

    def end(self, place: tuple[str, int], pid: int, commit: bool) -> None:
        self.epochs[pid] = self.epochs.get(pid, 0) + 1
        for world in self.worlds:
            topic = world.broker.metadata.topics.get(place[0])
            for name, index in PLACES:  # a producer has one epoch everywhere
                topic = world.broker.metadata.topics.get(name)
                if topic is not None:
                    partition = world.broker.partitions.get(topic, index)
                    world.broker.turn.begin()
                    partition.append_marker(pid, self.epochs[pid], 0, commit, world.clock.now_ms(), 2)
                    world.broker.turn.touch(partition.flush_state)

    def move(self, place: tuple[str, int], to: int) -> None:
        for world in self.worlds:
            nodes = world.broker.nodes.ids
            wanted = ReassignablePartition(partition_index=place[1], replicas=[nodes[to]])
            request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=place[0], partitions=[wanted])])
            Client(world).call(request, 1)

    def check(self) -> None:
        for world in self.worlds:
            world.run()
        for which, consumer in enumerate(self.consumers):
            fast, general = (clients[which] for clients in self.clients)
            assert fast.closed == general.closed
            assert fast.transport.received == general.transport.received
            data = bytes(fast.transport.received[self.read[which] :])
            while data:
                size = int.from_bytes(data[:4], "big")
                body, data = data[4 : 4 + size], data[4 + size :]
                assert len(body) == size
                self.read[which] += 4 + size
                _, at = decode_response_header(body, 1, consumer.version)
                response, end = codec(FetchResponse, consumer.version).decode(body, at)
                assert end == size
                consumer.asked -= 1
                consumer.take(response, {topic_id: name for name, topic_id in self.ids.items()})


def finish(pair: Pair) -> None:
    """Let all waits end."""
    pair.check()
    for world in pair.worlds:
        world.advance(1000)
    pair.check()
    assert all(consumer.asked == 0 for consumer in pair.consumers)


def perform(pair: Pair, step: str, more: list[Any]) -> None:
    if step == "fetch":
        pair.check()
        pair.fetch(more[0])
    elif step == "twice":  # a second question while the first is parked
        pair.fetch(more[0])
        pair.fetch(more[0])
    elif step == "forget":
        pair.check()
        pair.fetch(more[0], forgets=True)
    elif step == "wrong epoch":
        pair.consumers[more[0]].epoch += 1
    elif step == "seek":
        consumer = pair.consumers[more[0]]
        consumer.offsets[consumer.places[0]] = more[1]
        consumer.changed = [consumer.places[0]]
    elif step == "append":
        pair.append(*more)
    elif step == "end":
        pair.end(*more)
    elif step == "time":
        for world in pair.worlds:
            world.advance(more[0])
    elif step == "fail":
        pair.check()
        for world in pair.worlds:
            world.files.inject(1)
        pair.append(PLACES[0], -1, 1)
        pair.check()
        for world in pair.worlds:
            world.files.heal()
    elif step == "delete topic":
        for world in pair.worlds:
            wanted = DeleteTopicState(name="b", topic_id=bytes(16))
            Client(world).call(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6)
    elif step == "make topic":
        for world in pair.worlds:
            if "b" not in world.broker.metadata.topics:
                pair.ids["b"] = make_topic(Client(world), "b", 1)
    elif step == "delete records":
        for world in pair.worlds:
            partition = world.broker.partitions.get(world.broker.metadata.topics["a"], 0)
            partition.delete_records(min(2, partition.high_watermark))
    else:
        pair.check()
