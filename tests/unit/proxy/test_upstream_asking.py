"""Who asks the upstream cluster at the same time shares one connection to a node."""

from __future__ import annotations

import asyncio
from typing import Any

from broker.shell.proxy.upstream import Asking, Upstream
from protocol.codegen import codec
from protocol.messages.cluster import ApiVersionsRequest, ApiVersionsResponse


class Node:
    """The transport to a node that numbers its answers."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.answers = 0

    def write(self, frame: bytes) -> None:
        self.answers += 1
        answer = frame[8:12] + codec(ApiVersionsResponse, 1).encode(ApiVersionsResponse(throttle_time_ms=self.answers))
        data = len(answer).to_bytes(4, "big") + answer
        asyncio.get_running_loop().call_soon(self.asking.data_received, data)

    def abort(self) -> None:
        self.asking.connection_lost(None)


class Reached(Upstream):
    """An upstream cluster whose nodes are reached in a moment."""

    def __init__(self) -> None:
        super().__init__([])
        self.opened: list[Node] = []

    async def connect(self, place: Any, make: Any, *, is_clients: bool = False) -> Any:
        moment = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(moment.set_result, None)
        await moment
        asking = make()
        asking.transport = Node(asking)
        self.opened.append(asking.transport)
        return asking


def asked(upstream: Upstream, *places: str) -> list[int]:
    async def play() -> list[Any]:
        return await asyncio.gather(*[upstream.ask_at((host, 1), ApiVersionsRequest(), 1) for host in places])

    return [answer.throttle_time_ms for answer in asyncio.run(play())]


def test_askers_of_one_node_make_one_connection_and_each_gets_its_own_answer():
    upstream = Reached()
    assert asked(upstream, "a", "a", "a") == [1, 2, 3]
    assert len(upstream.opened) == 1


def test_askers_of_two_nodes_do_not_wait_for_each_other():
    upstream = Reached()
    assert asked(upstream, "a", "b", "a") == [1, 1, 2]
    assert len(upstream.opened) == 2


def test_a_connection_that_was_lost_is_made_again_once():
    upstream = Reached()
    asked(upstream, "a")
    upstream.close()
    assert asked(upstream, "a", "a") == [1, 2]
    assert len(upstream.opened) == 2
