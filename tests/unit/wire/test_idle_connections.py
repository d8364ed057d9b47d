"""Since when a connection has been idle: `connections.max.idle.ms` counts from there."""

from __future__ import annotations

from core_broker import Client, World

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
