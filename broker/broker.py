"""The composition root: makes, opens and closes the parts of one broker. It has no socket.

Only broker/shell imports this module. Each part is handed the parts that it needs, and a handler declares as a Protocol
what it uses of Broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Final

from broker.cluster.metadata import ClusterMetadata
from broker.cluster.metadata_image import shrink
from broker.cluster.metadata_plans import start_up
from broker.cluster.nodes import Nodes
from broker.cluster.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from broker.cluster.topics import Topic
from broker.config.authorizer_setting import is_authorizer_set
from broker.coordinator.group_shards import GroupShards
from broker.coordinator.runtime import UNLOADED, Shard
from broker.coordinator.shard_parts import LoneLog
from broker.handlers import make_routes
from broker.journal.keeping import keep_journal
from broker.partitions.fetch_session import FetchSessions
from broker.partitions.table import Partitions
from broker.turn.durability import Durability
from broker.turn.flush_state import FlushState, Held
from broker.turn.metrics import Metrics
from broker.turn.turn import Turn
from broker.upkeep.archive_wait import ArchiveWait
from broker.upkeep.maintenance import Maintenance
from broker.wire.clients import Clients
from broker.wire.route import offered
from broker.wire.router import Router
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.listeners import Node
    from broker.config.settings import BrokerConfig
    from broker.coordinator.share.dead_letters.sending import QueuePartition
    from broker.coordinator.share.sessions import ShareSession
    from broker.coordinator.share.table import SharePartitions
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.faults.fault import Fault
    from broker.faults.table import FaultTable
    from broker.journal.recording import Recording
    from broker.security.security import Security
    from protocol.errors import ErrorCode, KafkaError
    from storage.files.env import Env, Rng
    from storage.log.log import Log

logger: Final = logging.getLogger("momus.broker")
CLOSE_BUDGET_MS: Final = 1000  # process managers and tests wait two seconds between SIGTERM and SIGKILL


class Broker:
    """All parts of one process, for all its virtual brokers.

    The server around it runs the `turn` and makes connections with `clients`.
    """

    router_class: ClassVar[type[Router]] = Router
    upstream: Any = None  # of a proxy: the cluster that answers the control plane; None: this broker answers
    make_event: Callable[[Fault], None] | None = None  # makes a fault's event, and releases it; None: none is made
    beside: Callable[[Callable[[], object], Callable[[], None]], object] | None = None  # see Security
    fault_numbers: Iterator[int] | None = None  # in names of faults; a cluster's go on from life to life. None: from 1

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        directory: DataDirectory,
        nodes: list[Node],
        *,
        call_soon: Callable[[Callable[[], None]], object],
        start_sync: Callable[[list[Log]], None],
        later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self.config = config
        self._is_open = False
        self._maintenance: Maintenance | None = None
        self._later = later or (lambda seconds, call: call_soon(call))  # by the machine's clock
        self.directory = directory
        self.nodes = Nodes(nodes)
        self.cluster_id = directory.cluster_id
        self.metrics = Metrics()
        durability = Durability(fsync=config.flush == "fsync", start_sync=start_sync, refuse=self._refuse_held)
        self.turn = Turn(env, durability, self.metrics, call_soon)
        routes = make_routes(config.release)
        self.router = self.router_class(self, routes, self.turn)
        self.parked = self.router.parked
        self.clients = Clients(self.turn, config, self.parked, self.router)
        self.clients.later = self._later
        self.api_versions = offered(routes)
        self.metadata_shard = Shard(
            self.turn,
            self.parked,
            "__cluster_metadata-0",
            LoneLog(directory.open_metadata_log),
            self._new_metadata,
            load_at_once_bytes=1 << 62,  # nothing can be served before it is loaded
        )
        self.router.executor.metadata = self.metadata_shard
        self.groups = GroupShards(self.turn, self.parked, config, directory, self.nodes, self.metadata_shard)
        self.partitions = Partitions(self.turn, directory, self.metadata_shard, self)
        self.archive = ArchiveWait(self.turn, config, directory, self.groups, self.partitions)
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots)
        self._transactions: TransactionCoordinator | None = None
        self._faults: FaultTable | None = None
        self._share: SharePartitions | None = None
        self._security: Security | None = None
        if is_authorizer_set(config):
            self._authorize()
        if logging.getLogger("momus.refusals").isEnabledFor(logging.INFO):
            self._explain_refusals()
        if config.codec == "construct":  # it is to read every byte
            self.router.use_construct()
        if self.router.repeats is not None:
            self.clients.offer(self.router.repeats)  # the dict itself: it fills with the first requests

    def _authorize(self) -> None:
        """Ask an authorizer before every handler."""
        from broker.authorization.authorizer import Authorizer  # 8 ms: most brokers have no authorizer
        from broker.authorization.table import Guard  # the same 8 ms

        self.router.guard = Guard(Authorizer(self.config, lambda: self.metadata.acls), lambda: self.metadata)

    def _refuse_held(self, held: Iterable[Held], failed: FlushState) -> None:
        without = None if self._share is None else self._share.without_lost(failed)
        self.router.refusals.refuse_held(held, without)

    def _new_metadata(self) -> ClusterMetadata:
        metadata = ClusterMetadata(
            self.config,
            self.nodes.ids,
            start_up=self._records_at_load,
            changed=self._metadata_changed,
            followers=self.nodes.followers,
        )
        for value in self.directory.image.values():
            metadata.replay(None, value)
        # the number of records so far; after a failed write above all earlier versions, because caches compare it
        metadata.version = self.metadata.version + 1 if self._is_open else self.directory.image.offset
        return metadata

    def _records_at_load(self, metadata: ClusterMetadata, rng: Rng) -> list[bytes]:
        """What a load of the metadata appends: what a start needs, or after a failed write what the partitions need."""
        if not self._is_open or "metadata.version" not in metadata.feature_levels:
            return start_up(metadata, rng)
        return self.nodes.records_of_moves()

    def _metadata_changed(self) -> None:
        """Something in the metadata has changed: shortcuts forget, and quotas begin or end to be obeyed."""
        self.turn.learned.drop()
        clients, router = self.clients, self.router
        if self.metadata.clients.quotas or clients.address_quotas is not None or router.quotas is not None:
            from broker.quotas.obeyed import obey_quotas  # 4 ms: most brokers have no quotas

            obey_quotas(self.turn, self.config, clients, router, self.fetch_sessions, lambda: self.metadata)

    def _follow_topics(self) -> None:
        self.metadata.listeners.append(self._topic_changed)

    def _topic_changed(self, event: str, topic: Topic, _index: int) -> None:
        if event == "deleted" and self.clients.journal is not None:
            self.clients.journal.topic_deleted(topic.topic_id, topic.name)

    # -- opening and closing

    def open(self) -> None:
        """Load the cluster's metadata; shards and partitions follow when they are first needed.

        Errors:  StorageError: what a start writes cannot be written.
        """
        shard = self.metadata_shard
        shard.require()
        shard.when_reloaded += [self._metadata_changed, self._follow_topics]
        self._metadata_changed()
        self._follow_topics()
        self.turn.end()
        if self.turn.durability.failures:
            raise StorageError(f"{shard.log.directory} cannot be written: is there room on the disk?")
        self._is_open = True
        shrink(shard.log, self.directory.image, self.metadata, self.turn.now_ms)
        self.groups.start()
        self.directory.remove_orphans(self.metadata)
        self.partitions.start()

    def start_maintenance(self) -> None:
        """Start housekeeping."""
        self._maintenance = Maintenance(
            self.turn,
            self.config,
            self.directory,
            self.metadata_shard,
            self.groups,
            self.partitions,
            self.archive,
            self,
        )
        self._maintenance.start()

    @property
    def is_loading(self) -> bool:
        """Whether a start still loads coordinators: sessions and timeouts of what they hold have not begun."""
        return self._maintenance is not None and self._maintenance.is_loading

    def close(self) -> None:
        """Flush and close every log, and mark the clean shutdown: the next start need not check for damage."""
        self.turn.end()
        begin_ms = self.turn.env.clock.monotonic_ms()
        self.partitions.close(begin_ms + CLOSE_BUDGET_MS // 2)
        self.directory.close(begin_ms + CLOSE_BUDGET_MS)

    # -- what several parts need

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""
        machine: ClusterMetadata = self.metadata_shard.machine
        return machine

    @property
    def topics_by_id(self) -> Mapping[bytes, Any]:
        """What has a `name`, by topic id: the topics that requests name by their ids."""
        return self.metadata.topics_by_id

    @property
    def metadata_flush(self) -> FlushState:
        """The flush state of the metadata log."""
        return self.metadata_shard.flush_state

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator, made when first needed: most brokers never need one."""
        if self._transactions is None:
            # 19 ms: most brokers never see a transaction
            from broker.coordinator.transactions.coordinator import TransactionCoordinator

            self._transactions = TransactionCoordinator(
                self.turn,
                self.parked,
                self.config,
                self.directory,
                self.nodes,
                self.metadata_shard,
                self.groups,
                self.partitions,
                self.api_versions,
            )
        return self._transactions

    @property
    def has_faults(self) -> bool:
        """Whether a test has ever set one in this life."""
        return self._faults is not None

    @property
    def faults(self) -> FaultTable:
        """The faults that a test has set, made when first needed."""
        if self._faults is None:
            self._faults = self._fault_table()(
                self.turn,
                self.clients,
                self.router,
                self.metadata_shard,
                self.fetch_sessions,
                self._share_session,
                self.directory.path,
                self.fault_numbers or count(1),
                self.make_event,
            )
        return self._faults

    def _fault_table(self) -> type[FaultTable]:
        from broker.faults.table import FaultTable  # 6 ms: most brokers have none

        return FaultTable

    def _share_session(self, node_id: int, group_id: str, member_id: str) -> ShareSession | None:
        return self._share.sessions.get(node_id, group_id, member_id) if self._share is not None else None

    def _explain_refusals(self) -> None:
        """Let the log and the journal say why requests are refused."""
        if self.router.refused is None:
            from broker.refusals.recorder import Recorder  # 3 ms: most brokers need no explanation

            self.router.refused = Recorder(self, self.clients).refused

    def keep_journal(self, limit_bytes: int, recording: Recording | None = None) -> None:
        """Keep the last requests and replies, up to so many bytes, 0: none; with a recording, in that as well."""
        if keep_journal(self.clients, self.turn.env.clock, limit_bytes, recording):
            self._explain_refusals()

    def take_devices(self, ended: Broker, *, is_recorded: bool) -> None:
        """Go on with the faults and the journal of a life that has ended. A recording has a journal of its own."""
        if ended.has_faults:
            self.faults.go_on_from(ended.faults)
        if not is_recorded and ended.clients.journal is not None and self.clients.journal is not None:
            self.clients.unwatch(self.clients.journal)
            self.clients.journal = ended.clients.journal.go_on(self.turn.env.clock)
            self.clients.watch(self.clients.journal)

    def measure(self) -> None:
        """Measure how long requests take from now on."""
        if self.turn.metrics.turn_begins is None:
            from broker.wire.meter import measure  # 2 ms: most brokers are not measured

            measure(self.turn, self.clients)

    @property
    def security(self) -> Security:
        """Authentication, made when first needed: most brokers have PLAINTEXT listeners."""
        if self._security is None:
            from broker.security.security import Security  # 6 ms: most brokers authenticate nobody

            self._security = Security(
                self.turn, self.config, self.clients, self.metadata_shard, self._later, self.beside
            )
        return self._security

    @property
    def share(self) -> SharePartitions:
        """The share partitions with their coordinator, made when first needed: most brokers never need them."""
        if self._share is None:
            # 15 ms: most brokers never see a share group
            from broker.coordinator.share.coordinator import ShareCoordinator
            from broker.coordinator.share.table import SharePartitions

            coordinator = ShareCoordinator(self.turn, self.parked, self.config, self.directory, self.metadata_shard)
            self._share = SharePartitions(
                self.turn, self.config, self.metadata_shard, self.partitions, coordinator, self
            )
            self._share.start()
            self.clients.gone.append(self._share.disconnected)
        return self._share

    def letter_fault(self, group_id: str, queue: str, partition: int) -> ErrorCode | None:
        """The error that a test wants a write to a dead-letter queue to meet."""
        return None if self._faults is None else self._faults.letter_fault(group_id, queue, partition)

    def letters_written(self, place: QueuePartition, batch: bytes, first: int, error: KafkaError | None) -> None:
        """The journal keeps what the broker has written, or tried to write, to a dead-letter queue."""
        if self.clients.journal is not None:
            from broker.journal.own_writes import keep_produce  # 2 ms: most brokers keep no journal

            keep_produce(self.clients.journal, place, batch, first, error)

    def shards_of(self, topic_name: str) -> Sequence[Shard]:
        """The shards whose logs make up an internal topic."""
        if topic_name == OFFSETS_TOPIC:
            return self.groups.shards
        if topic_name == SHARE_STATE_TOPIC:
            self.share.coordinator.open()
            return self.share.coordinator.shards
        self.transactions.open()
        return self.transactions.shards

    def shard_moved(self, topic: Topic, index: int) -> None:
        """Another node coordinates a shard: reload it from its log, as another machine would."""
        shard = self.shards_of(topic.name)[index]
        if shard.log is None:
            return
        try:
            self.turn.durability.settle_now(shard.flush_state)
        except (OSError, StorageError) as error:  # the shard was reloaded, or is out of use until it can be
            logger.error("cannot write the log of %s, which moves to another node: %s", shard, error)
        else:
            if shard.state is not UNLOADED and topic.name == SHARE_STATE_TOPIC:
                self.share.coordinator.reload_moved(shard)
            elif shard.state is not UNLOADED:
                shard.reload()
        shard.log.set_leader_epoch(topic.leader_epoch(index))
