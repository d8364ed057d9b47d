"""A client without a socket, for the control plane: requests of ours to one broker, and their answers.

Its connections are not among those of clients: no limit, fault or count of connections concerns them, and shortcuts do
not serve them. What it asks for is decided, appended and held back as any client's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from broker.security.principals import INTERNAL
from broker.wire.clients import NO_RATE, Clients
from broker.wire.connection import Connection
from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.header import encode_request_header, response_header_version

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.config.settings import BrokerConfig

CLIENT_ID: Final = "momus-control"
ANSWER_LIMIT_S: Final = 20.0


class _Transport:
    """What a connection writes to: it cuts replies out, and hands each to whoever waits for it."""

    def __init__(self) -> None:
        self.waiting: deque[asyncio.Future[bytes]] = deque()
        self._data = bytearray()
        self._is_closed = False

    def write(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 4 and len(self._data) >= (end := 4 + int.from_bytes(self._data[:4], "big")):
            future = self.waiting.popleft()
            if not future.done():
                future.set_result(bytes(self._data[8:end]))
            del self._data[:end]

    def abort(self) -> None:
        self._is_closed = True
        for future in self.waiting:
            if not future.done():
                future.set_exception(ConnectionResetError("the broker closed the connection"))
        self.waiting.clear()

    close = abort

    def is_closing(self) -> bool:
        return self._is_closed

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("127.0.0.1", 0), "sockname": ("127.0.0.1", 0)}.get(name)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None:
        """It takes everything."""

    def pause_reading(self) -> None:
        """It sends one request at a time."""

    resume_reading = pause_reading


def _without_limits(config: BrokerConfig) -> BrokerConfig:
    """Settings by which any number of connections may be made at any rate."""
    free = copy(config)
    free.max_connections = free.max_connections_per_ip = free.max_connection_creation_rate = NO_RATE
    free.max_connections_per_ip_overrides = ""
    return free


class LocalClient:
    """Connections to the nodes of one broker, one for each node that is asked."""

    def __init__(self, broker: Broker, config: BrokerConfig) -> None:
        self._broker = broker
        self._service = Clients(broker.turn, _without_limits(config), broker.parked, broker.router)
        self._service.dispatch = broker.router.dispatch_ours
        self._connections: dict[int, tuple[Connection, _Transport]] = {}

    async def call(self, request: Any, version: int, node_id: int | None = None) -> Any:
        """Ask a node, or the first that runs. Errors: TimeoutError, ConnectionResetError."""
        if self._broker.upstream is not None:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                return await self._broker.upstream.ask(request, version, node_id)
        connection, transport = self._connect(node_id)
        api_key = ApiKey(request.API_KEY)
        body = encode_request_header(api_key, version, 0, CLIENT_ID) + codec(type(request), version).encode(request)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        transport.waiting.append(future)
        connection.data_received(len(body).to_bytes(4, "big") + body)
        async with asyncio.timeout(ANSWER_LIMIT_S):
            answer = await future
        # after the correlation id; no broker sends tags there
        return codec(response_class(api_key), version).decode(answer, response_header_version(api_key, version))[0]

    def close(self) -> None:
        """Close the connections."""
        for connection, _ in self._connections.values():
            connection.connection_lost(None)
        self._connections.clear()

    def _connect(self, node_id: int | None) -> tuple[Connection, _Transport]:
        up = self._broker.nodes.up
        node = next((each for each in up if each.node_id == node_id), up[0])
        if node.node_id not in self._connections:
            transport = _Transport()
            connection = Connection(self._service, node.node_id, node.main)
            connection.principal = INTERNAL
            connection.connection_made(transport)
            self._connections[node.node_id] = connection, transport
        return self._connections[node.node_id]
