"""The server around one cluster: its listeners, its alarm and its steps of housekeeping. It has no rule of Kafka."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from broker.cluster.data.copies import RECORDINGS, remove_discarded
from broker.cluster.virtual_nodes import VirtualNodes
from broker.config.addresses import host_port
from broker.shell.cluster_parts import ClusterParts
from broker.shell.cluster_plan import ClusterRefusedError, SnapshotRow
from broker.shell.loop.alarm import Alarm
from broker.shell.loop.idle import close, close_idle
from broker.shell.loop.spin import Spin, usable_processors
from broker.shell.loop.steps import Steps
from broker.shell.sockets.receivers import Receivers
from broker.turn.timers import Timers
from storage.clock.movable_clock import MovableClock
from storage.files.sim_env import MemoryFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    from broker.asks.request_rows import EventRow
    from broker.broker import Broker
    from broker.cluster.listeners import Node
    from broker.faults.fault import Fault
    from broker.journal.recording import Recording
    from broker.shell.cluster_plan import ClusterPlan, Origin, SnapshotRow
    from broker.shell.copies.snapshots import Snapshots
    from broker.shell.kept_memory import KeptMemory
    from broker.shell.registry.opened import OpenRegistry
    from broker.shell.sync_threads import SyncThreads
    from broker.wire.clients import ConnectionCount
    from storage.files.env import SystemFiles
    from storage.log.log import Log

    Prepare = Callable[["ClusterServer"], Awaitable[None]]

DEFAULT_CLUSTER = "default"
IDLE_SWEEP_S = 5.0
SWEPT = 50  # connections that are closed in an iteration of the loop


class ClusterServer(ClusterParts):
    """One cluster: virtual brokers on their listeners, around one Broker.

    A reset ends the life of the Broker and begins another, with nothing in it; a restore begins one with what a
    snapshot holds. Listeners and ports stay.

    disk               files of the disk, shared with other clusters; not used with flush=memory.
    origin             what its first life begins with; None: with what its directory holds.
    movable            whether the clock can be moved.
    connections        of the process, counted.
    memory             of large requests, of the process.
    Errors: ConfigError, DirectoryError, StorageError, OSError.
    """

    def __init__(
        self,
        plan: ClusterPlan,
        disk: SystemFiles,
        syncs: SyncThreads,
        *,
        movable: bool,
        connections: ConnectionCount,
        memory: KeptMemory,
        origin: Origin | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.plan = plan
        self.name = plan.name
        self.nodes = plan.nodes
        self._changing = asyncio.Lock()
        self.life = 0  # the number of the present one
        self.waits = 0  # calls of the control plane that wait for something to happen
        self.when_reset: list[Callable[[], None]] = []
        self.disk = disk
        self.recording: Recording | None = None
        self.registry: OpenRegistry | None = None  # through all lives, if it is served
        self._syncs = syncs
        self._is_movable = movable
        self._connections = connections
        self._memory = memory
        self._servers: dict[Node, list[asyncio.Server]] = {}
        self._sweeping: asyncio.Handle | None = None
        self.is_sweeping = False  # connections are left to close, a few in each iteration
        self._closing = False
        self._receivers = Receivers(self.loop, plan.new_config(), self.make_connection)
        self._snapshots: Snapshots | None = None
        self.event_maker: Callable[[ClusterServer, Fault], Coroutine[Any, Any, None]] | None = None
        self.events: list[EventRow] = []  # those that faults have made in all lives, oldest first
        self._events_under_way: set[asyncio.Task[None]] = set()
        self._fault_numbers = count(1)  # of all lives: a test may still know a fault of an earlier one by its name
        self._begin_life(origin)

    def _begin_life(self, origin: Origin | None = None) -> None:
        """Make a Broker on what its directory holds, once `origin` has filled it."""
        self.life += 1
        self.turns: dict[str, tuple[bytes, int]] = {}  # topic -> its id, records without a key that were spread here
        env = self.plan.new_env(self.disk, movable=self._is_movable, origin=origin)
        self.config = self.plan.new_config()
        if self.life > 1 and origin is None and not self.config.cluster_id:
            self.config.cluster_id = self.plan.draw_cluster_id(self.life)
        self.broker = self.make_broker(
            env,
            self.config,
            self.plan.open_directory(env, self.config),
            list(self.nodes),
            call_soon=lambda call: self.loop.call_soon(self._turn, call),
            start_sync=self._sync,
            later=self._later,
        )
        if self._is_movable or origin is not None:
            self.broker.turn.waits = Timers()
        self._alarm = Alarm(self.loop, self.broker.turn)
        self.virtual_nodes = VirtualNodes(
            self.broker.nodes, self.broker.metadata_shard, self.broker.turn, self.broker.partitions
        )
        self._spin = Spin(self.loop.call_soon, env.clock.monotonic_us, usable_processors())
        counts = self.broker.metrics.counts
        self._steps = Steps(self.broker.turn, lambda: sum(counts), self.loop.call_soon, self.loop.call_later)
        self.broker.fault_numbers = self._fault_numbers
        self.broker.beside = self._beside
        self.broker.make_event = self._make_event if self.has_inside else None
        self.broker.clients.connections = self._connections
        self.broker.clients.backlog.large_request = self._memory.large_request
        self.broker.keep_journal(self.plan.journal_bytes, self.recording)
        self.happenings.began(env.clock.now_ms(), self.life, is_copy=origin is not None)

    async def start(self, prepare: Prepare | None = None) -> None:
        """Load the metadata and listen. `prepare` may ask the broker before any client can."""
        async with self.change():
            remove_discarded(self.broker.directory.env.files, self.broker.directory.path)
            self.broker.open()
            await self._open_receivers()
            self._after_turn()
            self.broker.start_maintenance()
            self._steps.turn_ended()
            if prepare is not None:
                await prepare(self)
            if self._receivers.authenticate and (self.plan.security is None or self.plan.security.asked_for is None):
                from broker.security.security import check_users  # 0 ms: the listeners have loaded it

                check_users(self.config, self.nodes, has_users=bool(self.broker.metadata.clients.credentials))
            for node in self.nodes:
                await self.listen(node)
            self.sweep()

    @asynccontextmanager
    async def change(self) -> AsyncIterator[None]:
        """One change after the other: a start, a reset, the removal, a virtual broker that stops or starts.

        Errors: ClusterRefusedError: it was removed meanwhile.
        """
        async with self._changing:
            if self._closing:
                raise ClusterRefusedError(f"the cluster {self.name} was removed")
            yield

    @property
    def is_removed(self) -> bool:
        """Whether it has been stopped for good: what it still holds is no answer."""
        return self._closing

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT of each node's first listener."""
        return [host_port(node.main.host, node.main.port) for node in self.nodes]

    async def listen(self, node: Node) -> None:
        """Listen for clients of a node, on its earlier ports if it had any."""
        self._servers[node] = []
        try:
            for listener in node.listeners.values():
                self._servers[node].append(await self._receivers.listen(lambda: self.broker, node, listener))
        except BaseException:
            self.close_node(node)
            raise

    def close_node(self, node: Node) -> None:
        """Stop listening for a node, and close its connections."""
        for server in self._servers.pop(node, ()):
            server.close()
        for connection in list(self.broker.clients.open):
            if connection.node_id == node.node_id:
                close(connection)

    # -- the clock

    @property
    def clock(self) -> MovableClock:
        """The clock of a cluster of a process with a control endpoint."""
        clock: Any = self.broker.turn.env.clock
        return clock  # type: ignore[no-any-return]  # movable where there is an endpoint

    def clock_moved(self) -> None:
        """Run the timers that have become due. What these answer is not idle: `sweep` is for later."""
        self.broker.turn.read_clock()
        self._alarm.ring_soon()
        self._sweep_later(IDLE_SWEEP_S)

    # -- the turn

    def _later(self, seconds: float, call: Callable[[], None]) -> object:
        return self.loop.call_later(seconds, self._turn, call)

    def _turn(self, end_turn: Any) -> None:
        end_turn()
        self._after_turn()
        self._spin.turn_ended()

    def _after_turn(self) -> None:
        self._alarm.turn_ended()
        self._steps.turn_ended()

    def _sync(self, logs: list[Log]) -> None:
        """Sync logs in threads, then call sync_done. While stopping it does nothing: closing a log syncs it."""
        broker = self.broker

        def done(failed: dict[Log, Exception]) -> None:
            if broker is self.broker:  # it was not reset meanwhile
                broker.turn.sync_done(failed)

        if not self._closing:
            self._syncs.sync(logs, done)

    def _beside(self, work: Callable[[], object], done: Callable[[], None]) -> None:
        """Have work done in a thread, one after the other, then call `done` in a turn."""
        self._syncs.beside(work, lambda: self._turn(done))

    def _make_event(self, fault: Fault) -> None:
        """Make the event of a fault, which keeps its request or reply until then."""
        assert self.event_maker is not None
        task = self.loop.create_task(self.event_maker(self, fault))
        self._events_under_way.add(task)
        task.add_done_callback(self._events_under_way.discard)

    # -- the end

    def sweep(self) -> None:
        """Close connections that have been idle for connections.max.idle.ms, or that do not authenticate."""
        is_more = self._receivers.authenticate and self.broker.security.sweep(SWEPT)
        limit_ms = self.config.connections_max_idle_ms
        self.is_sweeping = close_idle(self.broker.clients, limit_ms, SWEPT) or is_more
        self._sweep_later(0 if self.is_sweeping else min(IDLE_SWEEP_S, max(limit_ms, 100) / 2000))

    def _sweep_later(self, wait_s: float) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._sweeping = self.loop.call_later(wait_s, self.sweep)

    async def reset(self) -> Broker:
        """Drop all data and connections, and begin again with nothing, on the same ports, as planned.

        Returns the broker whose life has ended, which still has its journal.

        Errors: OSError, StorageError: the cluster hangs clients up until a reset, restore or removal succeeds.
        """
        async with self.change():
            return await self._live_again(None)

    async def restore(self, name: str, *, keeps_devices: bool = False) -> Broker:
        """Drop all data and connections, and begin again with what a snapshot holds, on the same ports.

        keeps_devices  faults and the journal go on, as they are: to clients it is a restart.
        Returns what `reset` does.
        Errors: UnknownSnapshotError: nothing has changed. Others: as `reset`.
        """
        async with self.change():
            origin, security = self.snapshots.origin(name), self.plan.security
            if security is not None:  # passwords that fit its credentials
                security.users = self.snapshots.users(name, security.users)
            return await self._live_again(origin, keeps_devices=keeps_devices)

    async def _open_receivers(self) -> None:
        """Make users, certificates and keys, before anybody can connect. Errors: ConfigError, StorageError."""
        if self.plan.security is not None:
            self.plan.security.prepare()
            self.plan.security.add_users(self.broker)
        await self._receivers.open(self.broker, self.nodes)

    async def _live_again(self, origin: Origin | None, *, keeps_devices: bool = False) -> Broker:
        ended = self.broker
        self._end_life()
        if self.recording is not None and not self.recording.events:  # a replay begins without faults
            self._fault_numbers = count(1)
        self._begin_life(origin)
        if keeps_devices:
            self.broker.take_devices(ended, is_recorded=self.recording is not None)
        self.broker.open()
        await self._open_receivers()
        for node in self.nodes:
            if node not in self._servers:  # a virtual broker that was stopped
                await self.listen(node)
        self._after_turn()
        self.broker.start_maintenance()
        self._steps.turn_ended()
        for call in self.when_reset:
            call()
        return ended

    # -- snapshots

    @property
    def snapshots(self) -> Snapshots:
        """Its snapshots, which stay through resets and restores."""
        if self._snapshots is None:
            from broker.shell.copies.snapshots import Snapshots  # 3 ms: most clusters have none

            files = MemoryFiles() if self.plan.flush == "memory" else self.disk.share()
            self._snapshots = Snapshots(files, self.plan.data_dir)
        return self._snapshots

    async def take_snapshot(self, name: str | None) -> SnapshotRow:
        """Keep it as it is now. Errors: ClusterRefusedError, OSError, StorageError: there is no such snapshot."""
        async with self.change():
            security = self.plan.security
            return self.snapshots.take(name, self.broker, self.clock, None if security is None else security.users)

    def stop_recording(self) -> None:
        """Record no more."""
        self.recording = None
        self.broker.keep_journal(self.plan.journal_bytes)

    async def remove_snapshot(self, name: str) -> None:
        """Give a snapshot up. Errors: UnknownSnapshotError, OSError."""
        async with self.change():
            self._syncs.run(self.snapshots.remove(name))

    def _end_life(self, place: str | None = None) -> None:
        """Hang up, and give the data up; it is removed in the background. `place`: see DataDirectory.discard."""
        broker = self.broker
        self._memory.life_ended()
        self._hang_up(broker)
        broker.turn.durability.give_up()  # a turn may be open: its records must not get into the next life's files
        directory, files = broker.directory, broker.directory.env.files
        if isinstance(files, MemoryFiles):
            files.discard()
        else:
            doomed = directory.discard(place)
            self._syncs.run(lambda: files.remove_tree(doomed))

    def _hang_up(self, broker: Broker) -> None:
        broker.clients.closed = True
        for connection in list(broker.clients.open):
            close(connection)
        self._steps.cancel()
        self._alarm.cancel()

    def stop(self) -> None:
        """Stop listening, and close all connections."""
        for node in self.nodes:
            self.close_node(node)
        self._hang_up(self.broker)
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._receivers.close()
        self._closing = True

    def close(self) -> None:
        """Flush and close the logs. No sync may be under way."""
        self.broker.close()
        if self.plan.security is not None:
            self.plan.security.close()

    async def remove(self, place: str) -> None:
        """Stop, and give the data up; `place` is a folder where it may be while it is removed.

        Errors: ClusterRefusedError. OSError: it is unusable until it is reset, restored or removed.
        """
        async with self.change():
            self._end_life(place)
            self.stop()  # only now: what could not be given up can still be reset
            if self.recording is not None:
                self.disk.remove_tree(f"{self.plan.data_dir}/{RECORDINGS}")
            if self.plan.security is not None:
                self.plan.security.close()
