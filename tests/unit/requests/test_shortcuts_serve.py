"""Usual requests are served by their shortcuts, wherever in the received bytes they lie, as the general handlers do.

A shortcut that leaves a usual request to the general handler is correct and slow. So these tests count what is taken.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from cases import each_case
from core_broker import Client, World, frame, make_topic, watch_repeats
from core_requests import commit_request, fetch_request, produce_request
from txn_kit import Producer

from broker.coordinator.runtime import LOADING
from broker.requests.kept import Table
from broker.requests.message_sets import FETCH_BATCHES_SINCE
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from storage.files.env import Rng

# Where a request begins: behind another one of so many bytes. All low bits are set and clear, and one is beyond any
# limit on a request's size.
BEFORE = [28, 0, 17, 22, 36, 47, 68, 125, 9_000]
CLIENT_IDS = ["client", None, "x" * 300]


def filler(size: int) -> bytes:
    """A request of so many bytes that no shortcut serves."""
    data = b"" if size == 0 else frame(ApiVersionsRequest(), 0, 99, "f" * (size - 14))
    assert len(data) == size
    return data


class Twins:
    """A broker with shortcuts and one without, that are sent the same bytes."""

    def __init__(self, **settings: str) -> None:
        self.worlds = [World("os", **settings), World("os", **settings)]
        self.ids: dict[str, bytes] = {}
        self.producers: list[Producer] = []
        for world in self.worlds:
            admin = Client(world)
            world.env.rng = Rng(5)
            self.ids = {name: make_topic(admin, name, 3) for name in ("t", "u")}
            self.producers.append(Producer(admin, "tx"))
            assert self.producers[-1].init() == 0
            for index in range(2):  # offsets beyond one byte
                admin.call(produce_request("t", index, *[b"v"] * 300), 9)
            admin.call(commit_request("g", {0: 1}), 8)  # loads the group's shard
        assert self.producers[0].id == self.producers[1].id
        self.producer = self.producers[0]
        self.worlds[1].broker.clients.shortcuts = {}
        self.taken: list[bool] = []
        watch_repeats(self.worlds[0], lambda api_key, is_served: self.taken.append(is_served))
        self.connect()

    def send_any(self, data: bytes) -> None:
        """Send what may be damaged. A connection that is closed is replaced, on both sides."""
        before = [len(client.transport.received) for client in self.clients]
        for client in self.clients:
            client.send_bytes(data)
            client.world.advance(0)
        fast, general = self.clients
        assert fast.closed == general.closed
        assert fast.transport.received[before[0] :] == general.transport.received[before[1] :]
        if fast.closed:
            self.connect()

    def connect(self) -> None:
        """New connections, on which nothing is learnt."""
        self.clients = [Client(world) for world in self.worlds]

    def send(self, data: bytes) -> list[bool]:
        """Which of the requests in it a shortcut has served."""
        self.taken.clear()
        before = [len(client.transport.received) for client in self.clients]
        for client in self.clients:
            client.send_bytes(data)
            client.world.run()
        fast, general = (bytes(client.transport.received[at:]) for client, at in zip(self.clients, before, strict=True))
        assert fast == general
        assert fast
        assert not self.clients[0].closed
        return list(self.taken)

    def end(self) -> None:
        """Commit the transaction."""
        for producer in self.producers:
            assert producer.end() == 0


@pytest.fixture
def twins() -> Iterator[Twins]:
    made = Twins()
    yield made
    fast, general = made.worlds
    assert fast.fingerprints() == general.fingerprints()


def learnt(twins: Twins) -> list[int]:
    """The identities of what shortcuts have learnt on the connection."""
    found: list[int] = []
    for table in twins.clients[0].connection.learned.values():
        forms = table.forms.values() if isinstance(table, Table) else ()
        found += [id(kept) for form in forms for kept in form.kept.values()]
        found += [] if isinstance(table, Table) else map(id, table.values())
    return found


def sent_everywhere(twins: Twins, make: Callable[[], Any], version: int, *, learns: int = 0) -> None:
    """The request is served wherever it begins, whoever sends it, but for the first `learns` on a connection."""
    correlation_id = 0
    for client_id in CLIENT_IDS:
        twins.connect()
        known: list[int] = []
        for _ in range(learns):
            assert twins.send(filler(28) + frame(make(), version, 1, client_id)) == [False]
        for size in BEFORE:
            correlation_id += 1
            data = filler(size) + frame(make(), version, correlation_id, client_id)
            assert twins.send(data) == [True], f"behind {size} bytes, from {client_id!r}"
            known = known or learnt(twins)
        both = frame(make(), version, 7, client_id) + frame(make(), version, 8, client_id)
        assert twins.send(both + filler(300)) == [True, True]
        assert learnt(twins) == known, "a request is learnt once"


@pytest.mark.heavy
@each_case("version", range(FETCH_BATCHES_SINCE, FetchRequest.MAX_VERSION + 1))
def test_fetch_without_a_session(version: int) -> None:
    twins = Twins()
    for limits in ({"isolation_level": 1}, {"min_bytes": 0}, {"max_bytes": 100}, {"max_wait_ms": 500}):
        request = fetch_request("t", 0, 299, **limits)
        request.topics[0].topic_id = twins.ids["t"]
        sent_everywhere(twins, lambda request=request: request, version, learns=1)


def adding(producer: Producer, *, offsets: bool) -> Any:
    if offsets:
        return AddOffsetsToTxnRequest(
            transactional_id=producer.name, producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
        )
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.name,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0, 2]) for name in ("t", "u")],
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=producer.name,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                topics=[AddPartitionsToTxnTopic(name=name, partitions=[0, 2]) for name in ("t", "u")],
            )
        ],
    )


@each_case(
    "cls, version",
    [
        (cls, version)
        for cls in (AddPartitionsToTxnRequest, AddOffsetsToTxnRequest)
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    ],
)
def test_adding_to_a_transaction(cls: type[Any], version: int) -> None:
    twins = Twins()
    sent_everywhere(twins, lambda: adding(twins.producer, offsets=cls is AddOffsetsToTxnRequest), version, learns=1)


def offsets_request(twins: Twins, offsets: dict[int, int]) -> TxnOffsetCommitRequest:
    return twins.producer.offsets_request(offsets)


@each_case("version", range(TxnOffsetCommitRequest.MIN_VERSION, TxnOffsetCommitRequest.MAX_VERSION + 1))
def test_offsets_in_a_transaction(version: int) -> None:
    twins = Twins()
    assert [producer.add_offsets() for producer in twins.producers] == [0, 0]
    for offsets in ({1: 7}, {0: 1, 2: 2}, {2: 300, 0: 70_000, 1: 5}):
        sent_everywhere(twins, partial(offsets_request, twins, offsets), version, learns=1)


@each_case("version", range(EndTxnRequest.MIN_VERSION, EndTxnRequest.MAX_VERSION + 1))
def test_end_of_a_transaction(version: int) -> None:
    twins = Twins()
    for client_id in CLIENT_IDS:
        twins.connect()
        for number, size in enumerate([28, *BEFORE]):
            for producer in twins.producers:
                assert producer.add({"t": [0]}) == {("t", 0): 0}
            data = filler(size) + frame(twins.producer.end_request(), version, size, client_id)
            assert twins.send(data) == [number > 0]
            if version >= 5:
                for producer in twins.producers:
                    producer.epoch += 1


@pytest.mark.parametrize("version", [7, 11, 12, 17])
def test_fetch_in_a_session(twins: Twins, version: int) -> None:
    """The first learns; the ones behind it are served, with news of a partition and without any."""
    topic = FetchTopic(topic="t", topic_id=twins.ids["t"], partitions=[])
    topic.partitions = [FetchPartition(partition=n, fetch_offset=300, partition_max_bytes=1 << 20) for n in (0, 1)]
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    first = FetchRequest(session_epoch=0, topics=[topic], **limits)
    replies = [client.call(first, version) for client in twins.clients]
    session_ids = [reply.session_id for reply in replies]
    assert session_ids[0] == session_ids[1] != 0
    for epoch in range(1, 12):
        repeat = FetchRequest(session_id=session_ids[0], session_epoch=epoch, **limits)
        if epoch % 3 == 0:
            for world in twins.worlds:
                Client(world).call(produce_request("t", epoch % 2, b"v"), 9)
        assert twins.send(filler(BEFORE[epoch % 9]) + frame(repeat, version)) == [epoch > 1], epoch


NAMES = [
    "Produce",
    "an old Produce",
    "Fetch",
    "an old Fetch",
    "OffsetCommit",
    "OffsetCommit of two",
    "OffsetFetch",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "Produce in a transaction",
    "TxnOffsetCommit",
    "TxnOffsetCommit of two",
    "EndTxn",
]


def requests(twins: Twins) -> dict[str, tuple[Any, int]]:
    """One request for each shortcut, with its version."""
    fetch = fetch_request("t", 0, 299)
    fetch.topics.append(FetchTopic(topic="u", partitions=[FetchPartition(partition=1, partition_max_bytes=1 << 20)]))
    commits = [commit_request("g", offsets) for offsets in ({0: 1}, {0: 1, 1: 2})]
    fetch_offsets = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    producer = twins.producer
    return {
        "Produce": (produce_request("t", 1, b"value"), 9),
        "an old Produce": (produce_request("t", 1, b"value"), 8),
        "Fetch": (fetch, 12),
        "an old Fetch": (fetch, 11),
        "OffsetCommit": (commits[0], 8),
        "OffsetCommit of two": (commits[1], 9),
        "OffsetFetch": (fetch_offsets, 8),
        "AddPartitionsToTxn": (adding(producer, offsets=False), 3),
        "AddOffsetsToTxn": (adding(producer, offsets=True), 3),
        "Produce in a transaction": (producer.produce_request(b"value"), 12),
        "TxnOffsetCommit": (producer.offsets_request({0: 1}), 5),
        "TxnOffsetCommit of two": (producer.offsets_request({0: 1, 2: 2}), 3),
        "EndTxn": (producer.end_request(), 3),
    }


@pytest.mark.parametrize("name", NAMES)
def test_request_that_is_damaged_at_any_byte_is_answered_as_generally(name: str) -> None:
    """Behind a good one, which a shortcut has learnt on the connection."""
    twins = Twins()
    request, version = requests(twins)[name]
    if name.startswith(("TxnOffsetCommit", "EndTxn")):
        assert [producer.add_offsets() for producer in twins.producers] == [0, 0]
    good = frame(request, version)
    for at in range(8, len(good)):
        for bits in (1, 0x80):
            bad = bytearray(good)
            bad[at] ^= bits
            for data in (good, good, bytes(bad)):
                twins.send_any(data)
    fast, general = twins.worlds
    assert fast.fingerprints() == general.fingerprints()


@pytest.mark.parametrize("name", NAMES)
def test_request_that_is_cut_short_is_answered_as_generally(name: str) -> None:
    twins = Twins()
    request, version = requests(twins)[name]
    for client_id in ("", "c" * 18):
        good = frame(request, version, client_id=client_id)
        for stop in range(14 + len(client_id), len(good)):
            twins.send_any((stop - 4).to_bytes(4, "big") + good[4:stop])
    fast, general = twins.worlds
    assert fast.fingerprints() == general.fingerprints()


@pytest.mark.parametrize("name", NAMES)
def test_request_to_a_shard_that_is_being_loaded_is_answered_as_generally(name: str) -> None:
    twins = Twins()
    for producer in twins.producers:
        assert producer.add({"t": [0, 1]}) == {("t", 0): 0, ("t", 1): 0}
        assert producer.add_offsets() == 0
    request, version = requests(twins)[name]
    for world in twins.worlds:
        for shard in (world.broker.transactions.shard("tx"), world.broker.groups.of("g")):
            shard.load_at_once_bytes = 0
            shard.reload()
            assert shard.state is LOADING
    twins.send_any(frame(request, version))
    for world in twins.worlds:
        world.run()
    twins.send_any(frame(request, version))
    fast, general = twins.worlds
    assert fast.fingerprints() == general.fingerprints()
    fast.check_replay()


@pytest.mark.parametrize("name", NAMES)
def test_what_was_learnt_is_freed_when_it_is_given_up(name: str) -> None:
    """Nothing of it is in a circle of references: a collection of the old ones comes once in millions of requests."""
    twins = Twins()
    request, version = requests(twins)[name]
    for producer in twins.producers:
        assert (producer.add({"t": [0]}), producer.add_offsets()) == ({("t", 0): 0}, 0)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(3):
            twins.send_any(frame(request, version))
        assert learnt(twins)
        connection = twins.clients[0].connection
        connection.forget(connection.generation)
        gc.collect()
        circles = [each for each in gc.garbage if type(each).__module__.startswith(("broker.", "protocol."))]
    finally:
        gc.set_debug(0)
        gc.enable()
        gc.garbage.clear()
    assert [type(each).__name__ for each in circles] == []


def test_produce_without_topics_or_partitions_is_answered_as_generally() -> None:
    twins = Twins()
    for size in range(1, 70):
        for version in (3, 8, 9, 13):
            request = produce_request("n" * size, 0, b"v")
            request.topic_data[0].partition_data.clear()
            twins.send_any(frame(request, version))
            request.topic_data.clear()
            twins.send_any(frame(request, version, client_id="c" * size))
