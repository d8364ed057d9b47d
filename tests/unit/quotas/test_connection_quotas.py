"""Quotas of connections: how many of an address, how fast they come, and which quota counts."""

from __future__ import annotations

import pytest
from core_broker import Client, World
from quotas_kit import set_quota

from protocol.messages.cluster import ApiVersionsRequest


def test_connections_of_one_address_are_limited():
    world = World("memory", max_connections_per_ip="1", max_connections_per_ip_overrides="127.0.0.1:2, 10.0.0.1:9")
    clients = [Client(world) for _ in range(3)]
    world.run()
    assert [each.closed for each in clients] == [False, False, True]
    clients[0].leave()
    world.run()
    assert not Client(world).closed
    alone = World("memory", max_connections_per_ip="1")
    assert [Client(alone).closed for _ in range(2)] == [False, True]


def test_connections_that_come_too_fast_are_slowed_down():
    world = World("memory", max_connection_creation_rate="1")
    clients = [Client(world) for _ in range(12)]
    assert all(each.transport.reading for each in clients[:10])
    assert not clients[-1].transport.reading
    world.clock.advance(3000)
    world.run()
    assert clients[-1].transport.reading


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", None])
def test_address_that_connects_too_often_is_hung_up_after_a_while(client, address):
    """A running Kafka lets ten through at one a second, and closes others after a second, unserved."""
    shortcuts = client.world.broker.clients.shortcuts
    set_quota(client, "connection_creation_rate", 5, ip="10.0.0.1")
    set_quota(client, "connection_creation_rate", 1, ip=address)
    clients = [Client(client.world) for _ in range(13)]
    assert [each.transport.reading for each in clients] == [True] * 10 + [False] * 3
    clients[-1].send(ApiVersionsRequest(), 0)
    client.world.clock.advance(999)
    client.world.run()
    assert not any(each.closed for each in clients)
    client.world.clock.advance(1)
    client.world.run()
    assert [each.closed for each in clients] == [False] * 10 + [True] * 3
    assert not clients[-1].replies()
    client.world.clock.advance(11_000)
    assert Client(client.world).call(ApiVersionsRequest(), 0).error_code == 0
    assert client.world.broker.clients.shortcuts is shortcuts, "requests are not measured"
    set_quota(client, "connection_creation_rate", None, ip=address)
    set_quota(client, "connection_creation_rate", None, ip="10.0.0.1")
    assert client.world.broker.clients.address_quotas is None


def test_connections_that_are_turned_away_do_not_count_and_wait_a_window_at_most(client):
    world = client.world
    set_quota(client, "connection_creation_rate", 1, ip=None)
    assert sum(Client(world).transport.reading for _ in range(50)) == 10
    world.advance(5000)
    assert not any(Client(world).transport.reading for _ in range(40))
    world.advance(6000)
    assert Client(world).transport.reading, "the ten of before have left the windows"
    set_quota(client, "connection_creation_rate", 1000, ip=None)
    many = [Client(world) for _ in range(60)]
    set_quota(client, "connection_creation_rate", 1, ip=None)
    late = Client(world)
    assert (many[-1].transport.reading, late.transport.reading) == (True, False)
    world.advance(1000)
    assert late.closed


def test_quota_of_an_address_comes_before_that_of_all(client):
    set_quota(client, "connection_creation_rate", 100, ip="127.0.0.1")
    set_quota(client, "connection_creation_rate", 1, ip=None)
    assert all(Client(client.world).transport.reading for _ in range(20))
