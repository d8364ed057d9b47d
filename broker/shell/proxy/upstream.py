"""Reaches the nodes of the upstream cluster: TCP, TLS, SASL; and asks them, for the proxy itself.

A connection is handed over only when it is ready for a client's requests. Where it authenticates by SASL, the exchange
runs in a thread: SCRAM computes for milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.asks.ask import Places, routed
from broker.asks.topics import metadata
from broker.shell.asking import answer_of
from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.header import encode_request_header, response_header_version
from protocol.messages.cluster import ApiVersionsRequest

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from broker.asks.ask import Ask

    # given a function that asks one request over a connection, it authenticates; it may block. Errors: OSError
    Authenticate = Callable[[Callable[[Any], Any]], None]

log = logging.getLogger("momus.proxy")

CLIENT_ID: Final = "momus-proxy"
CONNECT_LIMIT_S: Final = 10.0  # socket.connection.setup.timeout.ms of Kafka's clients
ANSWER_LIMIT_S: Final = 10.0
SASL_VERSION: Final = 1
T = TypeVar("T")

Address = tuple[str, int]


class Asking(asyncio.Protocol):
    """A connection on which requests of our own are asked, one after the other."""

    def __init__(self) -> None:
        self.transport: Any = None
        self._waiting: deque[asyncio.Future[bytes]] = deque()
        self._data = bytearray()
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The node is reached."""
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """What waits has failed."""
        self.is_lost = True
        for future in self._waiting:
            if not future.done():
                future.set_exception(ConnectionResetError("the node closed the connection"))

    def data_received(self, data: bytes) -> None:
        """Cut replies out."""
        self._data += data
        while len(self._data) >= 4 and len(self._data) >= (end := 4 + int.from_bytes(self._data[:4], "big")):
            if self._waiting and not (future := self._waiting.popleft()).done():
                future.set_result(bytes(self._data[8:end]))
            del self._data[:end]

    async def ask(self, request: Any, version: int) -> Any:
        """Errors: TimeoutError, OSError; MalformedError."""
        if self.is_lost:
            raise ConnectionResetError("the node closed the connection")
        api_key = ApiKey(request.API_KEY)
        body = encode_request_header(api_key, version, 0, CLIENT_ID) + codec(type(request), version).encode(request)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self.transport.write(len(body).to_bytes(4, "big") + body)
        async with asyncio.timeout(ANSWER_LIMIT_S):
            answer = await future
        return codec(response_class(api_key), version).decode(answer, response_header_version(api_key, version))[0]


class Upstream:
    """The upstream cluster.

    bootstrap      where some of its nodes are.
    tls            for its listeners; None: they are plain.
    authenticate   by SASL; None: nothing is to be said.
    passes_sasl    clients authenticate themselves, over the connections that are opened for them.
    """

    PATIENCE: Final = 100  # pauses of those who ask, until a coordinator is there

    def __init__(
        self,
        bootstrap: list[Address],
        tls: ssl.SSLContext | None = None,
        authenticate: Authenticate | None = None,
        *,
        passes_sasl: bool = False,
    ) -> None:
        self.bootstrap = bootstrap
        self.places: dict[int, Address] = {}  # of its nodes, as last told
        self.cluster_id = ""
        self.newest: dict[int, int] = {}  # version of each API that its nodes serve
        self._tls = tls
        self._authenticate = authenticate
        self._passes_sasl = passes_sasl
        self.created: Any = None  # is told of each answer to CreateTopics (created.py)
        self._asking: dict[Address, Asking] = {}
        self._reaching: dict[Address, asyncio.Lock] = {}  # one at a time makes the connection to a place

    async def connect(self, place: Address, make: Callable[[], Any], *, is_clients: bool = False) -> Any:
        """A connection that is ready for requests, to what `make` makes. `is_clients`: those of a client.

        Errors: OSError, TimeoutError.
        """
        loop = asyncio.get_running_loop()
        name = place[0] if self._tls is not None and self._tls.check_hostname else None
        words: dict[str, Any] = {"ssl": self._tls, "server_hostname": name or place[0]} if self._tls else {}
        async with asyncio.timeout(CONNECT_LIMIT_S):
            if self._authenticate is None or (is_clients and self._passes_sasl):
                _, made = await loop.create_connection(make, *place, **words)
                return made
            transport, asking = await loop.create_connection(Asking, *place, **words)
            try:
                await self._say_who(loop, asking)
            except BaseException:
                transport.abort()
                raise
        made = make()
        transport.set_protocol(made)
        made.connection_made(transport)
        return made

    async def _say_who(self, loop: asyncio.AbstractEventLoop, asking: Asking) -> None:
        authenticate = self._authenticate
        assert authenticate is not None

        def call(request: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(asking.ask(request, SASL_VERSION), loop).result()

        await asyncio.to_thread(authenticate, call)

    async def ask_at(self, place: Address, request: Any, version: int) -> Any:
        """Ask the node at a place. Errors: OSError, TimeoutError, MalformedError."""
        async with self._reaching.setdefault(place, asyncio.Lock()):
            asking = self._asking.get(place)
            if asking is None or asking.is_lost:
                asking = self._asking[place] = await self.connect(place, Asking)
        try:
            return await asking.ask(request, min(version, self.newest.get(request.API_KEY, version)))
        except TimeoutError:
            asking.transport.abort()
            raise

    async def ask_any(self, request: Any, version: int) -> Any:
        """Ask a node that answers. Errors: OSError, TimeoutError: of the last one."""
        error: Exception = ConnectionRefusedError("it has no nodes")
        for place in dict.fromkeys((*self.places.values(), *self.bootstrap)):
            try:
                return await self.ask_at(place, request, version)
            except (OSError, TimeoutError) as failed:
                error = failed
        raise error

    async def nodes(self) -> dict[int, Address]:
        """Where its nodes are now. Errors: OSError, TimeoutError, AnswerError."""
        if not self.newest:
            offered = await self.ask_any(ApiVersionsRequest(), 0)
            self.newest = {row.api_key: row.max_version for row in offered.api_keys}
        answer = await self.answer(metadata())
        found = {row.node_id: (row.host, row.port) for row in answer.brokers}
        if not found:
            raise ConnectionRefusedError("it tells of no node")
        self.places, self.cluster_id = found, answer.cluster_id or ""
        return found

    async def answer(self, ask: Ask[T]) -> T:
        """The answer to a question. Errors: AnswerError, OSError, TimeoutError, MalformedError."""
        return await answer_of(routed(ask, Places(self.PATIENCE)), self.ask)

    def serves(self, api_key: int) -> bool:
        """Whether its nodes serve an API."""
        return api_key in self.newest

    async def ask(self, request: Any, version: int, node_id: int | None = None) -> Any:
        """Ask a node, else any. Errors: OSError, TimeoutError; MalformedError."""
        place = None if node_id is None else self.places.get(node_id)
        answer = await (self.ask_any(request, version) if place is None else self.ask_at(place, request, version))
        if self.created is not None and request.API_KEY == ApiKey.CREATE_TOPICS:
            self.created.answered(answer)
        return answer

    def close(self) -> None:
        """Close what was opened to ask."""
        for asking in self._asking.values():
            if not asking.is_lost:
                asking.transport.abort()
