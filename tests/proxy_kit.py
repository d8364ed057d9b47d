"""One connection through the proxy without a socket: a client, a node that answers what the test says, and the core."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from core_broker import World

from broker.handlers import make_routes
from broker.proxy.addresses import Addresses
from broker.proxy.connection import ProxyConnection
from broker.proxy.faults import ProxyFaults
from broker.proxy.link import Link
from broker.proxy.router import ProxyRouter
from broker.wire.clients import Clients
from protocol.api import response_class
from protocol.codegen import codec
from protocol.header import encode_response_header


class Wire:
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.closed = False
        self.is_reading = True

    def write(self, data: bytes) -> None:
        self.data += data

    def set_write_buffer_limits(self, high: int) -> None:
        """It takes everything."""

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("127.0.0.1", 50000), "sockname": ("127.0.0.1", 9092)}.get(name)

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.closed = True

    abort = close


class Path:
    """A client's connection, and the one to its node."""

    def __init__(self, *, reach: bool = True, world: World | None = None) -> None:
        self.world = world or World()
        broker = self.world.broker
        self.router = ProxyRouter(broker, make_routes(broker.config.release), broker.turn)
        self.clients = Clients(broker.turn, broker.config, broker.parked, self.router)
        self.met: list[tuple[int, str, int]] = []
        self.router.addresses = Addresses(broker.nodes, lambda *place: self.met.append(place))
        self.router.clients = self.clients
        self.client, self.node = Wire(), Wire()
        listener = broker.nodes.up[0].main
        self.connection = ProxyConnection(self.clients, 1, listener, self.router, lambda connection: None)
        self.connection.connection_made(self.client)
        self.link = Link(self.connection)
        if reach:
            self.reach()

    def reach(self) -> None:
        """The node is reached."""
        self.link.connection_made(self.node)
        self.connection.linked(self.link)
        self.world.run()

    def faults(self) -> ProxyFaults:
        """The table of faults, made when a test needs one."""
        broker = self.world.broker
        return ProxyFaults(
            broker.turn,
            self.clients,
            self.router,
            broker.metadata_shard,
            broker.fetch_sessions,
            lambda *words: None,
            "/data",
            iter(range(1, 1000)),
        )


def reply(response: Any, version: int, correlation_id: int) -> bytes:
    """A reply as it goes over the wire, size field included."""
    data = encode_response_header(response.API_KEY, version, correlation_id)
    data += codec(response_class(response.API_KEY), version).encode(response)
    return len(data).to_bytes(4, "big") + data


def in_pieces(data: bytes, sizes: Callable[[], int]) -> deque[bytes]:
    """The bytes as a socket may deliver them."""
    found: deque[bytes] = deque()
    while data:
        size = sizes()
        found.append(data[:size])
        data = data[size:]
    return found
