"""Large requests share a part of each turn: those for which none is left wait, small ones pass them, order stays."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request

from broker.turn.turn import LARGE_MS
from broker.wire import connection as connections
from protocol.api import ApiKey
from protocol.messages.cluster import ApiVersionsRequest, MetadataRequest
from protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource

METADATA = MetadataRequest(topics=None)


@pytest.fixture
def slow() -> World:
    """A broker whose handler of Metadata takes a millisecond, and says which client it serves."""
    world = World("os")
    router, clock = world.broker.router, world.env.clock
    router.shared = None
    Client(world).call(METADATA, 9)
    route = router.routes[ApiKey.METADATA]
    handler = route.handler
    world.served = []

    def takes_long(broker: Any, ctx: Any, request: Any) -> Any:
        world.served.append(ctx.client_id)
        clock.advance(1)
        return handler(broker, ctx, request)

    route.handler = takes_long
    return world


def turn(world: World) -> None:
    """One iteration of the loop: what is ready now."""
    for _ in range(len(world.ready)):
        world.ready.popleft()()


def test_those_that_a_turn_has_no_time_for_are_served_later_in_the_order_in_which_they_came(slow):
    clients = [Client(slow) for _ in range(6)]
    for number, client in enumerate(clients):
        client.send(METADATA, 9, client_id=str(number))
    assert LARGE_MS == 2
    assert slow.served == ["0", "1"]
    slow.run()
    assert slow.served == list("012345")
    assert all(len(client.replies()) == 1 for client in clients)


def test_small_request_passes_large_ones_that_wait(slow):
    clients, small = [Client(slow) for _ in range(6)], Client(slow)
    for client in clients:
        client.send(METADATA, 9)
    small.send(ApiVersionsRequest(), 0)
    while not (answered := small.replies()):
        turn(slow)
    assert len(answered) == 1
    assert len(slow.served) < len(clients)
    slow.run()
    assert len(slow.served) == len(clients)


def test_requests_of_one_client_keep_their_order(slow):
    first, client = Client(slow), Client(slow)
    for _ in range(2):
        first.send(METADATA, 9)
    for request, version in ((METADATA, 9), (ApiVersionsRequest(), 0), (METADATA, 9)) * 2:
        client.send(request, version)
    slow.run()
    assert [type(reply).__name__[:3] for reply in client.replies()] == ["Met", "Api", "Met"] * 2


def test_client_that_has_gone_meanwhile_is_not_served(slow):
    clients = [Client(slow) for _ in range(4)]
    for number, client in enumerate(clients):
        client.send(METADATA, 9, client_id=str(number))
    clients[2].transport.abort()
    slow.run()
    assert slow.served == ["0", "1", "3"]


def test_large_request_of_any_api_waits(slow):
    for _ in range(2):
        Client(slow).send(METADATA, 9)
    client = Client(slow)
    names = [f"{number:0100}" for number in range(50)]
    resources = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in names]
    assert sum(map(len, names)) > connections.LARGE_BYTES
    client.send(DescribeConfigsRequest(resources=resources), 4)
    assert not client.connection.out
    assert not client.transport.reading  # what it sends on waits where it is
    slow.run()
    assert client.transport.reading
    assert len(client.replies()[0].results) == 50


def test_large_request_of_an_api_with_repeats_waits(slow):
    client = Client(slow)
    make_topic(client, "t", 1)
    for offset in range(2):
        client.call(commit_request("g", {0: offset}, "t"), 8)
    for _ in range(2):
        Client(slow).send(METADATA, 9)
    client.send(commit_request("g", dict.fromkeys(range(1000), 1), "t"), 8)
    assert not client.connection.out
    slow.run()
    assert len(client.replies()[0].topics[0].partitions) == 1000


def test_replies_of_many_bytes_fill_a_turn(slow):
    client = Client(slow)
    slow.broker.turn.begin()
    slow.broker.turn.answered_bytes = 5 << 20
    client.send(METADATA, 9)
    assert slow.served == []
    slow.run()
    assert len(client.replies()) == 1
