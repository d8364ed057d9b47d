"""A whole broker in this process, without a socket: files in memory, a clock that stands, turns run by hand.

A World holds one Broker. What the event loop would do later waits in `ready`; what the sync threads would do waits in
`syncs`. So a test decides in which order things happen, lets a sync fail, or ends the process in the middle of a write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import cache
from typing import Any

from core_transport import Transport, frame, split_frames

from broker.broker import Broker
from broker.cluster.data.directory import DataDirectory
from broker.cluster.listeners import make_nodes
from broker.cluster.topic_names import INTERNAL_TOPICS
from broker.config.settings import BrokerConfig
from broker.coordinator.runtime import READY
from broker.wire.connection import Connection
from broker.wire.route import HOT
from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.errors import KafkaError
from protocol.header import decode_response_header
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from storage.clock.manual_clock import ManualClock
from storage.files.env import Env
from storage.files.errors import StorageError
from storage.files.sim_env import MemoryFiles, sim_env
from storage.files.sim_faults import SimulatedCrash
from storage.log.log import Log

DATA = "/data"
FLUSHES = ("memory", "os", "fsync")


@cache
def _config(settings: tuple[tuple[str, str], ...]) -> BrokerConfig:
    """Settings parsed once for all worlds that have them: two thirds of what a new world costs."""
    return BrokerConfig.load(dict(settings))


class Client:
    """One connection of a client; requests are written in the version asked for, replies decoded in order."""

    def __init__(self, world: World, node: int = 0) -> None:
        self.world = world
        nodes = world.broker.nodes.up
        self.connection = Connection(world.broker.clients, nodes[node].node_id, nodes[node].main)
        self.transport = Transport(world, self.connection)
        self.pending = bytearray()  # sent, and not taken by the broker yet
        self.asked: deque[tuple[int, int]] = deque()  # (api key, version) of requests that wait for an answer
        self.correlation_id = 0
        self._decoded = 0
        self.connection.connection_made(self.transport)
        world.clients.append(self)

    # -- sending

    def send(self, request: Any, version: int, **header: Any) -> int:
        """Send one request, without running the broker. Answers its correlation id."""
        self.correlation_id += 1
        self.asked.append((request.API_KEY, version))
        self.send_bytes(frame(request, version, self.correlation_id, **header))
        return self.correlation_id

    def send_bytes(self, data: bytes) -> None:
        self.pending += data
        self.deliver()

    def deliver(self, most: int = 1 << 18) -> None:
        """Hand the broker what it is willing to read, in pieces as large as a socket's."""
        while self.pending and self.transport.reading and not self.transport.closed:
            data = bytes(self.pending[:most])
            del self.pending[:most]
            self.connection.data_received(data)

    # -- receiving

    @property
    def closed(self) -> bool:
        return self.transport.closed

    def replies(self) -> list[Any]:
        """The replies that came since the last call, decoded."""
        data = bytes(self.transport.received[self._decoded :])
        found = []
        for body in split_frames(data):
            key, version = self.asked.popleft()
            _, position = decode_response_header(body, key, 0 if key == ApiKey.API_VERSIONS else version)
            response, end = codec(response_class(key), version).decode(body, position)
            assert end == len(body), "bytes behind a reply"
            found.append(response)
        self._decoded += len(data)
        return found

    def last_reply(self) -> Any:
        """The last reply that came since the last call, decoded; None: a request waits for its own."""
        replies = self.replies()
        return None if self.asked else replies[-1]

    def call(self, request: Any, version: int | None = None, **header: Any) -> Any:
        """Send one request and run the broker until it is answered."""
        version = request.MAX_VERSION if version is None else version
        self.send(request, version, **header)
        self.world.run()
        replies = self.replies()
        assert replies, f"no reply to {type(request).__name__}" + (": connection closed" if self.closed else "")
        return replies[-1]

    def leave(self) -> None:
        """The client closes its connection."""
        self.transport.abort()


class World:
    """One broker with its disk, clock and clients."""

    def __init__(
        self, flush: str = "os", env: Env | None = None, *, brokers: int = 1, shortcuts: bool = True, **settings: str
    ) -> None:
        self.env = env or sim_env()
        self.flush = flush
        self.settings = {"offsets_topic_num_partitions": "5", "group_initial_rebalance_delay_ms": "0", **settings}
        self.brokers = brokers
        self.ready: deque[Callable[[], None]] = deque()
        self.syncs: deque[list[Log]] = deque()
        self.clients: list[Client] = []
        self._synced: deque[bool] = deque()
        self.auto_sync = True
        self.quick_sync = False  # the disk syncs at once what it is told to, and only the news of it takes its time
        config = copy(_config((*((k.replace("_", "."), v) for k, v in self.settings.items()), ("flush", flush))))
        nodes = make_nodes(config, "127.0.0.1:9092", brokers)
        directory = DataDirectory.open(self.env, DATA, config)
        self.broker = Broker(
            self.env, config, directory, nodes, call_soon=self.ready.append, start_sync=self._start_sync
        )
        if not shortcuts:
            self.broker.clients.offer({})
        self.broker.open()
        self.broker.start_maintenance()
        self.run()

    @property
    def clock(self) -> ManualClock:
        clock = self.env.clock
        assert isinstance(clock, ManualClock)
        return clock

    @property
    def files(self) -> MemoryFiles:
        files = self.env.files
        assert isinstance(files, MemoryFiles)
        return files

    # -- running

    def deliver(self) -> None:
        """Hand on what clients sent while the broker did not read."""
        for client in self.clients:
            client.deliver()

    def turn(self) -> bool:
        """One turn of the loop: what is ready now, not what gets ready by it."""
        for _ in range(n := len(self.ready)):
            self.ready.popleft()()
        return n > 0

    def _start_sync(self, logs: list[Log]) -> None:
        self.syncs.append(logs)
        self._synced.append(self.quick_sync)
        if self.quick_sync:
            for log in logs:
                log.sync()

    def sync(self, *, fail: bool = False) -> None:
        """The oldest sync job ends; `fail`: the disk says no to all of it."""
        logs, is_synced = self.syncs.popleft(), self._synced.popleft()
        failed: dict[Log, Exception] = {}
        for log in logs:
            try:
                if fail:
                    raise OSError(5, "Input/output error")
                if not is_synced:
                    log.sync()
            except Exception as error:
                failed[log] = error
        self.broker.turn.sync_done(failed)

    def run(self) -> None:
        """Until nothing is left to do without time passing."""
        while True:
            while self.turn():
                pass
            if self.syncs and self.auto_sync:
                self.sync()
            elif (due_ms := self.broker.turn.timers.next_ms) is not None and due_ms <= self.clock.steady_ms():
                self.broker.turn.ring()
            elif self.broker.turn.jobs and self.may_step():
                self.broker.turn.begin()
                self.broker.turn.jobs.step()
            elif not self.ready:
                return

    def may_step(self) -> bool:
        """Whether `run` does another step of the background jobs; here it does all there are."""
        return True

    def advance(self, ms: int) -> None:
        """Let time pass; what becomes due on the way happens when it is due."""
        end_ms = self.clock.steady_ms() + ms
        while (due_ms := self.broker.turn.timers.next_ms) is not None and due_ms <= end_ms:
            self.clock.advance(max(0, due_ms - self.clock.steady_ms()))
            self.broker.turn.ring()
            self.run()
        self.clock.advance(end_ms - self.clock.steady_ms())
        self.run()

    def leap(self, ms: int) -> None:
        """Let time pass at once, as on a laptop that slept: what became due on the way happens now, late, and once.

        For days of an idle broker, whose two-second rounds `advance` would go through one by one.
        """
        self.clock.advance(ms)
        self.run()

    # -- the end, and the next beginning

    def again(self, files: MemoryFiles, **settings: str) -> World:
        """A new process on this disk."""
        env = sim_env(self.env.rng.getrandbits(32), self.clock.now_ms() + 1000, files)
        return World(self.flush, env, brokers=self.brokers, **{**self.settings, **settings})

    def crash(self, *, lose_unsynced: bool = False) -> World:
        """kill -9, or a power cut; then a new start."""
        return self.again(self.files.crash(lose_unsynced=lose_unsynced))

    def restart(self, **settings: str) -> World:
        """SIGTERM, and a new start."""
        self.run()
        self.broker.close()
        return self.again(self.files.crash(), **settings)

    def fingerprints(self) -> dict[str, Any]:
        """The state of all shards that are loaded, and of the producers of all partitions."""
        broker = self.broker
        shards = [broker.metadata_shard, *broker.groups.shards]
        if broker._transactions is not None:  # not made for this: that would add its shortcuts
            shards += broker._transactions.shards
        if broker._share is not None:
            shards += broker._share.coordinator.shards
        found = {shard.name: shard.machine.fingerprint() for shard in shards if shard.state is READY}
        for topic in broker.metadata.topics.values():
            if not topic.internal:
                for partition in topic.partitions:
                    with suppress(KafkaError, OSError, StorageError):  # a log that is out of use
                        opened = broker.partitions.get(topic, partition.index)
                        found[f"producers {topic.name}-{partition.index}"] = opened.producers.fingerprint()
        return found

    def check_replay(self) -> None:
        """A start after kill -9 that loads everything comes to the same state."""
        live, again = self.fingerprints(), self.crash()
        for name in again.broker.metadata.topics.keys() & INTERNAL_TOPICS:
            for shard in again.broker.shards_of(name):
                shard.require()
        replayed = again.fingerprints()
        wrong = [name for name in live if replayed.get(name) != live[name]]
        assert not wrong, wrong


class Watched(dict[int, Any]):
    """The table of what serves repeated requests, which tells of each that it has served."""

    def __init__(self, table: dict[int, Any], tell: Callable[[int, bool], None]) -> None:
        super().__init__()
        self._tell = tell
        for api_key, serve in table.items():
            self[api_key] = serve

    def __setitem__(self, api_key: int, serve: Any) -> None:
        def told(*args: Any) -> bytes | None:
            reply: bytes | None = serve(*args)
            if reply is not None:
                self._tell(api_key, True)
            return reply

        super().__setitem__(api_key, told)


def watch_repeats(world: World, tell: Callable[[int, bool], None]) -> None:
    """Tell from now on of each request of an API whose repeats are served from bytes: the API, and whether it was."""
    broker = world.broker
    for route in broker.router.routes.values():
        if route.target == HOT:
            route.load()
            broker.clients.shortcuts[route.api_key] = broker.router._hot(route).serve
    broker.router.repeats = Watched(broker.clients.shortcuts, tell)
    broker.clients.offer(broker.router.repeats)
    dispatch = broker.clients.dispatch

    def told(connection: Any, data: bytes, position: int, stop: int, api_key: int, *rest: int) -> None:
        if broker.router.routes[api_key].target == HOT:
            tell(api_key, False)
        dispatch(connection, data, position, stop, api_key, *rest)

    broker.clients.dispatch = told


def count_repeats(world: World, api_key: int) -> list[bool]:
    """Whether each request of one API from now on is served from bytes; the list grows."""
    served: list[bool] = []
    watch_repeats(world, lambda key, is_served: served.append(is_served) if key == api_key else None)
    return served


def make_topic(client: Client, name: str = "t", partitions: int = 1) -> bytes:
    """Create a topic; its id."""
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7)
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


__all__ = [
    "DATA",
    "FLUSHES",
    "Client",
    "SimulatedCrash",
    "Transport",
    "World",
    "count_repeats",
    "frame",
    "make_topic",
    "split_frames",
    "watch_repeats",
]
