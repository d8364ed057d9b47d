"""A frame that comes alone leaves the connection, and the broker's figures, as the same frame in two pieces does."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, frame, make_topic
from core_requests import commit_request, fetch_request, produce_request

from broker.wire.connection import LARGE_INPUT_BYTES
from broker.wire.reply_queue import SMALL_BYTES
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup

WANTED = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
REQUESTS = {
    "shortcut": (commit_request("g", {0: 1}), 8),
    "produce": (produce_request("t", 0, b"v" * 50), 9),
    "large reply": (fetch_request("t", 0, 0), 11),
    "declined by the shortcut": (WANTED, 7),
    "no shortcut": (commit_request("g", {0: 1}), 7),
}


@pytest.fixture
def world():
    world = World("os")
    admin = Client(world)
    make_topic(admin, "t", 5)
    admin.call(produce_request("t", 0, b"v" * 9000), 9)
    admin.call(commit_request("g", {0: 1}), 8)  # loads the group's shard
    return world


def figures(client: Client) -> dict[str, Any]:
    """What a request moves."""
    world, connection = client.world, client.connection
    metrics, backlog = world.broker.turn.metrics, world.broker.clients.backlog
    return {
        "requests": list(metrics.counts),
        "bytes": (metrics.bytes_in, metrics.bytes_out),
        "answered in the turn": world.broker.turn.answered_bytes,
        "connection": (
            connection.base,
            connection.unsent,
            connection.weight,
            connection.read_paused,
            len(connection.out),
        ),
        "backlog": backlog.bytes,
    }


def moved(client: Client, request: Any, version: int, pieces: int) -> list[dict[str, Any]]:
    """How the figures have moved before the turn ends and after it."""
    before = figures(client)
    data = frame(request, version, 1)
    cut = 20 if pieces == 2 else 0
    for piece in (data[:cut], data[cut:]):
        if piece:
            client.connection.data_received(piece)
    within = figures(client)
    client.world.run()
    after = figures(client)
    for each in (within, after):
        each["requests"] = [now - was for now, was in zip(each["requests"], before["requests"], strict=True)]
        each["bytes"] = [now - was for now, was in zip(each["bytes"], before["bytes"], strict=True)]
    return [within, after]


@pytest.mark.parametrize("name", REQUESTS)
def test_frame_that_comes_alone_counts_as_one_in_two_pieces(world, name):
    request, version = REQUESTS[name]
    alone, cut = Client(world), Client(world)
    assert moved(alone, request, version, 1) == moved(cut, request, version, 2)


@pytest.mark.parametrize("name", ["shortcut", "produce"])
def test_repeat_that_is_not_whole_is_not_served(world, name):
    """Bytes after the request are part of its frame, as in Kafka: what its size says counts, not where it could end."""
    request, version = REQUESTS[name]
    client = Client(world)
    for _ in range(2):
        client.call(request, version)
    received = client.transport.received
    received.clear()
    whole = frame(request, version, 7)
    more = (len(whole) - 4 + 3).to_bytes(4, "big") + whole[4:]
    client.connection.data_received(more)
    world.run()
    assert received == b""
    client.connection.data_received(bytes(3))
    world.run()
    assert received[4:8] == (7).to_bytes(4, "big")
    assert client.connection.partial == b""


def test_slots_count_up_with_each_reply_that_leaves(world):
    client = Client(world)
    for n in range(3):
        client.call(commit_request("g", {0: n}), 8)
        assert (client.connection.base, client.connection.unsent, client.connection.out) == (n + 1, 0, [])


def test_connection_weighs_nothing_when_its_last_parked_request_is_answered_alone(world):
    client = Client(world)
    client.send(fetch_request("t", 1, 0, max_wait_ms=60_000), 11)
    world.run()
    assert client.connection.weight == 0
    client.connection.weigh(SMALL_BYTES + 1)  # as when there were more of them
    assert client.connection.weight == world.broker.clients.backlog.bytes > 0
    client.connection.out[0] = b"the reply"  # as one piece, which is what the short way is for
    client.connection.drain()
    assert (client.connection.weight, world.broker.clients.backlog.bytes) == (0, 0)


def test_client_that_was_halted_is_read_from_again_after_a_lone_reply(world):
    client = Client(world)
    client.connection.halt()
    client.connection.add(b"reply")
    client.connection.drain()
    world.run()
    assert not client.connection.read_paused
    assert client.transport.reading


def test_reply_that_may_not_leave_yet_stays(world):
    client = Client(world)
    client.connection.add(b"reply")
    client.connection.awaits_sync = True
    client.connection.drain()
    assert client.transport.received == b""
    client.connection.closed = True
    client.connection.awaits_sync = False
    client.connection.drain()
    assert client.transport.received == b""


def test_client_that_asks_on_while_it_waits_is_not_the_slowest(world):
    patient, busy, other = Client(world), Client(world), Client(world)
    for client, answered, waits in ((busy, 1, 2), (patient, 3, 4)):  # the busy one holds memory for longer
        for index in (answered, waits, waits):
            client.send(fetch_request("t", index, 0, max_wait_ms=60_000), 11)
            world.run()
        other.call(produce_request("t", answered, b"v"), 9)
        world.advance(10)
    world.advance(5_000)
    busy.send(commit_request("g", {0: 1}), 8)
    world.run()
    backlog = world.broker.clients.backlog
    backlog.limit_bytes = backlog.bytes + 1
    backlog.weigh(Client(world).connection, 100, world.broker.turn.steady_ms, progress=True)
    assert (patient.closed, busy.closed) == (True, False)


@pytest.mark.parametrize("count", [1, 4, 5])
def test_memory_of_many_requests_that_come_together_is_kept(world, count):
    """The C library would give it back after each turn, and the kernel clear each page again: 250 faults a megabyte."""
    client, kept = Client(world), []
    world.broker.clients.backlog.large_request = lambda: kept.append(True)
    one = frame(produce_request("t", 0, b"v" * 16_000), 9)
    client.connection.data_received(one * count)
    assert kept == [True] * (count * len(one) > LARGE_INPUT_BYTES)
