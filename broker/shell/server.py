"""The server around a Broker: sockets, signals, loop timers and sync threads. It has no rule of Kafka."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from broker.broker import Broker
from broker.cluster.directory import DataDirectory, DirectoryError
from broker.cluster.listeners import Listener, Node, make_nodes
from broker.config.settings import BrokerConfig, ConfigError
from broker.shell.setting_warnings import warn_of_settings
from broker.shell.spin import Spin
from broker.wire.connection import Connection
from storage.env import MAX_OPEN_FILES, system_env
from storage.errors import StorageError
from storage.movable_clock import MovableClock
from storage.sim_env import MemoryFiles

if TYPE_CHECKING:
    from broker.shell.control import Control
    from storage.env import Env
    from storage.log import Log

logger = logging.getLogger("momus.server")

BUSY_WORK_S, BUSY_BREAK_S = 0.0003, 0.0015  # housekeeping at once while clients are served, and the break after it
IDLE_WORK_S, IDLE_BREAK_S = 0.002, 0.001
IDLE_SWEEP_S = 5.0
SYNC_THREADS = 4
MOST_DESCRIPTORS = 65_536  # requested from the system
RESERVED_DESCRIPTORS = 64  # for listeners, the loop, checkpoints and late imports


class Server:
    """One process: virtual brokers on their listeners, around one Broker."""

    def __init__(self, env: Env, config: BrokerConfig, directory: DataDirectory, nodes: list[Node]) -> None:
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
        self._spin = Spin(self.loop.call_soon, env.clock.monotonic_ms)
        self.stopping = asyncio.Event()
        self._servers: dict[Node, list[asyncio.Server]] = {}
        self._control: Control | None = None
        self._alarm: asyncio.Handle | None = None
        self._stepping = False
        self._requests = 0  # counted up to the last step of housekeeping
        self._sync_pool: ThreadPoolExecutor | None = None
        self._closing = False
        self._tasks: list[asyncio.Task[None]] = []

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

    # -- the control endpoint

    @property
    def clock(self) -> MovableClock:
        """The clock of a broker with a control endpoint."""
        clock: Any = self.broker.turn.env.clock
        return clock  # type: ignore[no-any-return]  # movable where there is an endpoint

    async def open_control(self, host: str, port: int) -> str:
        """Open the control endpoint. Answers its address."""
        from broker.shell.control import Control  # 8 ms: most starts have no control endpoint

        self._control = Control(self)
        return await self._control.open(host, port)

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
        if self._closing:
            return
        if not logs:
            self.loop.call_soon(self.broker.turn.sync_done, {})
            return
        if self._sync_pool is None:
            self._sync_pool = ThreadPoolExecutor(SYNC_THREADS, "sync")
        pending = len(logs)
        failed: dict[Log, Exception] = {}

        def done(log: Log, error: Exception | None) -> None:
            nonlocal pending
            pending -= 1
            if error is not None:
                failed[log] = error
            if not pending:
                self.broker.turn.sync_done(failed)

        def work(log: Log) -> None:
            error: Exception | None = None
            try:
                log.sync()
            except Exception as caught:  # any error: the replies that wait must be answered
                error = caught
            self.loop.call_soon_threadsafe(done, log, error)

        for log in logs:
            self._sync_pool.submit(work, log)

    # -- the process

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

    async def stop(self) -> None:
        """Stop listening, flush and close the logs."""
        if self._control is not None:
            await self._control.close()
        for node in self.nodes:
            self.close_node(node)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._closing = True
        if self._sync_pool is not None:
            self._sync_pool.shutdown(wait=True)
        self.broker.close()


def _close(connection: Connection) -> None:
    # close would wait for ever for a client that does not read
    (connection.transport.abort if connection.stuffed else connection.transport.close)()


async def _serve(options: dict[str, Any]) -> int:
    config: BrokerConfig = options["config"]
    nodes = make_nodes(config, options["listen"], options["brokers"])
    directory = DataDirectory.open(options["env"], options["data_dir"], config)
    server = Server(options["env"], config, directory, nodes)
    server.broker.clients.connection_limit = min(server.broker.clients.connection_limit, options["connection_limit"])
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            server.loop.add_signal_handler(number, server.stopping.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: server.loop.call_soon_threadsafe(server.stopping.set))
    addresses = await server.start()
    if options["statsd"]:
        from broker.shell.statsd import run_statsd  # 2 ms: most starts send no metrics

        server._tasks.append(asyncio.ensure_future(run_statsd(server.broker, options["statsd"])))
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    lines = [f"momus ready {','.join(addresses)}\n"]
    if options["control"]:
        host, _, port = options["control"].rpartition(":")
        lines.append(f"momus control {await server.open_control(host.strip('[]'), int(port))}\n")
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
    await server.stopping.wait()
    await server.stop()
    return 0


def allow_descriptors() -> int:
    """Raise the limit of open files. Answers the limit. Windows has none for sockets."""
    try:
        import resource  # not on every system
    except ImportError:
        return MOST_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS reports a limit that it does not allow
            return soft
        return wanted
    return min(soft, MOST_DESCRIPTORS) if soft != resource.RLIM_INFINITY else MOST_DESCRIPTORS


def serve(
    *,
    listen: str | None = "127.0.0.1:9092",
    data_dir: str = "./data",
    brokers: int = 1,
    flush: str = "os",
    properties: dict[str, str] | None = None,
    log_level: str = "WARNING",
    statsd: str | None = None,
    control: str | None = None,
) -> int:
    """Run a broker until SIGTERM or SIGINT. Answers the exit code."""
    logging.basicConfig(
        level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr
    )
    try:
        config = BrokerConfig.load({**(properties or {}), "log.dirs": data_dir, "flush": flush})
    except ConfigError as error:
        sys.stderr.write(f"momus: {error}\n")
        return 2
    warn_of_settings(config)
    descriptors = allow_descriptors()
    open_files = min(MAX_OPEN_FILES, descriptors // 4)
    env = system_env(open_files)
    if control:
        env.clock = MovableClock(env.clock)
    if flush == "memory":
        files = MemoryFiles()
        files.clock = env.clock
        env.files = files
    options = {
        "brokers": brokers,
        "config": config,
        "control": control,
        "connection_limit": descriptors - open_files - RESERVED_DESCRIPTORS,
        "data_dir": data_dir,
        "env": env,
        "listen": listen,
        "statsd": statsd,
    }
    try:
        import uvloop  # not on every system
    except ImportError:  # there is none for Windows
        run: Any = asyncio.run
    else:
        run = uvloop.run
    try:
        code: int = run(_serve(options))
    except (OSError, DirectoryError, StorageError, ConfigError) as error:
        sys.stderr.write(f"momus: {error}\n")
        return 2 if isinstance(error, ConfigError) else 1
    return code
