"""All connections of the process: their limits, and what serves their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.wire.backlog import Backlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.config.settings import BrokerConfig
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection, Shortcut
    from broker.wire.parked import ParkedRequests
    from broker.wire.router import Router


class Clients:
    """The open connections, and the parts of the broker that a connection uses."""

    def __init__(self, turn: Turn, config: BrokerConfig, parked: ParkedRequests, router: Router) -> None:
        self.turn = turn
        self.metrics = turn.metrics
        self.backlog = Backlog(config.queued_max_bytes, turn)
        self.request_limit = config.socket_request_max_bytes
        self.backlog_limit = config.queued_max_bytes_per_connection
        self.connection_limit = 2**31  # lowered by the server to the file descriptors of the process
        self.shortcuts: dict[int, Shortcut] = {}  # by API key
        self.dispatch = router.dispatch
        self.journal: Any = None
        self.open: set[Connection] = set()
        self.gone: list[Callable[[Connection], None]] = []  # called for each connection that is closed
        self.closed = False  # the cluster has ended, or was reset
        self._most = config.max_connections
        self._parked = parked

    def connected(self, connection: Connection) -> None:
        """A client has connected. It is refused when there are too many, and hung up when the cluster has ended."""
        if self.closed:  # it was accepted just before
            connection.closed = True
            connection.transport.abort()
            return
        connection.last_active_ms = self.turn.env.clock.steady_ms()
        self.open.add(connection)
        self.metrics.connections_accepted += 1
        if len(self.open) > self._most:
            self.metrics.connections_refused += 1
            connection.refuse(f"more than max.connections={self._most} connections are open")
        elif len(self.open) > self.connection_limit:
            self.metrics.connections_refused += 1
            connection.refuse(
                f"{self.connection_limit} connections are open; no file descriptor is left for more (ulimit -n)"
            )

    def disconnected(self, connection: Connection) -> None:
        """A connection is closed: drop its parked requests."""
        self.open.discard(connection)
        self._parked.forget(connection)
        for call in self.gone:
            call(connection)
