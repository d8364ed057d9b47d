"""The limits of shortcuts: what a Fetch reads within its bytes, when a parked one reads again, what a head may hold."""

from __future__ import annotations

import gc
from itertools import product
from typing import Any
from unittest.mock import Mock

import pytest
from cases import each_case
from core_broker import Client, World, frame, make_topic, watch_repeats
from core_requests import TOPIC, alter_request, commit_request, fetch_request, produce_request
from txn_kit import Producer

from broker.handlers import make_routes
from broker.partitions.partition import Partition
from broker.wire.route import SMALL_FETCH_BYTES, encode_reply
from protocol.api import ApiKey
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from storage.files.env import Rng
from storage.files.errors import StorageError
from storage.log.log import Log
from storage.segments.file_slice import FileSlice


class Twins:
    """A broker with shortcuts and one without, with the same topics; `taken`: which requests a shortcut has served."""

    def __init__(self, **settings: str) -> None:
        self.worlds = [World("os", **settings), World("os", **settings)]
        self.admins = [Client(world) for world in self.worlds]
        self.clients = [Client(world) for world in self.worlds]
        for admin in self.admins:
            admin.world.env.rng = Rng(5)
            self.ids = {name: make_topic(admin, name, 3) for name in ("t", "u", "v")}
        self.worlds[1].broker.clients.shortcuts = {}
        self.taken: list[bool] = []
        watch_repeats(self.worlds[0], self._took)

    def _took(self, api_key: int, is_served: bool) -> None:
        if api_key in (ApiKey.FETCH, ApiKey.OFFSET_COMMIT):
            self.taken.append(is_served)

    def produce(self, topic: str, index: int, *values: bytes) -> None:
        for admin in self.admins:
            assert admin.call(produce_request(topic, index, *values), 9).responses[0].partition_responses[0]

    def send(self, request: Any, version: int) -> bytes:
        """What both have received for it by now."""
        self.taken.clear()
        before = len(self.clients[0].transport.received)
        for client in self.clients:
            client.send_bytes(frame(request, version))
            client.world.run()
        return self.received(before)

    def received(self, before: int = 0) -> bytes:
        fast, general = (client.transport.received for client in self.clients)
        assert fast == general
        return bytes(fast[before:])


def fetch_all(twins: Twins, **limits: Any) -> FetchRequest:
    topics = [
        FetchTopic(
            topic=name,
            topic_id=twins.ids[name],
            partitions=[FetchPartition(partition=n, partition_max_bytes=limits.get("most", 1 << 20)) for n in range(3)],
        )
        for name in ("t", "u", "v")
    ]
    limits.pop("most", None)
    return FetchRequest(topics=topics, **{"session_epoch": -1, "max_wait_ms": 0, "min_bytes": 1, **limits})


@pytest.fixture(scope="module")
def filled() -> Twins:
    """Batches of different sizes in the partitions of three topics; one partition is empty."""
    twins = Twins()
    for number, (name, index) in enumerate(product("tuv", range(3))):
        if number != 4:
            for size in (1 + number, 20 * number, 3):
                twins.produce(name, index, b"x" * size)
    return twins


@each_case("version", [7, 11, 12, 13, 18])
def test_fetch_of_many_partitions_stops_at_its_bytes(filled: Twins, version: int) -> None:
    for most, each in product([*range(60, 700, 37), 5_000], [70, 150, 1 << 20]):
        request = fetch_all(filled, max_bytes=most, most=each)
        first, second = filled.send(request, version), filled.send(request, version)
        assert (first, filled.taken) == (second, [True])


def test_fetch_that_names_a_partition_twice_is_never_served_from_bytes(filled: Twins) -> None:
    request = fetch_all(filled)
    request.topics[0].partitions[1] = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1 << 20)
    for _ in range(3):
        assert filled.send(request, 12)
        assert filled.taken == [False]


def test_slices_of_files_are_let_go_with_the_reply() -> None:
    """They would keep files that retention deletes."""
    gc.collect()
    of_other_tests = {id(each): each for each in gc.get_objects() if isinstance(each, FileSlice)}
    twins = Twins()
    twins.produce("t", 0, b"v")
    for _ in range(3):
        assert twins.send(fetch_request("t", 0, 0), 12)
    parked(twins, 1)
    twins.produce("t", 0, b"v")
    gc.collect()
    left = [each for each in gc.get_objects() if isinstance(each, FileSlice)]
    assert [each for each in left if id(each) not in of_other_tests] == []


def test_fetch_without_min_bytes_is_answered_at_once(filled: Twins) -> None:
    request = fetch_all(filled, max_bytes=1 << 20, max_wait_ms=500)
    for _ in range(2):
        assert filled.send(request, 12)
    size = len(filled.send(fetch_all(filled, max_bytes=1 << 20, max_wait_ms=0), 12))
    for min_bytes, at_once in ((size // 2, True), (size * 2, False), (size * 2, False)):
        request = fetch_all(filled, max_bytes=1 << 20, max_wait_ms=500, min_bytes=min_bytes)
        assert bool(filled.send(request, 12)) is at_once
        for world in filled.worlds:
            world.advance(500)
    filled.received()


def parked(twins: Twins, min_bytes: int) -> None:
    """A Fetch at the end of t-0 that the shortcut has parked."""
    end = twins.worlds[0].broker.partitions.get(twins.worlds[0].broker.metadata.topics["t"], 0).log.end_offset
    request = fetch_request("t", 0, end, min_bytes=min_bytes, max_wait_ms=10_000)
    assert twins.send(request, 12) == b""
    for world in twins.worlds:
        world.advance(10_000)
    assert twins.send(request, 12) == b""
    assert twins.taken == [True]


@pytest.mark.parametrize("missing", [2 * 69 + 1, 2 * 69 + 2, 3 * 69])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_parked_fetch_is_answered_when_there_are_enough_bytes_and_not_read_before(before: int, missing: int) -> None:
    twins = Twins()
    for _ in range(before):
        twins.produce("t", 0, b"v")
    one = 69  # bytes of such a batch
    parked(twins, missing)
    world = twins.worlds[0]
    log = world.broker.partitions.get(world.broker.metadata.topics["t"], 0).log
    assert log.size_bytes == before * one
    reads: list[int] = []
    read = log.read

    def counted(offset: int, *args: Any, **limits: Any) -> Any:
        reads.append(offset)
        return read(offset, *args, **limits)

    log.read = counted
    start = len(twins.clients[0].transport.received)
    for number in range(1, 4):
        assert (twins.received(start), reads) == (b"", [])
        twins.produce("t", 0, b"v")
        assert bool(twins.received(start)) is (number == 3)
    assert reads == [before]


@pytest.mark.parametrize("version", [12, 13])
def test_leader_epoch_that_a_session_is_asked_with_is_checked_whenever_it_changes(version: int) -> None:
    twins = Twins()
    twins.produce("t", 0, b"v")
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    first = FetchRequest(session_epoch=0, topics=fetch_all(twins).topics, **limits)
    (session_id,) = {client.call(first, version).session_id for client in twins.clients}
    for epoch in range(1, 13):
        asked = FetchPartition(partition=0, partition_max_bytes=1 << 20, current_leader_epoch=(-1, 0, 7)[epoch % 3])
        topic = FetchTopic(topic="t", topic_id=twins.ids["t"], partitions=[asked])
        request = FetchRequest(session_id=session_id, session_epoch=epoch, topics=[topic], **limits)
        assert twins.send(request, version)
        assert twins.taken == [epoch > 3 and epoch % 3 != 2]


@pytest.mark.parametrize("version", [3, 5])
def test_end_of_a_transaction_that_cannot_be_written_leaves_earlier_replies_alone(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Log, "reopen", Mock(side_effect=StorageError("it stays out of use")))
    twins = Twins()
    producers = [Producer(admin) for admin in twins.admins]
    for producer in producers:
        assert producer.init() == 0
        assert producer.add({"t": [0]}) == {("t", 0): 0}
    twins.worlds[1].broker.clients.shortcuts = {}
    before = len(twins.clients[0].transport.received)
    for client, producer in zip(twins.clients, producers, strict=True):
        client.world.broker.transactions.shard("tx").log.give_up("is given up")
        requests = [commit_request("g", {0: 1}), commit_request("g", {0: 2}), producer.end_request()]
        versions = [8, 8, version]
        client.send_bytes(b"".join(frame(r, v, n) for n, (r, v) in enumerate(zip(requests, versions, strict=True))))
        client.world.run()
    assert len(twins.received(before)) > 60


@pytest.mark.heavy
@each_case("version", range(2, 11))
def test_commit_at_the_limit_of_a_batch_is_written_alike(version: int) -> None:
    """The topic's own limit counts; that of the broker is what it begins with."""
    for limit in range(300, 420, 7):
        twins = Twins()
        for admin in twins.admins:
            admin.call(commit_request("g", {0: 1}), 8)
            answer = admin.call(alter_request(TOPIC, "__consumer_offsets", {"max.message.bytes": str(limit)}), 1)
            assert answer.responses[0].error_code == 0
        for round_ in range(3):
            request = commit_request("g", {0: round_, 1: 2, 2: 3})
            request.topics[0].topic_id = twins.ids["t"]
            twins.send(request, version)
        fast, general = twins.worlds
        assert fast.fingerprints() == general.fingerprints()
        logs = [[bytes(batch) for _, batch in world.broker.groups.of("g").log.batches(0)] for world in twins.worlds]
        assert logs[0] == logs[1]


def test_partition_is_configured_when_metadata_changes_and_not_for_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client(World("os"))
    make_topic(client, "t")
    producer = Producer(client)
    assert producer.init() == 0
    configured: list[str] = []
    configure = Partition.configure

    def counted(partition: Partition, topic: Any, metadata: Any) -> None:
        configured.append(topic.name)
        configure(partition, topic, metadata)

    monkeypatch.setattr(Partition, "configure", counted)
    for number in range(1, 4):
        for _ in range(3):
            assert producer.produce(b"v") == 0
            client.call(produce_request("t", 0, b"v"), 9)
            client.call(fetch_request("t", 0, 0), 12)
        assert configured == ["t"] * number
        make_topic(client, f"t{number}")


# -- the reply of a Fetch


def reply_of(size: int, version: int) -> Any:
    """A reply with records of so many bytes."""

    class Records:
        def __len__(self) -> int:
            return size

        def read(self) -> bytes:
            return b"r" * size

    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=Records())])
    (route,) = [each for each in make_routes() if each.api_key == ApiKey.FETCH]
    route.load()
    return encode_reply(route, version, 1, FetchResponse(responses=[topic]))


@each_case("version", [7, 11, 12, 13])
def test_small_reply_to_a_fetch_is_read_at_once(version: int) -> None:
    around = len(reply_of(SMALL_FETCH_BYTES - 1_000, version)) - 4 - (SMALL_FETCH_BYTES - 1_000)  # its size field is 4
    assert len(reply_of(SMALL_FETCH_BYTES - around, version)) == SMALL_FETCH_BYTES + 4
    assert isinstance(reply_of(SMALL_FETCH_BYTES - around + 1, version), list)


# -- the reader of heads


def test_deleted_topic_of_a_session_is_not_served_from_what_was_learnt() -> None:
    twins = Twins()
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    replies = [
        client.call(FetchRequest(session_epoch=0, topics=fetch_all(twins).topics, **limits), 12)
        for client in twins.clients
    ]
    session_ids = {reply.session_id for reply in replies}
    (session_id,) = session_ids
    for epoch in range(1, 8):
        if epoch == 4:
            for admin in twins.admins:
                gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="u")], timeout_ms=1)
                assert admin.call(gone, 6).responses[0].error_code == 0
        assert twins.send(FetchRequest(session_id=session_id, session_epoch=epoch, **limits), 12)
        assert twins.taken == [epoch in (2, 3)]
