"""Replies leave at the client's speed; what waits for slow clients is bounded."""

from __future__ import annotations

import pytest
from core_broker import Client, World, frame, make_topic, split_frames
from core_requests import commit_request, fetch_bytes, fetch_request, produce_request
from unit.wire.replies_kit import ALL, METADATA, correlation_ids, flood, world_with_topic

from broker.wire.connection import BACKLOG_SLOTS, WRITE_BUFFER_BYTES
from broker.wire.reply_queue import SMALL_BYTES
from broker.wire.reply_stream import CHUNK_BYTES, FULL_BYTES, PARKED_BYTES, SLICE_BYTES
from protocol.messages.classic_group import HeartbeatRequest


@pytest.fixture
def world():
    return world_with_topic()


@pytest.mark.heavy
def test_client_that_never_reads_is_not_read_from_and_holds_little(world):
    world.broker.router.shared = None  # a reply that others have too counts for little
    make_topic(Client(world), "wide", 1000)
    client, healthy = Client(world), Client(world)
    client.transport.stalled = True
    flood(client, METADATA, 12, 200)
    world.run()
    assert not client.transport.reading
    assert client.pending, "the rest waits where the client is"
    limit = world.broker.clients.backlog_limit + WRITE_BUFFER_BYTES + 100_000
    assert client.transport.most_buffered < limit
    assert client.connection.unsent < limit
    assert healthy.call(METADATA, 12).topics
    # it reads again: everything comes, in order
    client.transport.stalled = False
    while client.pending or client.transport.buffer:
        client.transport.read()
        world.run()
    assert correlation_ids(client) == list(range(1, 201))
    assert world.broker.clients.backlog.bytes == 0


def test_client_that_reads_a_little_now_and_then_gets_it_all_in_bounded_memory(world):
    make_topic(Client(world), "wide", 300)
    client = Client(world)
    client.transport.stalled = True
    flood(client, METADATA, 12, 500)
    world.run()
    for _ in range(100_000):
        if not client.pending and not client.transport.buffer:
            break
        client.transport.read(100_000)
        world.run()
        assert len(client.transport.buffer) < 3 << 20
    assert correlation_ids(client) == list(range(1, 501))


def test_large_reply_is_handed_over_in_small_pieces(world):
    make_topic(Client(world), "wide", 4000)
    client = Client(world)
    client.transport.stalled = True
    client.send(METADATA, 12)
    world.run()
    assert client.transport.pieces == [FULL_BYTES]
    client.transport.stalled = False
    client.transport.read()
    world.run()
    assert correlation_ids(client) == [1]


@pytest.mark.parametrize("question", ["metadata", "offsets", "records"])
def test_what_is_kept_for_a_client_that_does_not_read_is_counted(world, question):
    make_topic(Client(world), "wide", 1000)
    Client(world).call(commit_request("g", dict.fromkeys(range(1000), 5), "wide"), 8)
    request, version = {"metadata": (METADATA, 12), "offsets": (ALL, 8), "records": (fetch_request("t", 0, 0), 12)}[
        question
    ]
    producer, client = Client(world), Client(world)
    producer.call(produce_request("t", 0, *[b"v" * 400] * 100), 9)
    producer.call(produce_request("t", 0, b"v"), 9)
    client.transport.stalled = True
    flood(client, request, version, 400)
    world.run()
    counted = world.broker.clients.backlog
    while client.pending or client.transport.buffer:
        # a client that holds back less than the transport may hold is not counted
        connection = client.connection
        held = len(connection.partial) + sum(client.transport.pieces)
        held += sum(len(part) if isinstance(part, bytes) else SLICE_BYTES for part in connection.stream._parts)
        assert held <= counted.bytes + FULL_BYTES + WRITE_BUFFER_BYTES + SMALL_BYTES
        client.transport.read(20_000)
        world.run()
    assert correlation_ids(client) == list(range(1, 401))
    assert counted.bytes == connection.stream.held_bytes == 0


def test_kept_answers_to_small_questions_are_held_back_like_others(world):
    make_topic(Client(world), "wide", 200)
    client = Client(world)
    for topic in ("wide", "t"):
        client.call(commit_request("g", {p: p for p in range(4)}, topic, metadata="m" * 1000), 8)
    client.call(ALL, 8)
    client.call(ALL, 8)
    client.transport.stalled = True
    flood(client, ALL, 8, 4000)
    world.run()
    assert client.transport.most_buffered < world.broker.clients.backlog_limit + WRITE_BUFFER_BYTES + 100_000
    assert not client.transport.reading
    client.transport.stalled = False
    while client.pending or client.transport.buffer:
        client.transport.read()
        world.run()
    assert len(correlation_ids(client)) == 4000 + 4


def test_large_replies_behind_a_parked_request_are_bounded(world):
    world.broker.router.shared = None  # a reply that others have too counts for little
    make_topic(Client(world), "wide", 1000)
    client, producer = Client(world), Client(world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=600_000), 12)
    flood(client, METADATA, 12, 100)
    world.run()
    assert client.connection.unsent < world.broker.clients.backlog_limit + 100_000
    assert not client.transport.reading
    producer.call(produce_request("t", 0, b"v"), 9)
    assert correlation_ids(client) == list(range(1, 102))


def test_replies_from_files_behind_a_parked_request_are_bounded_in_number(world):
    client, producer = Client(world), Client(world)
    for index in (1, 0):
        producer.call(produce_request("t", index, *[b"v" * 9_000] * 100), 9)
    client.send(fetch_request("t", 0, 100, max_wait_ms=600_000), 12)
    flood(client, fetch_request("t", 1, 0), 12, BACKLOG_SLOTS)
    world.run()
    waiting = client.connection.out
    assert any(isinstance(reply, list) for reply in waiting)
    assert client.connection.unsent // len(waiting) > SLICE_BYTES
    assert client.connection.unsent < world.broker.clients.backlog_limit + 100_000


def test_parked_requests_of_one_connection_are_bounded(world):
    client, producer = Client(world), Client(world)
    flood(client, fetch_request("t", 0, 0, max_wait_ms=600_000), 12, 2000)
    world.run()
    assert len(world.broker.parked) <= world.broker.clients.backlog_limit // PARKED_BYTES + 1
    producer.call(produce_request("t", 0, b"v"), 9)
    for _ in range(2000):
        world.run()
    assert correlation_ids(client) == list(range(1, 2001))


def test_small_replies_that_cannot_leave_are_bounded_in_number(world):
    client, producer = Client(world), Client(world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=600_000), 12)
    flood(client, commit_request("g", {0: 1}), 8, 20_000)
    world.run()
    slots = len(client.connection.out)
    assert slots <= BACKLOG_SLOTS + (1 << 18) // 60
    assert not client.transport.reading
    producer.call(produce_request("t", 0, b"v"), 9)
    for _ in range(20):
        world.run()
    assert correlation_ids(client) == list(range(1, 20_002))


def test_requests_without_a_reply_are_bounded_in_number_too(world):
    client = Client(world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=600_000), 12)
    request = frame(produce_request("t", 1, b"v", acks=0), 9, 1)
    for _ in range(BACKLOG_SLOTS):
        assert client.transport.reading
        client.connection.data_received(request)
        world.run()
    assert not client.transport.reading


def test_clients_that_do_not_read_give_way_to_others_when_all_of_them_hold_too_much(caplog):
    world = World("os", queued_max_bytes=str(2 << 20))
    make_topic(Client(world), "wide", 1000)
    slow = [Client(world) for _ in range(40)]
    for client in slow:
        client.transport.stalled = True
        flood(client, METADATA, 12, 30)
        world.run()
        assert world.broker.clients.backlog.bytes <= 2 << 20
        assert sum(len(c.transport.buffer) for c in slow if not c.closed) <= 3 << 20
        world.advance(1000)
    closed = [client.closed for client in slow]
    assert 0 < sum(closed) < 40
    assert closed == sorted(closed, reverse=True), "the first to stop reading is the first to go"
    assert len([r for r in caplog.records if r.name == "momus.connection"]) == sum(closed)
    healthy = Client(world)
    assert healthy.call(METADATA, 12).topics
    for client in slow:
        client.leave()
    world.run()
    assert world.broker.clients.backlog.bytes == 0


def test_clients_that_are_only_slow_for_a_moment_stay_up_to_twice_the_limit():
    world = World("os", queued_max_bytes=str(1 << 20))
    make_topic(Client(world), "wide", 1000)
    slow = [Client(world) for _ in range(60)]
    for client in slow:
        client.transport.stalled = True
        flood(client, METADATA, 12, 10)
        world.run()
        assert world.broker.clients.backlog.bytes <= 2 << 20
        if world.broker.clients.backlog.bytes <= 1 << 20:
            assert not any(c.closed for c in slow)
    assert any(c.closed for c in slow), "in no time at all they hold twice the limit"
    world.advance(999)
    open_now = [c for c in slow if not c.closed]
    for client in open_now:
        client.transport.stalled = False
        client.transport.read()
    world.run()
    assert not any(c.closed for c in open_now)
    assert all(correlation_ids(c) == list(range(1, 11)) for c in open_now)


def test_many_clients_with_large_replies_in_one_turn_are_all_answered():
    world = World("os", queued_max_bytes=str(1 << 20))
    make_topic(Client(world), "wide", 1000)
    crowd = [Client(world) for _ in range(80)]
    for client in crowd:
        client.send_bytes(b"".join(frame(METADATA, 12, n) for n in range(1, 5)))  # in all ten times what may wait
    world.run()
    assert all(correlation_ids(c) == [1, 2, 3, 4] for c in crowd)
    assert world.broker.clients.backlog.bytes == 0


def test_pieces_get_smaller_while_slow_clients_hold_much():
    world = World("os", queued_max_bytes=str(1 << 20))
    producer, first, second = Client(world), Client(world), Client(world)
    make_topic(producer, "t")
    for _ in range(3):
        producer.call(produce_request("t", 0, *[b"v" * 9_000] * 100), 9)
    for client in (first, second):
        client.transport.stalled = True
        client.send(fetch_request("t", 0, 0), 12)
        world.run()
    assert first.transport.most_buffered > CHUNK_BYTES // 2
    assert second.transport.most_buffered < WRITE_BUFFER_BYTES + CHUNK_BYTES // 4
    for client in (first, second):
        client.transport.stalled = False
        client.transport.read()
    world.run()
    assert fetch_bytes(first.replies()[0]) == fetch_bytes(second.replies()[0]) != b""


def test_unfinished_requests_give_way_to_others_when_all_of_them_hold_too_much():
    world = World("os", queued_max_bytes=str(4 << 20))
    halves = [Client(world) for _ in range(100)]
    for client in halves:
        client.send_bytes((60_000).to_bytes(4, "big") + bytes(59_000))
        world.run()
        world.advance(50)
        assert world.broker.clients.backlog.bytes <= (4 << 20) + 20 * 59_000
    assert halves[0].closed
    assert not halves[-1].closed
    # one that is large alone still comes in
    big = Client(world)
    make_topic(big, "t")
    answer = big.call(produce_request("t", 0, *[b"v" * 9_000] * 100), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_heartbeats_behind_a_slow_reader_of_another_connection_are_answered(world):
    slow = Client(world)
    slow.transport.stalled = True
    make_topic(Client(world), "wide", 1000)
    flood(slow, METADATA, 12, 60)
    world.run()
    assert Client(world).call(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4).error_code


def test_slices_of_a_client_whose_replies_cannot_leave_are_bounded_all_the_same(world, monkeypatch):
    monkeypatch.setattr(world.clock, "monotonic_ms", iter(range(1_000_000)).__next__)
    client, producer = Client(world), Client(world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=600_000), 12)
    flood(client, METADATA, 12, 200)
    world.run()
    assert correlation_ids(client) == []
    producer.call(produce_request("t", 0, b"v"), 9)
    assert correlation_ids(client) == list(range(1, 202))


@pytest.mark.parametrize("kept", [False, True])
def test_one_read_full_of_requests_is_worked_on_only_as_far_as_its_replies_may_wait(kept):
    world = World("os", queued_max_bytes_per_connection=str(1 << 16))
    client = Client(world)
    make_topic(client, "wide", 100)
    request, version, size = METADATA, 12, 4_500
    if kept:
        request, version, size = ALL, 8, 4_500
        client.call(commit_request("g", {p: p for p in range(4)}, "wide", metadata="m" * 1000), 8)
        client.call(ALL, 8)
        client.call(ALL, 8)
    client.connection.data_received(b"".join(frame(request, version, n) for n in range(2000)))
    assert 0 < client.connection.unsent <= (1 << 16) + size
    assert client.connection.partial
    before = len(client.transport.received)
    world.run()
    found = split_frames(bytes(client.transport.received[before:]))
    assert [int.from_bytes(body[:4], "big") for body in found] == list(range(2000))


def test_replies_behind_a_parked_request_count_among_what_slow_clients_hold(world):
    world.broker.router.shared = None  # a reply that others have too counts for little
    make_topic(Client(world), "wide", 1000)
    client = Client(world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=600_000), 12)
    flood(client, METADATA, 12, 10)
    world.run()
    assert client.connection.unsent > 100_000
    assert world.broker.clients.backlog.bytes >= client.connection.unsent
    client.leave()
    world.run()
    assert world.broker.clients.backlog.bytes == 0


def test_one_large_request_alone_may_hold_more_than_the_limit():
    world = World("os", queued_max_bytes=str(1 << 20))
    client = Client(world)
    make_topic(client, "t")
    client.send(produce_request("t", 0, *[b"v" * 9_000] * 400), 9)  # 3.6 MB: too large for the topic, not to come in
    world.advance(5000)
    assert len(client.replies()) == 1
    assert not client.closed


def test_whoever_makes_progress_stays_before_whoever_does_not():
    world = World("os", queued_max_bytes=str(1 << 20))
    busy, silent, last = Client(world), Client(world), Client(world)
    head = (900_000).to_bytes(4, "big")
    busy.send_bytes(head + bytes(100_000))
    silent.send_bytes(head + bytes(600_000))
    for _ in range(3):
        world.advance(500)
        busy.send_bytes(bytes(100_000))
    last.send_bytes(head + bytes(200_000))
    world.run()
    assert [client.closed for client in (busy, silent, last)] == [False, True, False]
