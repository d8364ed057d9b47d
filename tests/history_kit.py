"""One history on two brokers, with the shortcuts and without: their replies, logs and states must agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from core_broker import Client, World, frame, watch_repeats
from txn_kit import Producer

from broker.cluster.virtual_nodes import VirtualNodes
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.transactions import EndTxnRequest, InitProducerIdRequest
from storage.files.env import Rng

TOPICS = {"a": 2, "b": 1}
GROUPS = ("g", "h")
NAMES = ("tx", "ty")  # transactional ids


class Side:
    """One broker and the client of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.nodes = VirtualNodes(
            world.broker.nodes, world.broker.metadata_shard, world.broker.turn, world.broker.partitions
        )
        self.client = Client(world)
        self.read = 0

    def received(self) -> bytes:
        """What has come since the last call; a connection that was closed is replaced."""
        self.world.run()
        data = bytes(self.client.transport.received[self.read :])
        self.read += len(data)
        if self.client.closed:
            self.client, self.read = Client(self.world), 0
            data += b"(closed)"
        return data


class History:
    """The same requests to both brokers, one after the other; replies are compared at `check`."""

    def __init__(self, flush: str, brokers: int, topics: Mapping[str, int] = TOPICS, **settings: str) -> None:
        self.flush = flush
        self.topics = topics
        worlds = [World(flush, brokers=brokers, shortcuts=shortcuts, **settings) for shortcuts in (True, False)]
        self.sides = [Side(world) for world in worlds]
        self.taken: Counter[int] = Counter()
        self.producers = {name: Producer(self.sides[0].client, name) for name in NAMES}
        self.ids: dict[str, bytes] = {}
        self._begin()
        for name in topics:
            self.make_topic(name)
        for name in NAMES:
            self.init(name)
        self.check()

    def _begin(self) -> None:
        """After a start: the shortcuts count themselves, and chance is the same on both sides."""
        for side in self.sides:
            side.world.env.rng = Rng(11)
        fast, general = (side.world.broker for side in self.sides)
        assert not general.clients.shortcuts
        _ = fast.transactions, general.transactions  # made by the first request for one; then there are more shortcuts
        general.clients.shortcuts = {}
        watch_repeats(self.sides[0].world, self._took)

    def _took(self, api_key: int, is_served: bool) -> None:
        self.taken[api_key] += is_served

    def each(self, do: Callable[[Side], object]) -> None:
        for side in self.sides:
            do(side)

    def send(self, request: Any, version: int) -> None:
        data = frame(request, version)
        self.each(lambda side: side.client.send_bytes(data))

    def call(self, request: Any, version: int) -> Any:
        """The reply, which is the same on both sides."""
        self.check()
        before = len(self.sides[0].client.transport.received)
        asked = self.sides[0].client.asked
        asked.clear()
        asked.append((request.API_KEY, version))
        self.send(request, version)
        self.each(lambda side: side.world.run())
        client = self.sides[0].client
        client._decoded = before
        replies = client.replies() if len(client.transport.received) > before else []
        self.check()
        return replies[-1] if replies else None

    def check(self) -> None:
        fast, general = (side.received() for side in self.sides)
        assert fast == general

    # -- what may happen

    def make_topic(self, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=self.topics[name], replication_factor=1)
        answer = self.call(CreateTopicsRequest(topics=[topic], timeout_ms=1), 7)
        if answer is not None and not answer.topics[0].error_code:
            self.ids[name] = answer.topics[0].topic_id

    def init(self, name: str) -> None:
        answer = self.call(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 5)
        if answer is not None and not answer.error_code:
            producer = self.producers[name]
            producer._is_now(answer.producer_id, answer.producer_epoch)

    def end(self, name: str, version: int, commit: bool) -> None:
        producer = self.producers[name]
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer.id, producer_epoch=producer.epoch, committed=commit
        )
        answer = self.call(request, version)
        if version >= 5 and answer is not None and not answer.error_code:
            producer._is_now(answer.producer_id, answer.producer_epoch)

    def restart(self) -> None:
        """kill -9 of both brokers, and a start on what they left."""
        self.check()
        self.sides = [Side(side.world.crash()) for side in self.sides]
        self.sides[1].world.broker.clients.shortcuts = {}
        self._begin()

    def check_logs(self) -> None:
        self.check()
        fast, general = (side.world for side in self.sides)
        ours, theirs = fast.fingerprints(), general.fingerprints()
        both = ours.keys() & theirs.keys()  # a shard that has moved may be loaded on one side alone
        assert {name: ours[name] for name in both} == {name: theirs[name] for name in both}
        assert logs(fast) == logs(general)
        fast.check_replay()


def heartbeat(kind: str, group_id: str, epoch: int = 0) -> Any:
    """Join a consumer or a share group, or leave it (epoch -1). Version 1."""
    fields = {"group_id": group_id, "member_id": "m" * 22, "member_epoch": epoch, "subscribed_topic_names": ["a"]}
    if kind == "share":
        return ShareGroupHeartbeatRequest(**fields)
    return ConsumerGroupHeartbeatRequest(**fields, rebalance_timeout_ms=1000, topic_partitions=[])


def logs(world: World) -> dict[str, bytes]:
    """The bytes of every log that has some."""
    found = {
        f"{topic}-{index}": b"".join(bytes(batch) for _, batch in log.batches(log.log_start_offset))
        for (topic, index), log in world.broker.directory.logs.items()
        if not log.broken
    }
    return {name: data for name, data in found.items() if data}
