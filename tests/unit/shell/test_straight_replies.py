"""Large Fetches past the transport: whole, in order, at the client's speed; read where the kernel cannot send them."""

from __future__ import annotations

import os
import socket
from types import SimpleNamespace

import core_broker
import pytest
from core_broker import Client, World, make_topic
from core_requests import fetch_request, produce_request
from straight_kit import SocketClient, end_all
from unit.wire.replies_kit import METADATA, correlation_ids

from broker.shell.sockets.receivers import Receivers
from broker.shell.sockets.straight import IS_KNOWN, Straight, straight
from broker.wire.reply_stream import CHUNK_BYTES, FULL_BYTES, STRAIGHT_BYTES, TURN_BYTES, ReplyStream
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from storage.clock.manual_clock import ManualClock
from storage.files.disk import SystemFiles
from storage.files.env import Env, Rng
from storage.segments.file_slice import FileSlice

pytestmark = pytest.mark.skipif(not IS_KNOWN, reason="bytes go past the transport on Linux alone")


def on_disk(tmp_path, monkeypatch) -> World:
    monkeypatch.setattr(core_broker, "DATA", str(tmp_path / "data"))
    return World("os", Env(ManualClock(), Rng(1), SystemFiles()))  # type: ignore[arg-type]  # it moves as a clock does


@pytest.fixture(params=["disk", "memory"])
def world(request, tmp_path, monkeypatch):
    world = on_disk(tmp_path, monkeypatch) if request.param == "disk" else World("os")
    producer = Client(world)
    make_topic(producer, "t", 4)
    for place in (0, 1):
        for n in range(6):
            records = [bytes([n, place, k]) * 3_000 for k in range(100)]
            answer = producer.call(produce_request("t", place, *records), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
    yield world
    end_all(world)


def plain(world, request, version=12) -> bytes:
    """The reply as a transport alone is given it."""
    client = Client(world)
    client.send(request, version)
    world.run()
    return bytes(client.transport.received)


def test_slices_go_past_the_transport_and_are_the_same_bytes(world):
    client = SocketClient(world)
    request = fetch_request("t", 0, 0)
    client.send(request, 12)
    client.read_all()
    assert bytes(client.made.received) == plain(world, request)
    assert len(client.made.received) > 5 * 900_000
    assert client.straight_bytes > 4 * FULL_BYTES
    assert client.straight_bytes + client.made.written <= len(client.made.received)


def test_slice_in_the_middle_of_a_file_ends_where_it_ends(world, monkeypatch):
    monkeypatch.setattr("straight_kit.ROOM", 1 << 20)  # all of it fits into the socket
    for n in range(3):
        Client(world).call(produce_request("t", 3, bytes([n]) * 150_000), 9)
    request = fetch_request("t", 3, 1)
    request.topics[0].partitions[0].partition_max_bytes = 200_000
    client = SocketClient(world)
    client.send(request, 12)
    client.read_all()
    assert bytes(client.made.received) == plain(world, request)
    assert client.straight_bytes > 150_000


def test_slices_of_several_partitions_keep_their_order(world):
    request = fetch_request("t", 0, 0)
    second = fetch_request("t", 1, 0).topics[0].partitions[0]
    request.topics[0].partitions.append(second)
    client = SocketClient(world)
    client.send(request, 12)
    client.read_all()
    assert bytes(client.made.received) == plain(world, request)
    assert client.straight_bytes > 0


def test_replies_around_a_large_one_keep_their_order(world):
    client = SocketClient(world)
    for _ in range(3):
        client.send(METADATA, 12)
        client.send(fetch_request("t", 0, 0), 12)
        client.send(METADATA, 12)
    client.read_all()
    assert correlation_ids(client) == list(range(1, 10))
    assert len(client.replies()) == 9
    assert client.straight_bytes > 0


def test_client_that_does_not_read_makes_the_broker_hold_back_one_small_chunk(world):
    client = SocketClient(world)
    client.send(fetch_request("t", 0, 0), 12)
    client.send(METADATA, 12)
    world.run()
    assert client.connection.write_paused
    assert len(client.made.buffer) <= FULL_BYTES
    assert not client.made.reading
    client.read_all()
    assert correlation_ids(client) == [1, 2]
    assert client.made.reading


def test_large_replies_past_the_transport_leave_others_their_turn(world, monkeypatch):
    monkeypatch.setattr("straight_kit.ROOM", 1 << 24)
    greedy, modest = SocketClient(world), Client(world)
    sent = []

    def endless(self, part, most_bytes, at):
        sent.append(min(most_bytes, len(part) - at))
        return sent[-1]

    monkeypatch.setattr("straight_kit.Counted.send_file", endless)
    for _ in range(3):
        greedy.send(fetch_request("t", 0, 0), 12)
    modest.send(METADATA, 12)
    world.turn()
    assert len(correlation_ids(modest)) == 1
    assert TURN_BYTES <= sum(sent) <= TURN_BYTES + CHUNK_BYTES
    world.run()
    assert sum(sent) > 3 * 5 * 900_000


def test_topic_deleted_while_its_records_leave_is_sent_whole(world):
    client, admin = SocketClient(world), Client(world)
    request = fetch_request("t", 0, 0)
    expected = plain(world, request)
    client.send(request, 12)
    world.run()
    client.read(100_000)
    admin.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=bytes(16))], timeout_ms=1), 6)
    client.read_all()
    assert bytes(client.made.received) == expected
    assert client.straight_bytes > 4 * FULL_BYTES


def test_log_cut_while_its_records_leave_ends_the_connection(world, caplog):
    client = SocketClient(world)
    client.send(fetch_request("t", 0, 0), 12)
    world.run()
    world.broker.partitions.get(world.broker.metadata.topics["t"], 0).log.cut_back(100)
    client.read_all()
    assert client.closed
    assert "before the slice that is read from it" in caplog.text
    assert len(client.made.received) < 5 * 900_000


def test_client_that_goes_in_the_middle_leaves_nothing_behind(world):
    client = SocketClient(world)
    client.send(fetch_request("t", 0, 0), 12)
    world.run()
    client.read(10_000)
    client.theirs.close()
    client.made.flush_and_resume()
    world.run()
    assert client.connection not in world.broker.clients.open
    assert not client.connection.stream
    assert client.ways[0]._descriptor == -1
    assert client.connection.stream.find_straight is None


def test_file_that_the_kernel_cannot_send_is_read(world, monkeypatch):
    def cannot(self, descriptor, n, at):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(FileSlice, "send", cannot)
    client = SocketClient(world)
    request = fetch_request("t", 0, 0)
    client.send(request, 12)
    client.read_all()
    assert bytes(client.made.received) == plain(world, request)
    assert client.straight_bytes == 0


def test_small_slices_of_a_large_reply_are_read(world, monkeypatch):
    Client(world).call(produce_request("t", 2, bytes(STRAIGHT_BYTES - 200)), 9)
    request = fetch_request("t", 2, 0)
    request.topics[0].partitions.append(fetch_request("t", 0, 0).topics[0].partitions[0])
    sizes = []
    original = FileSlice.send
    monkeypatch.setattr(FileSlice, "send", lambda self, *more: sizes.append(len(self)) or original(self, *more))
    client = SocketClient(world)
    client.send(request, 12)
    client.read_all()
    assert bytes(client.made.received) == plain(world, request)
    assert sizes
    assert min(sizes) >= STRAIGHT_BYTES


def test_socket_is_not_closed_by_who_borrowed_it():
    ours, theirs = socket.socketpair()
    with ours, theirs:

        class Transport:
            def get_extra_info(self, name):
                return ours

            def get_write_buffer_size(self):
                return 0

        forgotten = Straight(Transport())
        assert forgotten.send(b"one") == 3
        del forgotten
        closed = Straight(Transport())
        closed.close()
        assert closed.send(b"two") == 0
        assert os.fstat(ours.fileno())
        assert theirs.recv(10) == b"one"


def test_bytes_that_the_socket_takes_in_part_keep_their_order(world):
    log = world.broker.partitions.get(world.broker.metadata.topics["t"], 0).log
    part = log.read(0, 1, limit_offset=log.end_offset)
    left = []

    class Socket:
        def __init__(self, transport):
            self.got = b""
            self.holds = []

        def is_free(self):
            return not left

        def hold(self, is_on):
            self.holds.append(is_on)

        def send(self, data):
            self.got += data[:2]
            return 2

        def send_file(self, part, most_bytes, at):
            self.got += part.pread(100_000, at)
            return min(100_000, len(part) - at)

        def close(self):
            pass

    class Transport:
        def write(self, data):
            left.append(data)

    stream = ReplyStream(world.broker.turn.metrics)
    ways = []
    stream.find_straight = lambda transport: ways.append(Socket(transport)) or ways[-1]
    stream.add([[part, b"", b"tail", part, b"end"]])
    assert stream.write(Transport(), CHUNK_BYTES, lambda: False)
    assert ways[0].got == part.read() + b"ta"
    assert b"".join(left) == b"il" + part.read() + b"end"
    assert not stream
    assert ways[0].holds == [True, False]
    left.clear()
    stream.add([[b"more"]])
    assert stream.write(Transport(), CHUNK_BYTES, lambda: False)
    assert ways[0].got.endswith(b"tamo")
    assert ways[0].holds == [True, False], "nothing follows"
    assert len(ways) == 1


@pytest.mark.parametrize("is_sasl", [False, True])
def test_plain_listeners_have_the_way_past_the_transport(world, is_sasl):
    listener = SimpleNamespace(is_sasl=is_sasl, is_tls=False, name="PLAIN")
    service = world.broker.clients
    broker = SimpleNamespace(clients=service, security=SimpleNamespace(guard=lambda listener: service))
    made = Receivers(None, None).receiver(lambda: broker, world.broker.nodes.up[0], listener)()
    assert made.stream.find_straight is straight
    assert (made.guard is not None) == is_sasl
