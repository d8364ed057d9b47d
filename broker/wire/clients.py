"""All connections of the process: their limits, and what serves their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.config.config_values import host_counts
from broker.turn.rate import Rate
from broker.wire.backlog import Backlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.config.settings import BrokerConfig
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.parked import ParkedRequests
    from broker.wire.router import Router
    from broker.wire.service import Shortcut


NO_RATE: Final = 2**31 - 1
RATE_WINDOWS: Final = 11  # of a second: quota.window.num
OVERRIDES: Final = "max.connections.per.ip.overrides"


class AddressQuotas(Protocol):
    """How fast addresses may connect."""

    def throttle_ms(self, address: str, now_ms: int) -> int:
        """How long an address must wait that connects now; 0: it need not."""


class ConnectionCount:
    """How many connections a process has descriptors for, and how many all its clusters have open."""

    __slots__ = ("limit", "open")

    def __init__(self, limit: int = 2**31) -> None:
        self.limit = limit
        self.open = 0


class Clients:
    """The open connections, and the parts of the broker that a connection uses."""

    def __init__(self, turn: Turn, config: BrokerConfig, parked: ParkedRequests, router: Router) -> None:
        self.turn = turn
        self.metrics = turn.metrics
        self.backlog = Backlog(config.queued_max_bytes, turn)
        self.request_limit = config.socket_request_max_bytes
        self.backlog_limit = config.queued_max_bytes_per_connection
        self.connections = ConnectionCount()  # replaced by the server: that of the process
        self.shortcuts: dict[int, Shortcut] = {}  # by API key; none while there is a reason against them
        self._offered: dict[int, Shortcut] = {}
        self._disabled_by: set[str] = set()  # the reasons
        self.dispatch = router.dispatch
        self.journal: Any = None
        self.watchers: tuple[Any, ...] = ()
        self.open: set[Connection] = set()
        self.gone: list[Callable[[Connection], None]] = []  # called for each connection that is closed
        self.later: Callable[[float, Callable[[], None]], object] = lambda seconds, call: turn.call_soon(call)
        self.asleep: set[int] = set()  # ids of nodes that are paused
        self.closed = False  # the cluster has ended, or was reset
        self.address_quotas: AddressQuotas | None = None  # None: there are none
        self._config = config
        self._overrides: tuple[str, dict[str, int]] = "", {}  # as set, and what that means
        self._by_host: dict[str, int] = {}
        self._created: Rate | None = None
        self._parked = parked

    def watch(self, watcher: Any) -> None:
        """Show a journal or a meter all that connections receive and send from now on."""
        self.watchers = (*self.watchers, watcher)
        self.gone.append(watcher.disconnected)

    def unwatch(self, watcher: Any) -> None:
        """Show it nothing more."""
        self.watchers = tuple(each for each in self.watchers if each is not watcher)
        self.gone.remove(watcher.disconnected)

    def offer(self, shortcuts: dict[int, Shortcut]) -> None:
        """Set what serves usual requests without messages."""
        self._offered = shortcuts
        self.disable_shortcuts("", False)

    def disable_shortcuts(self, reason: str, is_on: bool) -> None:
        """General handlers serve every request while there is any reason; `is_on`: whether there is this one."""
        if is_on:
            self._disabled_by.add(reason)
        else:
            self._disabled_by.discard(reason)
        self.shortcuts = {} if self._disabled_by else self._offered

    def put_to_sleep(self, node_id: int) -> None:
        """Read and answer nothing on the connections of a node, those that come later too."""
        self.asleep.add(node_id)
        for connection in self.open:
            if connection.node_id == node_id and not connection.asleep:
                connection.sleep()

    def wake(self, node_id: int) -> None:
        """Go on with the connections of a node."""
        self.asleep.discard(node_id)
        for connection in list(self.open):
            if connection.asleep and connection.node_id == node_id:
                connection.wake()

    def connected(self, connection: Connection) -> None:
        """A client has connected. It is refused when there are too many, and hung up when the cluster has ended."""
        if self.closed:  # it was accepted just before
            connection.closed = True
            connection.transport.abort()
            return
        connection.last_active_ms = self.turn.env.clock.steady_ms()
        self.open.add(connection)
        self.connections.open += 1
        self.metrics.connections_accepted += 1
        count = self._by_host[connection.host] = self._by_host.get(connection.host, 0) + 1
        config = self._config  # its limits may be altered
        most = self._most_of(connection.host[1:])
        if len(self.open) > config.max_connections:
            self.metrics.connections_refused += 1
            connection.refuse(f"more than max.connections={config.max_connections} connections are open")
        elif count > most:
            self.metrics.connections_refused += 1
            connection.refuse(f"more than max.connections.per.ip={most} connections of its address are open")
        elif self.connections.open > self.connections.limit:
            self.metrics.connections_refused += 1
            connection.refuse(
                f"{self.connections.limit} connections are open; no file descriptor is left for more (ulimit -n)"
            )
        if connection.closed:
            return
        if connection.node_id in self.asleep:
            connection.sleep(is_new=True)
        if config.max_connection_creation_rate < NO_RATE:
            self._slow_down(connection)
        if self.address_quotas is not None:
            self._turn_away(connection, self.address_quotas)

    def _most_of(self, address: str) -> int:
        """How many connections an address may have."""
        text = self._config.max_connections_per_ip_overrides
        if text != self._overrides[0]:
            self._overrides = text, host_counts(OVERRIDES, text)
        return self._overrides[1].get(address, self._config.max_connections_per_ip)

    def _turn_away(self, connection: Connection, quotas: AddressQuotas) -> None:
        """Close a connection whose address connects too often, after a while, so that it does not ask again at once."""
        now_ms = self.turn.env.clock.steady_ms()
        throttle_ms = quotas.throttle_ms(connection.host[1:], now_ms)
        if throttle_ms > 0:
            self.metrics.connections_refused += 1
            connection.throttle(True)
            self.turn.timers.at(
                now_ms + throttle_ms,
                lambda due_ms, now_ms: connection.refuse("its address is above its connection_creation_rate"),
            )

    def _slow_down(self, connection: Connection) -> None:
        """Read nothing from a connection that came too soon, until max.connection.creation.rate is kept."""
        now_ms = self.turn.env.clock.steady_ms()
        if self._created is None:
            self._created = Rate(RATE_WINDOWS, 1000)
        self._created.record(1, now_ms)
        throttle_ms = self._created.throttle_ms(self._config.max_connection_creation_rate, now_ms)
        if throttle_ms > 0:
            connection.throttle(True)
            self.turn.timers.at(now_ms + throttle_ms, lambda due_ms, now_ms: connection.throttle(False))

    def disconnected(self, connection: Connection) -> None:
        """A connection is closed: drop its parked requests."""
        if connection in self.open:
            self.open.discard(connection)
            self._by_host[connection.host] -= 1
            if not self._by_host[connection.host]:
                del self._by_host[connection.host]
            self.connections.open -= 1
        self._parked.forget(connection)
        for call in self.gone:
            call(connection)
