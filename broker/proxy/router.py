"""What a proxy has in the place of the router: requests that are looked at go to the client's node, and come back.

A fault refuses a request here, by the reply that a broker would give; then the cluster never sees it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from broker.proxy.kinds import (
    API_VERSIONS,
    CREATE_TOPICS,
    HAS_ADDRESSES,
    KNOWN_KEYS,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    is_answered,
    kind_of,
)
from broker.proxy.linked import Linked
from broker.wire.router import Router
from protocol.api import api_label, response_class
from protocol.codegen import codec
from protocol.errors import MalformedError
from protocol.header import decode_response_header

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.proxy.addresses import Addresses
    from broker.turn.turn import Turn
    from broker.wire.clients import Clients
    from broker.wire.connection import Connection
    from broker.wire.route import Route

log: Final = logging.getLogger("momus.proxy")

TOPIC_IDS_VERSION: Final = 7  # of CreateTopics, the newest that is declared
LOOKED_AT: Final = HAS_ADDRESSES + 1  # the request itself is: it may be answered here


class ProxyRouter(Router):
    """A Router whose requests are served elsewhere, but for those of SASL where clients authenticate here."""

    def __init__(self, broker: Any, routes: Iterable[Route], turn: Turn) -> None:
        super().__init__(broker, routes, turn)
        self.clients: Clients | None = None  # those whose requests may pass
        self.addresses: Addresses | None = None
        self.is_careful = False  # a fault looks at requests
        self.sessions: Any = None  # what Fetches read (sessions.py), while a fault must know it
        self.kinds: dict[int, int] = {}  # (API key << 16) + version -> kind of kinds.py, or LOOKED_AT

    def learn(self, api_key: int, version: int) -> int:
        """The kind of an API and version that was not asked for before."""
        addresses = self.addresses
        assert addresses is not None
        first, last = addresses.readable.get(api_key, (0, 1 << 15))
        is_sasl = api_key == SASL_HANDSHAKE and version == 0
        kind = LOOKED_AT if is_sasl or not first <= version <= last else kind_of(api_key, version)
        if api_key == CREATE_TOPICS and addresses.created is not None and version <= TOPIC_IDS_VERSION:
            kind = HAS_ADDRESSES  # it is read, not changed
        if len(self.kinds) < 1 << 12:
            self.kinds[(api_key << 16) + version] = kind
        return kind

    def dispatch(
        self,
        connection: Connection,
        data: bytes,
        position: int,
        stop: int,
        api_key: int,
        api_version: int,
        correlation_id: int,
    ) -> None:
        """Send one frame to the client's node. Its slot is filled when the reply comes."""
        if connection.guard is not None and api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            super().dispatch(connection, data, position, stop, api_key, api_version, correlation_id)
            return
        kind = self.learn(api_key, api_version)
        if kind == LOOKED_AT:
            route = self.routes.get(api_key)
            if api_key == API_VERSIONS and route is not None:
                connection.out.append(self.refusals.unknown_version(route, correlation_id))
                self._turn.durability.speaks(connection)
            elif api_key == SASL_HANDSHAKE:
                connection.refuse("SaslHandshake version 0: the tokens that follow it cannot pass; version 1 can")
            else:
                connection.refuse(f"{api_label(api_key)} version {api_version}: its answer cannot be read")
            return
        assert isinstance(connection, Linked)
        if connection.up is None or connection.up.is_closing():
            connection.refuse("its node is gone")
            return
        try:
            answered = api_key != PRODUCE or is_answered(data, position, stop, api_version)[0]
        except MalformedError:
            answered = True
        slot = connection.next_slot
        connection.out.append(None if answered else b"")
        if 0 <= api_key < KNOWN_KEYS:
            self._metrics.counts[api_key] += 1
        if answered:
            connection.flights.append((correlation_id, kind, api_key, api_version, slot))
        connection.up.write(data[position:stop])

    def rewritten(self, connection: Linked, frame: bytes, api_key: int, version: int) -> bytes:
        """A reply, size field included, with the proxy's addresses. Errors: MalformedError."""
        addresses = self.addresses
        assert addresses is not None
        cls: Any = response_class(api_key)
        body = frame[4:]
        _, start = decode_response_header(body, api_key, version)
        if api_key == API_VERSIONS and body[start : start + 2] == b"\x00\x23":
            return frame  # of version 0, whatever was asked: the node does not know that version
        response, _ = codec(cls, version).decode(body, start)
        if not addresses.rewrite(api_key, response, connection):
            return frame
        data = body[:start] + codec(cls, version).encode(response)
        return len(data).to_bytes(4, "big") + data
