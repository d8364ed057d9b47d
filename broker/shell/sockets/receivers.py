"""What receives a new connection on each listener: plain or TLS, authenticated or not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from socket import AF_INET, SO_REUSEADDR, SOL_SOCKET, gaierror, inet_pton, socket
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from broker.config.addresses import host_port
from broker.shell.sockets.straight import straight
from broker.wire.connection import Connection

if TYPE_CHECKING:
    import asyncio

    from broker.broker import Broker
    from broker.cluster.listeners import Listener, Node
    from broker.config.settings import BrokerConfig
    from broker.shell.key_sets import KeySets
    from broker.shell.tls.contexts import ListenerContext
    from broker.shell.tls.handshakes import Handshakes, Steps

logger = logging.getLogger("momus.security")

BACKLOG: Final = 128  # clients accepted in an iteration of the loop, 40 us each


# The steps of TLS handshakes: those of one loop are taken in turn, whatever cluster they are for.
_STEPS: WeakKeyDictionary[asyncio.AbstractEventLoop, Steps] = WeakKeyDictionary()


class Receivers:
    """Those of one cluster's listeners. What a listener shows and trusts is read when it first listens."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, config: BrokerConfig, make: Callable[..., Connection] = Connection
    ) -> None:
        """`make`: (service, node id, listener) -> what serves a new client."""
        self._loop = loop
        self._make = make
        self._config = config
        self._contexts: dict[str, ListenerContext] = {}
        self._handshakes: Handshakes | None = None
        self._key_sets: KeySets | None = None
        self.authenticate = False  # whether a listener has SASL

    async def open(self, broker: Broker, nodes: list[Node]) -> None:
        """Get ready what connections need, for a life of the cluster. Errors: ConfigError."""
        listeners = [listener for node in nodes for listener in node.listeners.values()]
        self.authenticate = any(listener.is_sasl for listener in listeners)
        if self.authenticate and (urls := broker.security.key_urls(listeners)):
            if self._key_sets is None:
                from broker.shell.key_sets import KeySets  # 20 ms: few listeners take signed tokens

                self._key_sets = KeySets()
            broker.security.key_sets = self._key_sets.found
            await self._key_sets.start(urls)

    async def listen(self, broker: Callable[[], Broker], node: Node, listener: Listener) -> asyncio.Server:
        """Listen, and note the port that the system chose. Errors: ConfigError, OSError."""
        receiver = self.receiver(broker, node, listener)
        free = _on_free_port(listener.host) if listener.port == 0 else None
        try:
            if free is not None:
                server = await self._loop.create_server(receiver, sock=free, backlog=BACKLOG)
            else:
                server = await self._loop.create_server(receiver, listener.host, listener.port, backlog=BACKLOG)
        except gaierror as error:
            address = host_port(listener.host, listener.port)
            raise OSError(f"Socket server failed to bind to {address}: Unresolved address ({error.strerror})") from None
        listener.port = server.sockets[0].getsockname()[1]
        return server

    def receiver(self, broker: Callable[[], Broker], node: Node, listener: Listener) -> Callable[[], Any]:
        """Makes the protocol of a new connection. Errors: ConfigError."""

        def connection(certificate: dict[str, object] | None = None) -> Any:
            if not listener.is_sasl:
                return self._make(broker().clients, node.node_id, listener)
            guard: Any = broker().security.guard(listener)
            made = self._make(guard, node.node_id, listener)
            made.guard = guard
            return made

        def plain_connection() -> Connection:
            made: Connection = connection()
            made.stream.find_straight = straight
            return made

        if not listener.is_tls:
            return plain_connection
        return self._tls_receiver(connection, listener)

    def _tls_receiver(self, connection: Callable[..., Any], listener: Listener) -> Callable[[], Any]:
        # with ssl 10 ms: most brokers have no TLS
        from broker.security.principals import distinguished_name
        from broker.shell.tls.contexts import ListenerContext
        from broker.shell.tls.handshakes import Handshakes, Steps
        from broker.shell.tls.protocol import TlsProtocol

        if listener.name not in self._contexts:
            self._contexts[listener.name] = ListenerContext(self._config, listener.name, is_sasl=listener.is_sasl)
        if self._handshakes is None:
            self._handshakes = Handshakes(self._loop, _STEPS.setdefault(self._loop, Steps()))
        context, handshakes = self._contexts[listener.name], self._handshakes

        def named_connection(certificate: dict[str, object] | None) -> Any:
            if listener.is_sasl or not certificate:  # a SASL user comes before the name in a certificate
                return connection()
            name = distinguished_name(certificate)
            principal = context.rules.principal(name)
            if not principal:
                logger.warning("listener %s: no rule of ssl.principal.mapping.rules is for %s", listener.name, name)
                return None
            made = connection()
            made.principal = principal
            return made

        return lambda: TlsProtocol(context.current, handshakes, named_connection, listener.name)

    def close(self) -> None:
        """No connection is made any more."""
        if self._handshakes is not None:
            self._handshakes.close()
        if self._key_sets is not None:
            self._key_sets.close()


def _on_free_port(host: str) -> socket | None:
    """A socket on a port that the system chooses, for create_server, which looks addresses up for 0.08 ms.

    None: the host is no IPv4 address.
    """
    try:
        inet_pton(AF_INET, host)
    except OSError:
        return None
    made = socket(AF_INET)
    made.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)  # as create_server has it: the port is bound again after a restart
    try:
        made.bind((host, 0))
    except OSError:  # which create_server explains
        made.close()
        return None
    return made
