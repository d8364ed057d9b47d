"""Replies leave in request order, straight from the files where they are records, and in turns."""

from __future__ import annotations

import pytest
from core_broker import Client, World, frame, make_topic
from core_requests import commit_request, fetch_bytes, fetch_request, produce_request
from unit.wire.replies_kit import METADATA, correlation_ids, flood, world_with_topic

from broker.wire.connection import WRITE_BUFFER_BYTES
from broker.wire.reply_stream import CHUNK_BYTES, TURN_BYTES
from protocol.messages.cluster import ApiVersionsRequest
from storage.files.errors import StorageError
from storage.segments.file_slice import FileSlice


@pytest.fixture
def world():
    return world_with_topic()


# -- order


def test_replies_wait_for_a_parked_request_and_keep_their_order(world):
    client, producer = Client(world), Client(world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=60_000), 12)
    client.send(commit_request("g", {0: 1}), 8)
    client.send(fetch_request("t", 1, 0, max_wait_ms=60_000), 12)
    client.send(METADATA, 12)
    world.run()
    assert correlation_ids(client) == []
    producer.call(produce_request("t", 1, b"second"), 9)
    assert correlation_ids(client) == [], "the one before it is parked still"
    producer.call(produce_request("t", 0, b"first"), 9)
    assert correlation_ids(client) == [1, 2, 3, 4]


def test_parked_request_is_answered_when_its_time_is_over(world):
    client = Client(world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
    client.send(METADATA, 12)
    world.advance(499)
    assert correlation_ids(client) == []
    world.advance(1)
    assert correlation_ids(client) == [1, 2]


def test_replies_behind_one_that_was_waited_for_leave_one_after_the_other(world):
    """As Kafka reads a request when the one before it is answered; librdkafka counts on it."""
    client, gaps = Client(world), []
    world.broker.clients.later = lambda seconds, call: gaps.append((seconds, call))
    client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
    for _ in range(3):
        client.send(METADATA, 12)
    world.advance(500)
    assert correlation_ids(client) == [1]
    client.send(METADATA, 12)  # one that comes meanwhile keeps its place
    for sent in ([1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]):
        world.run()
        ((seconds, go_on),) = gaps
        gaps.clear()
        assert seconds > 0
        go_on()
        world.run()
        assert correlation_ids(client) == sent
    client.send(METADATA, 12)
    client.send(METADATA, 12)
    world.run()
    assert (correlation_ids(client), gaps) == ([1, 2, 3, 4, 5, 6, 7], [])


def test_client_that_goes_while_its_replies_follow_one_another_is_forgotten(world):
    client, gaps = Client(world), []
    world.broker.clients.later = lambda seconds, call: gaps.append(call)
    client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
    client.send(METADATA, 12)
    client.send(METADATA, 12)
    world.advance(500)
    client.leave()
    gaps.pop()()
    world.run()
    assert (correlation_ids(client), gaps) == ([1], [])


def test_client_that_goes_leaves_nothing_behind(world):
    client = Client(world)
    for _ in range(3):
        client.send(fetch_request("t", 0, 0, max_wait_ms=60_000), 12)
        client.send(METADATA, 12)
    world.run()
    assert world.broker.parked
    client.leave()
    world.run()
    assert not world.broker.parked
    assert client.connection not in world.broker.clients.open
    assert world.broker.clients.backlog.bytes == 0
    partition = world.broker.partitions.get(world.broker.metadata.topics["t"], 0)
    assert not partition.waiters
    Client(world).call(produce_request("t", 0, b"v"), 9)
    world.advance(60_000)


def test_client_that_is_refused_with_parked_requests_leaves_nothing_behind(world):
    client = Client(world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=60_000), 12)
    world.run()
    client.send_bytes(b"\xff\xff\xff\xff")
    world.run()
    assert client.closed
    assert not world.broker.parked
    Client(world).call(produce_request("t", 0, b"v"), 9)
    world.advance(60_000)


def test_client_that_goes_before_its_sync_harms_nobody():
    world = World("fsync")
    client, other = Client(world), Client(world)
    make_topic(other, "t", 4)
    world.auto_sync = False
    client.send(commit_request("g", {0: 1}), 8)
    other.send(commit_request("g", {1: 1}), 8)
    world.run()
    client.leave()
    world.run()
    world.sync()
    world.run()
    assert len(other.replies()) == 1
    assert client.transport.received == b""


# -- records straight from files


@pytest.fixture
def filled(world):
    producer = Client(world)
    for n in range(6):
        answer = producer.call(produce_request("t", 0, *[bytes([n]) * 9_000] * 100), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
    return world


def test_large_fetch_leaves_in_chunks_as_the_client_reads(filled):
    world, client = filled, Client(filled)
    expected = fetch_bytes(client.call(fetch_request("t", 0, 0), 12))
    assert len(expected) > 5 * 900_000
    slow = Client(world)
    slow.transport.stalled = True
    slow.send(fetch_request("t", 0, 0), 12)
    slow.send(METADATA, 12)
    world.run()
    assert slow.transport.most_buffered <= WRITE_BUFFER_BYTES + CHUNK_BYTES
    for _ in range(1000):
        slow.transport.read(50_000)
        world.run()
        assert slow.transport.most_buffered <= WRITE_BUFFER_BYTES + CHUNK_BYTES
        if not slow.transport.buffer:
            break
    first, second = slow.replies()
    assert fetch_bytes(first) == expected
    assert second.topics


def test_small_fetch_and_replies_around_it_stay_whole_and_in_order(filled):
    client = Client(filled)
    for _ in range(3):
        client.send(commit_request("g", {0: 1}), 8)
        client.send(fetch_request("t", 0, 0), 12)
        client.send(METADATA, 12)
    filled.run()
    assert correlation_ids(client) == list(range(1, 10))
    assert len(client.replies()) == 9


def test_fetch_whose_topic_is_deleted_while_it_leaves_is_whole(filled):
    from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

    world, client = filled, Client(filled)
    expected = fetch_bytes(client.call(fetch_request("t", 0, 0), 12))
    slow = Client(world)
    slow.transport.stalled = True
    slow.send(fetch_request("t", 0, 0), 12)
    world.run()
    client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=bytes(16))], timeout_ms=1), 6)
    slow.transport.stalled = False
    slow.transport.read()
    world.run()
    assert fetch_bytes(slow.replies()[0]) == expected


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), StorageError("the log ends too early")])
@pytest.mark.parametrize("size", [1, 100])
def test_records_that_cannot_be_read_cost_only_who_asked_for_them(filled, error, size, monkeypatch, caplog):
    world, client, other = filled, Client(filled), Client(filled)
    if size == 1:
        client.call(produce_request("t", 1, b"small"), 9)

    def broken(self, n: int, at: int) -> bytes:
        raise error

    monkeypatch.setattr(FileSlice, "pread", broken)
    caplog.clear()
    client.send(fetch_request("t", 1 if size == 1 else 0, 0), 12)
    other.send(commit_request("g", {0: 5}), 8)
    world.run()
    assert client.closed
    assert len(other.replies()) == 1
    assert len([r for r in caplog.records if r.levelname in ("WARNING", "ERROR")]) == 1


def test_parked_fetch_whose_records_cannot_be_read_does_not_end_the_turn_of_others(world, monkeypatch):
    client, other = Client(world), Client(world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=60_000), 12)
    world.run()

    def broken(self, n: int, at: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(FileSlice, "pread", broken)
    answer = other.call(produce_request("t", 0, b"v"), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert client.closed


# -- turns


def test_long_work_for_one_client_is_cut_into_slices_between_which_others_are_answered(world, monkeypatch):
    monkeypatch.setattr(world.clock, "monotonic_ms", iter(range(1_000_000)).__next__)  # a request takes a millisecond
    greedy, modest, other = Client(world), Client(world), Client(world)
    flood(greedy, METADATA, 12, 1)
    world.run()
    greedy.connection.data_received(b"".join(frame(METADATA, 12, n) for n in range(2, 102)))
    modest.send(ApiVersionsRequest(), 0)
    other.send(METADATA, 12)  # may be large, and is not for this turn
    world.turn()
    assert len(correlation_ids(modest)) == 1
    assert 1 < len(correlation_ids(greedy)) < 20
    while not correlation_ids(other):
        world.turn()
    assert len(correlation_ids(greedy)) < 40
    world.run()
    assert correlation_ids(greedy) == list(range(1, 102))


def test_client_that_reads_large_replies_as_fast_as_it_can_lets_others_have_their_turn(filled):
    world, greedy, modest = filled, Client(filled), Client(filled)
    greedy.connection.data_received(b"".join(frame(fetch_request("t", 0, 0), 12, n) for n in range(5)))  # 27 MB in all
    modest.send(METADATA, 12)
    world.turn()
    assert len(correlation_ids(modest)) == 1
    assert len(greedy.transport.received) <= TURN_BYTES + CHUNK_BYTES
    world.run()
    assert correlation_ids(greedy) == [0, 1, 2, 3, 4]


def test_nothing_is_read_for_a_client_that_has_gone(filled, monkeypatch):
    world, client = filled, Client(filled)
    client.transport.stalled = True
    client.connection.data_received(b"".join(frame(fetch_request("t", 0, 0), 12, n) for n in range(5)))
    monkeypatch.setattr(client.transport, "write", lambda data: client.transport.abort())  # the write finds out
    reads = []
    original = FileSlice.pread
    monkeypatch.setattr(FileSlice, "pread", lambda self, n, at: reads.append(n) or original(self, n, at))
    world.run()
    assert len(reads) <= 1
    assert client.connection not in world.broker.clients.open
