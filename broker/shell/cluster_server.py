"""The server around one cluster: its listeners, its alarm and its steps of housekeeping. It has no rule of Kafka."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from broker.broker import Broker
from broker.cluster.virtual_nodes import VirtualNodes
from broker.shell.spin import Spin
from broker.wire.connection import Connection
from storage.movable_clock import MovableClock

if TYPE_CHECKING:
    from broker.cluster.directory import DataDirectory
    from broker.cluster.listeners import Listener, Node
    from broker.config.settings import BrokerConfig
    from broker.shell.sync_threads import SyncThreads
    from storage.env import Env
    from storage.log import Log

DEFAULT_CLUSTER = "default"
BUSY_WORK_S, BUSY_BREAK_S = 0.0003, 0.0015  # housekeeping at once while clients are served, and the break after it
IDLE_WORK_S, IDLE_BREAK_S = 0.002, 0.001
IDLE_SWEEP_S = 5.0


class ClusterServer:
    """One cluster: virtual brokers on their listeners, around one Broker."""

    def __init__(
        self, env: Env, config: BrokerConfig, directory: DataDirectory, nodes: list[Node], syncs: SyncThreads
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.config = config
        self.nodes = nodes
        self.broker = Broker(
            env,
            config,
            directory,
            list(nodes),
            call_soon=lambda call: self.loop.call_soon(self._turn, call),
            start_sync=self._sync,
        )
        self.virtual_nodes = VirtualNodes(self.broker.nodes, self.broker.metadata_shard, self.broker.turn)
        self.changing = asyncio.Lock()  # virtual brokers stop and start one after the other
        self._spin = Spin(self.loop.call_soon, env.clock.monotonic_ms)
        self._syncs = syncs
        self._servers: dict[Node, list[asyncio.Server]] = {}
        self._alarm: asyncio.Handle | None = None
        self._stepping = False
        self._requests = 0  # counted up to the last step of housekeeping
        self._closing = False

    async def start(self) -> list[str]:
        """Load the metadata and listen. Answers the address of each node's first listener."""
        self.broker.open()
        addresses = []
        for node in self.nodes:
            await self.listen(node)
            addresses.append(f"{node.main.host}:{node.main.port}")
        self._after_turn()
        self._sweep()
        self.broker.start_maintenance()
        self._step_soon()
        return addresses

    async def listen(self, node: Node) -> None:
        """Listen for clients of a node, on its earlier ports if it had any."""
        self._servers[node] = []
        try:
            for listener in node.listeners.values():
                await self._listen(node, listener)
        except BaseException:
            self.close_node(node)
            raise

    async def _listen(self, node: Node, listener: Listener) -> None:
        def connection() -> Any:
            return Connection(self.broker.clients, node.node_id, listener)

        server = await self.loop.create_server(connection, listener.host, listener.port, backlog=1024)
        listener.port = server.sockets[0].getsockname()[1]
        self._servers[node].append(server)

    def close_node(self, node: Node) -> None:
        """Stop listening for a node, and close its connections."""
        for server in self._servers.pop(node, ()):
            server.close()
        for connection in list(self.broker.clients.open):
            if connection.node_id == node.node_id:
                _close(connection)

    # -- the clock

    @property
    def clock(self) -> MovableClock:
        """The clock of a cluster of a process with a control endpoint."""
        clock: Any = self.broker.turn.env.clock
        return clock  # type: ignore[no-any-return]  # movable where there is an endpoint

    def clock_moved(self) -> None:
        """Run the timers that have become due. Clients do not become idle because the clock was moved."""
        now_ms = self.clock.steady_ms()
        for connection in self.broker.clients.open:
            connection.last_active_ms = now_ms
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self.loop.call_soon(self._ring)

    # -- the turn

    def _turn(self, end_turn: Any) -> None:
        end_turn()
        self._after_turn()
        if self.broker.turn.expects_more:
            self.broker.turn.expects_more = False
            self._spin.turn_ended()

    def _after_turn(self) -> None:
        turn = self.broker.turn
        if turn.timers.moved:
            turn.timers.moved = False
            self._set_alarm()
        if turn.jobs and not self._stepping:
            self._step_soon()

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        due_ms = self.broker.turn.timers.next_ms
        if due_ms is not None:
            delay_s = max(0.0, (due_ms - self.broker.turn.env.clock.steady_ms()) / 1000)
            self._alarm = self.loop.call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.broker.turn.ring()
        self._set_alarm()

    def _step_soon(self) -> None:
        if self.broker.turn.jobs and not self._stepping:
            self._stepping = True
            requests = sum(self.broker.metrics.counts)
            is_busy, self._requests = requests != self._requests, requests
            # housekeeping gets a part of the time while clients are served, and all of it while one waits for a step
            if self.broker.turn.jobs.is_hurried:
                self.loop.call_soon(self._step, 0.0)
            else:
                work_s, break_s = (BUSY_WORK_S, BUSY_BREAK_S) if is_busy else (IDLE_WORK_S, IDLE_BREAK_S)
                self.loop.call_later(break_s, self._step, work_s)

    def _step(self, work_s: float) -> None:
        self._stepping = False
        self.broker.turn.begin()
        stop_s = self.loop.time() + work_s
        while self.broker.turn.jobs.step() and self.loop.time() < stop_s:
            pass
        self._step_soon()

    def _sync(self, logs: list[Log]) -> None:
        """Sync logs in threads, then call sync_done. While stopping it does nothing: closing a log syncs it."""
        if not self._closing:
            self._syncs.sync(logs, lambda failed: self.broker.turn.sync_done(failed))

    # -- the end

    def _sweep(self) -> None:
        """Close connections that have been idle for connections.max.idle.ms."""
        broker = self.broker
        limit_ms = self.config.connections_max_idle_ms
        now_ms = broker.turn.env.clock.steady_ms()
        if limit_ms > 0:
            for connection in list(broker.clients.open):
                if now_ms - connection.last_active_ms > limit_ms and not connection.out:
                    _close(connection)
        self.loop.call_later(min(IDLE_SWEEP_S, max(limit_ms, 100) / 2000), self._sweep)

    def hang_up(self) -> None:
        """Stop listening, and close all connections."""
        for node in self.nodes:
            self.close_node(node)
        self._closing = True

    def close(self) -> None:
        """Flush and close the logs. No sync may be under way."""
        self.broker.close()


def _close(connection: Connection) -> None:
    # close would wait for ever for a client that does not read
    (connection.transport.abort if connection.stuffed else connection.transport.close)()
