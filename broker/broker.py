"""The broker as one object without a socket: its shards and partitions, the turn of the loop, and what is due when."""

from __future__ import annotations

import heapq
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from broker.cluster.listeners import Listener, Node
from broker.cluster.metadata import ClusterMetadata, Topic
from broker.cluster.metadata_image import shrink
from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.groups.classic.commit_checks import check_offset_commit, on_offset_commit_accepted
from broker.coordinator.groups.machine import GroupMachine
from broker.coordinator.placement import shard_index
from broker.coordinator.result import Context, Token
from broker.coordinator.runtime import READY, UNLOADED, Shard
from broker.durability import Durability, FlushState
from broker.handlers import make_routes
from broker.partitions.fetch_session import FetchSessions
from broker.partitions.table import Partitions
from broker.shell.metrics import Metrics
from broker.shortcuts.fetch import ConsumePath
from broker.shortcuts.offset_commit import Answer, CommitPath, FetchPath
from broker.shortcuts.produce import ProducePath
from broker.upkeep.archive_wait import ArchiveWait
from broker.upkeep.maintenance import Maintenance
from broker.wire.backlog import Backlog
from broker.wire.connection import PARKED_BYTES
from broker.wire.router import ParkedRequest, Router, encode_reply
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError
from storage.log import Log

if TYPE_CHECKING:
    from broker.cluster.directory import DataDirectory
    from broker.config.settings import BrokerConfig
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.wire.connection import Connection
    from storage.env import Env

logger = logging.getLogger("momus.broker")

CLOSE_BUDGET_MS = 1000  # who says SIGTERM waits two seconds before he says SIGKILL


class Broker:
    """All state of one process, whichever virtual broker is asked.

    The server around it calls `begin_turn` through its connections, `end_turn` once a turn of the loop, `ring` at
    `next_alarm_ms`, `sync_done` after the syncs that `start_sync` began, and steps `background`.
    """

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        directory: DataDirectory,
        nodes: list[Node],
        *,
        call_soon: Callable[[Callable[[], None]], object],
        start_sync: Callable[[list[Log]], None],
    ) -> None:
        self.env = env
        self.config = config
        self.directory = directory
        self.nodes = nodes
        self.cluster_id = directory.cluster_id
        self.fsync = config.flush == "fsync"
        self.metrics = Metrics()
        self.now_ms = env.clock.now_ms()
        self.request_limit = config.socket_request_max_bytes
        self.backlog = Backlog(config.queued_max_bytes)  # of all connections
        self.connection_limit = 2**31  # what the process has descriptors for; the server knows
        self.backlog_limit = config.queued_max_bytes_per_connection  # of replies that wait on one
        self.connections: set[Connection] = set()
        self.parked: dict[Token, ParkedRequest] = {}
        self.background: deque[Iterator[None]] = deque()
        self._hurried: Iterator[None] | None = None
        self.call_soon = call_soon  # in the next turn of the loop
        self._turn_open = False
        self._alarms: list[tuple[int, int, Callable[[int, int], None]]] = []
        self._alarm_number = 0
        self.router = Router(self, make_routes())
        self.durability = Durability(fsync=self.fsync, start_sync=start_sync, refuse=self.router.refuse_held)
        self.api_versions = [
            (route.api_key, route.min_version, route.max_version) for route in self.router.routes.values()
        ]
        self.metadata_shard = Shard(
            self,
            "__cluster_metadata-0",
            directory.open_metadata_log,
            self._new_metadata,
            load_at_once_bytes=1 << 62,  # nothing can be served before it
        )
        partitions = self.partitions = Partitions(self)
        self.partition, self.open_partitions = partitions.get, partitions.opened
        self.has_partition, self.partition_size = partitions.has, partitions.size
        self.group_shards: list[Shard] = []
        self.archive = ArchiveWait(self)
        self._transactions: TransactionCoordinator | None = None
        self.dispatch = ConsumePath(self).dispatch
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots)
        commit_path, fetch_path = CommitPath(self), FetchPath(self)
        self.produce = ProducePath(self).produce
        self.commit, self.offset_fetch, self._keep_answer = commit_path.commit, fetch_path.fetch, fetch_path.keep
        self.check_offset_commit, self.offset_commit_accepted = check_offset_commit, on_offset_commit_accepted

    # -- opening and closing

    def open(self) -> None:
        """Load the cluster's metadata; shards and partitions follow when they are asked for."""
        shard = self.metadata_shard
        shard.require()
        self.end_turn()
        shrink(shard.log, self.directory.image, self.metadata, self.now_ms)
        self.group_shards = [self._group_shard(i) for i in range(self.metadata.internal_partitions())]
        self.directory.remove_orphans(self.metadata)
        self.partitions.start()

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""
        machine: ClusterMetadata = self.metadata_shard.machine
        return machine

    def _new_metadata(self) -> ClusterMetadata:
        metadata = ClusterMetadata(self.config, [node.node_id for node in self.nodes])
        for value in self.directory.image.values():
            metadata.replay(None, value)
        metadata.version = self.directory.image.offset  # as many records as the log has had so far
        return metadata

    def _group_shard(self, index: int) -> Shard:
        def open_log() -> Log:
            topic = self.metadata.topics[OFFSETS_TOPIC]
            return self.directory.open_log(self.metadata, topic, index)

        def make_machine() -> GroupMachine:
            return GroupMachine(index, self.config, self)

        return Shard(self, f"{OFFSETS_TOPIC}-{index}", open_log, make_machine)

    def close(self) -> None:
        """Flush and close every log, and say so on disk: the next start need not look for damage."""
        self.end_turn()
        begin_ms = self.env.clock.monotonic_ms()
        self.partitions.close(begin_ms + CLOSE_BUDGET_MS // 2)
        self.directory.close(begin_ms + CLOSE_BUDGET_MS)

    def start_maintenance(self) -> None:
        """Begin the rounds of housekeeping."""
        Maintenance(self).start()

    # -- who owns what

    @property
    def offsets_anywhere(self) -> bool:
        """Whether any node takes offset requests for any group (design 1: any broker answers)."""
        return len(self.nodes) == 1 or self.config.offsets_any_broker

    def shard_of_group(self, group_id: str) -> Shard:
        """The shard of a group, whether loaded or not."""
        return self.group_shards[shard_index(group_id, len(self.group_shards))]

    def coordinator_of(self, group_id: str) -> int:
        """The node that coordinates a group."""
        index = shard_index(group_id, len(self.group_shards))
        return self.metadata.topics[OFFSETS_TOPIC].partitions[index].leader

    def group_shard(self, group_id: str, ctx: Context, *, anywhere: bool = False) -> Shard:
        """The loaded shard of a group. Errors: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        if len(self.nodes) > 1 and not anywhere and self.coordinator_of(group_id) != ctx.node_id:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"node {ctx.node_id} does not coordinate group {group_id!r}")
        shard = self.shard_of_group(group_id)
        if shard.state is not READY:
            shard.require()
        return shard

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator; most brokers never need one."""
        if self._transactions is None:
            from broker.coordinator.transactions.coordinator import TransactionCoordinator

            self._transactions = TransactionCoordinator(self)
        return self._transactions

    def own_group_shards(self, ctx: Context) -> Iterator[Shard]:
        """The loaded shards that a node coordinates. Errors: COORDINATOR_LOAD_IN_PROGRESS."""
        leaders = self.metadata.topics[OFFSETS_TOPIC].partitions
        for index, shard in enumerate(self.group_shards):
            if leaders[index].leader == ctx.node_id:
                shard.require()
                yield shard

    def shards_of(self, topic_name: str) -> list[Shard]:
        """The shards whose logs make up an internal topic."""
        if topic_name == OFFSETS_TOPIC:
            return self.group_shards
        self.transactions.open()
        return self.transactions.shards

    def shard_moved(self, topic: Topic, index: int) -> None:
        """Another node coordinates what a shard holds: it begins anew from its log, as on another machine it would."""
        shard = self.shards_of(topic.name)[index]
        if shard.log is None:
            return
        try:
            self.durability.settle_now(shard.flush_state)
        except (OSError, StorageError) as error:  # it has been cut back and reloaded, or is out of use until it can be
            logger.error("%s moved while its log failed: %s", shard, error)
        else:
            if shard.state is not UNLOADED:
                shard.reload()
        shard.log.set_leader_epoch(topic.leader_epoch(index))

    def endpoint(self, node_id: int, ctx: Context) -> tuple[str, int]:
        """Where a client that came in on ctx.listener reaches a node."""
        for node in self.nodes:
            if node.node_id == node_id:
                came_in: Listener = ctx.listener
                listener = node.listeners.get(came_in.name) or next(iter(node.listeners.values()))
                host = listener.advertised_host or ctx.local_host or listener.host
                return host, listener.advertised_port or listener.port
        return "", -1

    # -- the turn

    def begin_turn(self) -> int:
        """Something has come in: read the clock once for the turn, and see to it that the turn ends."""
        if not self._turn_open:
            self._turn_open = True
            self.backlog.turn_bytes = 0
            self.now_ms = self.env.clock.now_ms()
            self.call_soon(self.end_turn)
            if self.metrics.timer is not None:
                self.metrics.timer.begin()
        return self.now_ms

    def end_turn(self) -> None:
        """Write what the turn appended and send its replies."""
        durability = self.durability
        durability.end_turn()
        while durability.has_more:  # replies that left made room for requests that had waited
            durability.end_turn()
        self._turn_open = False
        if self.metrics.timer is not None:
            self.metrics.timer.end()

    def sync_done(self, failed: dict[Log, Exception]) -> None:
        """The syncs that `start_sync` began have ended."""
        self.begin_turn()
        self.durability.sync_done(failed)

    def touch(self, flush_state: FlushState) -> None:
        """A log is to be flushed at the end of the turn."""
        self.durability.touch(flush_state)
        if not self._turn_open:
            self.begin_turn()

    def internal_context(self) -> Context:
        """The context of a request the broker sends itself."""
        return Context(self.now_ms, self.env.rng, node_id=self.nodes[0].node_id)

    # -- parked requests

    def park(self, token: Any, parked: ParkedRequest, shard: Shard | None) -> None:
        """Keep what is needed to answer a request later."""
        parked.own_frame()
        self.parked[token] = parked
        token[0].parked.add(token[1])
        token[0].unsent += PARKED_BYTES
        if shard is not None:
            shard.parked.add(token)

    def answer(self, shard: Shard | None, token: Any, response: Any) -> None:
        """Answer a parked request once what it has seen is durable; a client that has gone is passed over."""
        parked = self.parked.pop(token, None)
        if parked is None:
            return
        self.begin_turn()
        connection, slot = token
        connection.parked.discard(slot)
        connection.fill(slot, encode_reply(parked.route, parked.api_version, parked.correlation_id, response))
        data, position, stop = parked.frame
        if shard is not None:
            self.durability.hold(shard.flush_state, (connection, slot, data, position, stop))
        self.durability.speaks(connection)

    def refuse_parked(self, token: Any, code: ErrorCode) -> None:
        """Answer a parked request with an error."""
        parked = self.parked.pop(token, None)
        if parked is not None and not token[0].closed:
            data, position, stop = parked.frame
            token[0].fill(token[1], self.router.refusal(data[position:stop], code))
            self.durability.speaks(token[0])

    def keep_answer(
        self, connection: Connection, question: bytes, api_version: int, sources: tuple[Shard, list[Any]], reply: bytes
    ) -> None:
        """Keep the reply to an OffsetFetch for the next time (see commit_path)."""
        shard, columns = sources
        self._keep_answer(connection, question, Answer(api_version, shard, [(c, c.mark()) for c in columns], reply))

    # -- connections

    def connected(self, connection: Connection) -> None:
        """A client has come; one too many is turned away."""
        connection.last_active_ms = self.env.clock.now_ms()
        self.connections.add(connection)
        self.metrics.connections_accepted += 1
        if len(self.connections) > self.config.max_connections:
            self.metrics.connections_refused += 1
            connection.refuse(f"more than max.connections={self.config.max_connections} are open")
        elif len(self.connections) > self.connection_limit:
            self.metrics.connections_refused += 1
            connection.refuse(f"{self.connection_limit} are open, and descriptors for no more (ulimit -n)")

    def disconnected(self, connection: Connection) -> None:
        """A client has gone: nothing waits for it any more."""
        self.connections.discard(connection)
        for slot in connection.parked:
            self.parked.pop((connection, slot), None)
        if connection.fetch_waits:
            for wait in list(connection.fetch_waits.values()):
                wait.cancel()
        connection.out = []

    # -- time and background

    def set_alarm(self, shard: Shard, name: Any, alarm_ms: int) -> None:
        """Ring a shard's alarm."""
        self.at(alarm_ms, lambda due_ms, now_ms: shard.ring(name, due_ms, now_ms))

    def at(self, due_ms: int, call: Callable[[int, int], None]) -> None:
        """Call `call(due_ms, now_ms)` at a time in Unix milliseconds."""
        self._alarm_number += 1
        heapq.heappush(self._alarms, (due_ms, self._alarm_number, call))
        self.alarm_moved = self._alarms[0][0] == due_ms or self.alarm_moved

    alarm_moved = False  # the server has to look at next_alarm_ms again
    expects_more = False  # somebody goes step by step, and the next step follows: the server may look out for it

    @property
    def next_alarm_ms(self) -> int | None:
        """When `ring` is due, if at all."""
        return self._alarms[0][0] if self._alarms else None

    def ring(self) -> None:
        """Do what has become due; what sets itself due again on the way, as long jobs do, waits for the next turn."""
        self.begin_turn()
        now_ms, newest = self.now_ms, self._alarm_number
        while self._alarms and self._alarms[0][0] <= now_ms and self._alarms[0][1] <= newest:
            due_ms, _, call = heapq.heappop(self._alarms)
            try:
                call(due_ms, now_ms)
            except (KafkaError, OSError, StorageError) as error:  # the others are due all the same
                logger.error("what was due at %d failed: %s", due_ms, error)

    def in_background(self, steps: Iterator[None]) -> None:
        """Run the steps of a long job between turns."""
        self.background.append(steps)

    def hurry(self, steps: Iterator[None]) -> None:
        """A client waits for this job: it comes before all others."""
        if steps is not self._hurried and steps in self.background:
            self._hurried = steps
            self.background.remove(steps)
            self.background.appendleft(steps)

    @property
    def is_hurried(self) -> bool:
        """Whether clients wait for the next step."""
        return bool(self.background) and self.background[0] is self._hurried

    def step_background(self) -> bool:
        """One step of the oldest job; False when there is none."""
        if not self.background:
            return False
        steps = self.background[0]
        try:
            next(steps)
            if steps is not self._hurried and self.background[0] is steps:
                self.background.rotate(-1)
        except StopIteration:
            self.background.remove(steps)
        except (KafkaError, OSError, StorageError) as error:
            self.background.remove(steps)
            logger.error("a background job failed: %s", error)
        except Exception:
            self.background.remove(steps)
            logger.exception("a background job failed")
        return True
