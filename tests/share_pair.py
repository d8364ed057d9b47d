"""Two brokers whose share consumers see the same bytes, one one of which serves repeats from bytes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from core_broker import Client, World, frame, watch_repeats
from core_requests import produce_request
from txn_kit import Producer

from broker.cluster.virtual_nodes import VirtualNodes
from broker.coordinator.share.state import Key
from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.header import decode_response_header
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.share_fetch import (
    ShareFetchRequest,
    ShareFetchRequestAcknowledgementBatch,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
    ShareFetchResponse,
)
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.transactions import EndTxnRequest, InitProducerIdRequest
from storage.files.env import Rng

MEMBERS = ("m", "n")


class Reader:
    """What a member knows: from the replies, which are the same on both sides."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 0
        self.session = 0
        self.places: list[int] = []
        self.acquired: dict[int, list[tuple[int, int]]] = {}
        self.version = 1


class Sides:
    """Two brokers, the second of which decodes all requests; the same requests to both."""

    def __init__(self, flush: str, brokers: int = 1, **settings: str) -> None:
        extra = {
            "share_coordinator_state_topic_num_partitions": "2",
            "errors_deadletterqueue_auto_create_topics_enable": "true",
            **settings,
        }
        self.worlds = [
            World(flush, brokers=brokers, **extra),
            World(flush, brokers=brokers, shortcuts=False, **extra),
        ]
        self.readers = {name: Reader(name) for name in MEMBERS}
        self.taken = 0
        self.topic_id = b""
        self.producer: Producer | None = None
        self._connect()
        self.call(self.config_request({"share.auto.offset.reset": "earliest"}), 1)
        self.make_topic()

    def _connect(self) -> None:
        """New connections, after a start."""
        self.nodes = [
            VirtualNodes(w.broker.nodes, w.broker.metadata_shard, w.broker.turn, w.broker.partitions)
            for w in self.worlds
        ]
        self.clients = [{name: client_of(world, name) for name in (*MEMBERS, "admin")} for world in self.worlds]
        self.read = Counter[tuple[int, str]]()
        for world in self.worlds:
            world.env.rng = Rng(11)
            _ = world.broker.transactions  # made by the first request
        self.worlds[1].broker.clients.offer({})

        def tell(api_key: int, is_served: bool) -> None:
            self.taken += is_served and api_key == ApiKey.SHARE_FETCH

        watch_repeats(self.worlds[0], tell)
        for reader in self.readers.values():
            reader.session, reader.acquired = 0, {}

    # -- requests

    def send(self, request: Any, version: int, name: str = "admin") -> None:
        data = frame(request, version)
        for clients in self.clients:
            clients[name].send_bytes(data)

    def received(self, name: str = "admin") -> list[bytes]:
        """The frames that came since the last call, the same on both sides."""
        found = []
        for side, clients in enumerate(self.clients):
            data = bytes(clients[name].transport.received)
            found.append(data[self.read[side, name] :])
            self.read[side, name] = len(data)
        assert found[0] == found[1], name
        data, frames = found[0], []
        while data:
            size = 4 + int.from_bytes(data[:4], "big")
            frames.append(data[4:size])
            data = data[size:]
        return frames

    def run(self) -> None:
        for world in self.worlds:
            world.run()

    def call(self, request: Any, version: int, name: str = "admin") -> Any:
        """The reply, decoded; None: the connection was closed, or it waits."""
        self.send(request, version, name)
        self.run()
        frames = self.received(name)
        if not frames:
            return None
        return decode(request, version, frames[-1])

    def config_request(self, values: dict[str, str]) -> IncrementalAlterConfigsRequest:
        entries = [
            IncrementalAlterConfigsRequestAlterableConfig(name=name, value=value, config_operation=0)
            for name, value in values.items()
        ]
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=32, resource_name="g", configs=entries
        )
        return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)

    # -- what may happen

    def make_topic(self) -> None:
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        made = self.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
        if made is not None and not made.topics[0].error_code:
            self.topic_id = made.topics[0].topic_id
        answer = self.call(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 5)
        self.producer = Producer(self.clients[0]["admin"], "tx")
        if answer is not None and not answer.error_code:
            self.producer._is_now(answer.producer_id, answer.producer_epoch)
        for reader in self.readers.values():
            reader.epoch = reader.session = 0
            self.join(reader)

    def join(self, reader: Reader) -> None:
        """Heartbeats that make the group's share partitions."""
        for _ in range(3):
            request = ShareGroupHeartbeatRequest(
                group_id="g",
                member_id=reader.name,
                member_epoch=reader.epoch,
                subscribed_topic_names=None if reader.epoch else ["t"],
            )
            answer = self.call(request, 1, reader.name)
            if answer is None or answer.error_code:
                reader.epoch = 0
                return
            reader.epoch = answer.member_epoch

    def produce(self, count: int, index: int, size: int) -> None:
        self.call(produce_request("t", index, *[b"v" * size] * count), 7)

    def in_transaction(self, count: int, index: int, commit: bool) -> None:
        assert self.producer is not None
        self.call(self.producer.produce_request(*[b"x"] * count, topic="t", index=index), 12)
        request = EndTxnRequest(
            transactional_id="tx", producer_id=self.producer.id, producer_epoch=self.producer.epoch, committed=commit
        )
        answer = self.call(request, 5)
        if answer is not None and not answer.error_code:
            self.producer._is_now(answer.producer_id, answer.producer_epoch)

    def fetch(
        self, reader: Reader, places: list[int], kind: int, comes: Any = None, stale: int = 0, **limits: Any
    ) -> None:
        """One ShareFetch that acknowledges all that the member has with one type.

        `comes`: produced while it waits. `stale`: how old the epoch is.
        """
        named: dict[int, list[tuple[int, int]]] = {index: [] for index in places}
        if reader.session:
            named = reader.acquired
        partitions = [
            ShareFetchRequestFetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareFetchRequestAcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[kind])
                    for a, b in ranges
                ],
            )
            for index, ranges in named.items()
        ]
        request = ShareFetchRequest(
            group_id="g",
            member_id=reader.name,
            share_session_epoch=reader.session - stale,
            topics=[ShareFetchRequestFetchTopic(topic_id=self.topic_id, partitions=partitions)] if partitions else [],
            **limits,
        )
        self.send(request, reader.version, reader.name)
        if comes:
            self.run()
            self.produce(*comes)
        self.take(reader)

    def take(self, reader: Reader) -> None:
        """What came of it, now or when the wait is over."""
        self.run()
        frames = self.received(reader.name)
        if not frames:
            for world in self.worlds:
                world.advance(600)
            frames = self.received(reader.name)
        reader.acquired = {}
        if not frames:
            self.reconnect(reader)
            return
        answer = decode(ShareFetchRequest(), reader.version, frames[-1])
        assert isinstance(answer, ShareFetchResponse)
        reader.session = 0 if answer.error_code else reader.session + 1
        for topic in answer.responses:
            for part in topic.partitions:
                if part.acquired_records:
                    reader.acquired[part.partition_index] = [
                        (each.first_offset, each.last_offset) for each in part.acquired_records
                    ]

    def reconnect(self, reader: Reader) -> None:
        reader.session, reader.acquired = 0, {}
        for side, (world, clients) in enumerate(zip(self.worlds, self.clients, strict=True)):
            if not clients[reader.name].closed:
                clients[reader.name].leave()
            world.run()
            clients[reader.name] = client_of(world, reader.name)
            self.read[side, reader.name] = 0

    def key(self, index: int) -> Key:
        """The share partition t-index."""
        return Key("g", self.topic_id, index)

    def restart(self) -> None:
        self.worlds = [world.crash() for world in self.worlds]
        self._connect()

    def check(self) -> None:
        """Logs, stored states and records in flight."""
        for name in (*MEMBERS, "admin"):
            self.received(name)
        ours, theirs = (world.fingerprints() for world in self.worlds)
        both = ours.keys() & theirs.keys()
        assert {name: ours[name] for name in both} == {name: theirs[name] for name in both}
        assert in_flight(self.worlds[0]) == in_flight(self.worlds[1])
        logs = []
        for world in self.worlds:
            found = world.broker.directory.logs.items()
            logs.append(
                {
                    place: b"".join(bytes(batch) for _, batch in log.batches(log.log_start_offset))
                    for place, log in found
                    if not log.broken
                }
            )
        assert {k: v for k, v in logs[0].items() if v} == {k: v for k, v in logs[1].items() if v}
        again = self.worlds[0].crash()
        for shards in (again.broker.groups.shards, again.broker.share.coordinator.shards):
            for shard in shards:
                shard.require()
        found = again.fingerprints()
        assert {name: found.get(name) for name in ours if name.startswith("__")} == {
            name: state for name, state in ours.items() if name.startswith("__")
        }


def client_of(world: World, name: str) -> Client:
    """A connection of the principal of this name."""
    client = Client(world)
    client.connection.principal = f"User:{name}"
    return client


def decode(request: Any, version: int, body: bytes) -> Any:
    _, position = decode_response_header(body, request.API_KEY, version)
    return codec(response_class(request.API_KEY), version).decode(body, position)[0]


def in_flight(world: World) -> dict[Any, Any]:
    """The live share partitions, locks included, and the sessions."""
    share = world.broker.share
    found: dict[Any, Any] = {}
    for key, live in share._live.items():
        state = live.state
        parts = [
            (first, last, d.state, d.count, d.member, None if d.lock is None else d.lock.deadline_ms)
            for batch in state.batches
            for first, last, d in batch.deliveries(batch.first, batch.last)
        ]
        found[key] = (state.start_offset, state.end_offset, state.complete_count, state.next_deadline_ms, parts)
    for name, session in share.sessions._sessions.items():
        found[name] = (session.epoch, list(session.partitions.items()))
    return found
