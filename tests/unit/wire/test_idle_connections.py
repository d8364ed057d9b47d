"""Since when a connection has been idle: `connections.max.idle.ms` counts from there."""

from __future__ import annotations

from core_broker import Client, World, make_topic
from core_requests import fetch_request

from broker.shell.loop.idle import close_idle
from protocol.messages.cluster import ApiVersionsRequest

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def test_connection_is_idle_from_its_beginning_and_from_its_last_request():
    world = World()
    world.advance(5000)
    client = Client(world)
    begin_ms = world.clock.now_ms()
    world.advance(1000)
    assert client.connection.last_active_ms == begin_ms, "one that has never spoken counts as silent for ever"
    client.call(HELLO, 3)
    assert client.connection.last_active_ms == begin_ms + 1000


def test_late_answer_counts_as_speaking_and_a_request_that_waits_does_not():
    world = World()
    client = Client(world)
    make_topic(client, "t")
    asked_ms = world.clock.now_ms()
    client.send(fetch_request("t", 0, 0, min_bytes=1, max_wait_ms=5000), 11)
    world.advance(4000)
    assert client.connection.last_active_ms == asked_ms
    world.advance(3000)
    assert client.connection.last_active_ms > asked_ms
    assert not client.connection.out


class Transport:
    """Notes how a connection is closed."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")


def test_connections_idle_for_longer_than_the_limit_are_closed_a_few_at_a_time():
    world = World()
    clients = [Client(world) for _ in range(4)]
    for client in clients:
        client.connection.transport = Transport()
    world.advance(1000)
    clients[0].connection.last_active_ms = world.clock.steady_ms()
    clients[1].connection.write_paused = True
    open_ = world.broker.clients
    assert not close_idle(open_, 1000, 9), "idle for just as long as the limit"
    assert not close_idle(open_, -1, 9)
    world.advance(1)
    assert close_idle(open_, 1000, 2)
    assert sum(len(client.connection.transport.calls) for client in clients) == 2
    assert not close_idle(open_, 1000, 3)
    how = [set(client.connection.transport.calls) for client in clients]
    assert how == [set(), {"abort"}, {"close"}, {"close"}]
