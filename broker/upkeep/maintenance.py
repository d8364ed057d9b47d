"""Housekeeping between requests: loads shards, runs retention and cleaning, in steps of a few milliseconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from broker.cluster.data.directory import WORTH_AN_INDEX_BYTES
from broker.cluster.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from broker.coordinator.lazy_shards import existing
from broker.coordinator.loading import load_shards
from broker.upkeep.checkpointing import Checkpointing
from broker.upkeep.deleted_topics import DeletedTopics
from broker.upkeep.expired_tokens import remove_expired_tokens
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.topics import Topic
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.coordinator.share.table import SharePartitions
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.partitions.fetch_session import FetchSessions
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.upkeep.archive_wait import ArchiveWait
    from storage.log.log import Log

logger = logging.getLogger("momus.maintenance")

SHARD_INTERVAL_MS = 2000  # between two checks of how dirty the coordinators' logs are
LEAST_DIRTY_BYTES = 256 << 10  # of a coordinator's log, or a segment, before it is cleaned early
BUSY_DIRTY_BYTES = 1 << 20  # the same while clients commit so much that they need the time
BUSY_RECORDS_A_SECOND = 10_000
LOGS_A_STEP = 500  # whose share of dirty bytes is looked at
DIRTY_SHARE = 0.4  # of the clean bytes: with writes during a pass the log stays below twice its live bytes

Job = Callable[[], Iterator[None]]
Clean = Callable[[int, int], Iterator[None]]  # given the time and the first offset that must stay

NEVER_MS = 1 << 62

FAILURES = (KafkaError, OSError, StorageError)


class Coordinators(Protocol):
    """The coordinators whose logs are cleaned."""

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator."""

    @property
    def share(self) -> SharePartitions:
        """The share partitions with their coordinator."""

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The sessions of Fetch."""

    def shards_of(self, topic_name: str) -> Sequence[Shard]:
        """The shards whose logs make up an internal topic."""


class Maintenance:
    """The housekeeping of a broker, started by timers."""

    def __init__(
        self,
        turn: Turn,
        config: BrokerConfig,
        directory: DataDirectory,
        metadata_shard: Shard,
        groups: GroupShards,
        partitions: Partitions,
        archive: ArchiveWait,
        coordinators: Coordinators,
    ) -> None:
        self._turn = turn
        self._config = config
        self._directory = directory
        self._metadata_shard = metadata_shard
        self._groups = groups
        self._partitions = partitions
        self._archive = archive
        self._coordinators = coordinators
        self._busy: set[str] = set()
        self.is_loading = False  # coordinators: deadlines of what they hold are not set yet
        self._least_dirty_bytes = LEAST_DIRTY_BYTES
        self._written = (0, turn.steady_ms)  # records in the coordinators' logs so far, and when they were counted
        self._deleted_topics = DeletedTopics(turn, directory, groups, partitions, coordinators.fetch_sessions)

    def start(self) -> None:
        """Load the shards that have a log, and begin the rounds."""
        self.is_loading = True
        self._turn.jobs.add(self._load_shards())
        self._metadata_shard.when_reloaded.append(self._follow_metadata)
        self._follow_metadata()
        config = self._config
        if config.flush != "memory":
            checkpointing = Checkpointing(self._directory, self._turn.env.files, fsync=self._turn.fsync)
            self._every(lambda: config.log_flush_offset_checkpoint_interval_ms, "checkpoints", checkpointing.round)
            if config.log_flush_scheduler_interval_ms < NEVER_MS:
                self._every(lambda: config.log_flush_scheduler_interval_ms, "flush", self._flush_old(checkpointing))
        self._every(lambda: config.log_retention_check_interval_ms, "retention", self._retain)
        if config.flush != "memory" and config.offsets_image_interval_ms:
            self._every(lambda: config.offsets_image_interval_ms, "images", self._images)
        if config.delegation_token_secret_key:
            self._every(
                lambda: config.delegation_token_expiry_check_interval_ms,
                "tokens",
                lambda: remove_expired_tokens(self._turn, self._metadata_shard),
            )
        if config.log_cleaner_enable:
            self._every(lambda: config.log_cleaner_backoff_ms, "cleaning", self._clean)
            self._every(
                lambda: min(config.log_cleaner_backoff_ms, SHARD_INTERVAL_MS), "shards", self._clean_coordinators
            )

    def _flush_old(self, checkpointing: Checkpointing) -> Job:
        return lambda: checkpointing.sync_old(self._turn.steady_ms)

    def _images(self) -> Iterator[None]:
        from broker.coordinator.offsets.imaging import is_due, take_image  # 3 ms: not before the first round

        for _, shard in self._groups.shards.existing():
            if is_due(shard):
                yield from take_image(shard)

    def _every(self, interval: Callable[[], int], name: str, job: Job) -> None:
        """Run a job again and again. `interval`: the milliseconds between two, of a setting that may be altered."""
        turn = self._turn

        def due(due_ms: int, now_ms: int) -> None:
            if name not in self._busy:  # the last round may still run
                self._busy.add(name)
                turn.jobs.add(self._round(name, job))
            turn.timers.at(now_ms + interval(), due)

        turn.timers.at(turn.steady_ms + interval(), due)

    def _round(self, name: str, job: Job) -> Iterator[None]:
        try:
            yield from job()
        finally:
            self._busy.discard(name)

    def _follow_metadata(self) -> None:
        self._partitions.metadata.listeners.append(self._topic_changed)

    def _topic_changed(self, event: str, topic: Topic, *_: object) -> None:
        if event == "deleted":
            flush_state = self._metadata_shard.flush_state
            flush_state.then(lambda durable: self._topic_gone(topic) if durable else None)

    def _topic_gone(self, topic: Topic) -> None:
        self._archive.forget(topic.name)
        self._deleted_topics.topic_gone(topic)

    def _load_shards(self) -> Iterator[None]:
        """Load all shards, so that members time out after a restart even without a request for their group."""
        try:
            yield from load_shards(self._directory, OFFSETS_TOPIC, self._groups.shards)
            yield from self._deleted_topics.at_start()
            if TRANSACTIONS_TOPIC in self._partitions.metadata.topics:
                yield from self._coordinators.transactions.load()
            if SHARE_STATE_TOPIC in self._partitions.metadata.topics:
                yield from self._coordinators.share.coordinator.load()
        finally:
            self.is_loading = False
        if not self._directory.was_clean:
            yield from self._recover_partitions()

    def _recover_partitions(self) -> Iterator[None]:
        """Scan the large logs, in slices, before a request has to wait for that."""
        metadata = self._partitions.metadata
        for topic in list(metadata.topics.values()):
            if topic.name in INTERNAL_TOPICS:
                continue
            for index in range(len(topic.partitions)):
                if (
                    metadata.topics.get(topic.name) is topic
                    and self._directory.size_on_disk(topic.name, index) >= WORTH_AN_INDEX_BYTES
                ):
                    try:
                        yield from self._directory.recover(metadata, topic, index)
                    except FAILURES as error:  # a request for it gets the error
                        logger.error("cannot open %s-%d: %s", topic.name, index, error)
                yield

    def _retain(self) -> Iterator[None]:
        for topic in list(self._partitions.metadata.topics.values()):
            if topic.name in INTERNAL_TOPICS:
                continue
            for index in range(len(topic.partitions)):
                if self._partitions.has(topic, index):
                    try:
                        partition = self._partitions.get(topic, index)
                        limit = self._archive.retention_limit(
                            topic.name, index, partition.log, partition.high_watermark
                        )
                        yield from partition.maintenance(self._turn.now_ms, limit)
                    except FAILURES as error:  # go on with the other logs
                        logger.error("retention of %s-%d failed: %s", topic.name, index, error)
                    yield

    def _clean(self) -> Iterator[None]:
        for number, partition in enumerate(self._partitions.opened()):
            if number % LOGS_A_STEP == LOGS_A_STEP - 1:
                yield
            if partition.topic.name not in INTERNAL_TOPICS and not partition.closed:  # its topic may be deleted by now
                topic, index = partition.topic.name, partition.index
                stable_offset = partition.last_stable_offset
                yield from self._clean_log(topic, index, partition.log, stable_offset, partition.clean)

    def _clean_coordinators(self) -> Iterator[None]:
        shards = {
            name: self._coordinators.shards_of(name)
            for name in (INTERNAL_TOPICS - {SHARE_STATE_TOPIC}) & self._partitions.metadata.topics.keys()
        }
        written = sum(
            shard.log.end_offset for each in shards.values() for _, shard in existing(each) if shard.log is not None
        )
        (before, before_ms), self._written = self._written, (written, self._turn.steady_ms)
        busy = (written - before) * 1000 > BUSY_RECORDS_A_SECOND * (self._turn.steady_ms - before_ms)
        self._least_dirty_bytes = BUSY_DIRTY_BYTES if busy else LEAST_DIRTY_BYTES
        for name, each in shards.items():
            yield from self._clean_shards(name, each)

    def _clean_shards(self, topic: str, shards: Sequence[Shard]) -> Iterator[None]:
        from broker.coordinator.offsets.imaging import clean_commits  # 3 ms: not before the first round

        for index, shard in existing(shards):
            log = shard.log
            if log is not None and shard.may_be_cleaned:
                if self._is_wasteful(log) and self._archive.position(topic, index) is None:
                    yield from self._seal(log)
                stable_offset = shard.flush_state.durable_offset
                clean = partial(clean_commits, shard, self._config.producer_id_expiration_ms)
                yield from self._clean_log(topic, index, log, stable_offset, clean, commits=True)

    def _seal(self, log: Log) -> Iterator[None]:
        """Begin a new segment, because the active one is never cleaned."""
        if log.segments[-1].size < min(self._least_dirty_bytes, log.config.segment_bytes) // 2:
            return
        while log.dirty and not log.broken:  # wait until the turn's records are flushed
            yield
        if not log.broken:
            log.roll()

    def _clean_log(
        self, topic: str, index: int, log: Log, stable_offset: int, clean: Clean, *, commits: bool = False
    ) -> Iterator[None]:
        try:
            if self._is_dirty(log, None) or (commits and self._is_wasteful(log)):
                limit = self._archive.cleaning_limit(topic, index, log, stable_offset)
                if limit >= stable_offset or self._is_dirty(log, limit):
                    self._directory.will_clean((topic, index))
                    yield from clean(self._turn.now_ms, limit)
                    if self._directory.logs.get((topic, index)) is log:  # not one of a topic made again meanwhile
                        self._directory.cleaned((topic, index), log.cleaned_offset)
        except FAILURES as error:
            logger.error("cleaning %s failed: %s", log.directory, error)

    def _is_dirty(self, log: Log, limit_offset: int | None) -> bool:
        config = log.config
        return config.compacts and (
            log.dirty_ratio(None, limit_offset) >= config.min_cleanable_dirty_ratio
            or log.is_overdue(self._turn.now_ms, limit_offset)
        )

    def _is_wasteful(self, log: Log) -> bool:
        """Whether the log may soon be twice as large as its live bytes."""
        clean_bytes = sum(segment.size for segment in log.segments if segment.base_offset < log.cleaned_offset)
        least_bytes = min(self._least_dirty_bytes, log.config.segment_bytes)
        return log.size_bytes - clean_bytes >= max(least_bytes, DIRTY_SHARE * clean_bytes)
