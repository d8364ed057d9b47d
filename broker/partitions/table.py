"""The open partitions: opened at their first use, closed when their topic is deleted.

Absent: tiered storage; segments stay where they are.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from broker.cluster.followers import NO_CEILING
from broker.cluster.topic_names import INTERNAL_TOPICS
from broker.partitions.partition import Partition
from broker.turn.flush_state import FlushState
from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.topics import Topic
    from broker.turn.turn import Turn
    from storage.log.log import Log

logger: Final = logging.getLogger("momus.partitions")

RETRY_MS: Final = 1000  # until the next try to remove the files of a deleted topic


class MetadataShard(Protocol):
    """The metadata and its log."""

    machine: ClusterMetadata
    flush_state: FlushState
    when_reloaded: list[Callable[[], None]]


class InternalLog(Protocol):
    """A shard's log of an internal topic; `followers` are called with its durable offset."""

    log: Log
    flush_state: FlushState
    followers: list[Callable[[int], None]]

    def open(self) -> None:
        """Open the log, if it is not open."""


class InternalLogs(Protocol):
    """The shards that write the logs of the internal topics."""

    def shards_of(self, topic_name: str) -> Sequence[InternalLog]:
        """The shards of `__consumer_offsets` or `__transaction_state`, by partition."""

    def shard_moved(self, topic: Topic, index: int) -> None:
        """Another node leads a partition: reload its shard from its log."""


class Partitions:
    """Topic id and index -> Partition, while the metadata has the topic."""

    def __init__(
        self, turn: Turn, directory: DataDirectory, metadata_shard: MetadataShard, internal: InternalLogs
    ) -> None:
        self._turn = turn
        self._directory = directory
        self._metadata_shard = metadata_shard
        self._internal = internal
        self.dropped: list[Callable[[str], None]] = []  # called with the name of a topic whose files were removed
        self._open: dict[tuple[bytes, int], Partition] = {}
        self._doomed: dict[str, int] = {}  # names of deleted topics whose files still exist -> how many of each name

    def start(self) -> None:
        """Follow the metadata, which must be loaded."""
        self.metadata.listeners.append(self._topic_changed)
        self._metadata_shard.when_reloaded.append(self._metadata_reloaded)

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""
        return self._metadata_shard.machine

    def get(self, topic: Topic, index: int) -> Partition:
        """One partition, opened at its first use.

        Errors:  KAFKA_STORAGE_ERROR: its log cannot be used.
                 NOT_LEADER_OR_FOLLOWER: the files of a deleted topic of the same name still exist.
        """
        partition = self._open.get((topic.topic_id, index))
        if partition is None or partition.log.broken:
            try:
                partition = self._open_partition(topic, index, partition)
            except (OSError, StorageError) as error:
                logger.error("cannot open %s-%d: %s", topic.name, index, error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        return partition

    def led(self, topic: Topic, index: int, node_id: int) -> Partition:
        """A partition, if this node leads it. Errors: NOT_LEADER_OR_FOLLOWER, those of `get`."""
        if topic.partitions[index].leader != node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition = self.get(topic, index)
        if partition.metadata_version != self.metadata.version or partition.topic is not topic:
            partition.configure(topic, self.metadata)
        if partition.is_behind:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def _open_partition(self, topic: Topic, index: int, partition: Partition | None) -> Partition:
        if topic.name in self._doomed:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if topic.name in INTERNAL_TOPICS:
            shard = self._internal.shards_of(topic.name)[index]
            shard.open()
            if partition is None:
                partition = self._make(topic, index, shard.log)
                partition.flush_state = shard.flush_state
                partition.high_watermark = shard.flush_state.durable_offset
                shard.followers.append(partition.advance)
        elif partition is None:
            partition = self._make(topic, index, self._directory.open_log(self.metadata, topic, index))
            partition.flush_state = FlushState(partition)
        else:
            partition.log.reopen(partition.flush_state.durable_offset)
            partition.reload()  # the cleaner may have removed markers before it gave the log up
        self._open[topic.topic_id, index] = partition
        return partition

    def _make(self, topic: Topic, index: int, log: Log) -> Partition:
        return Partition(topic, index, log, self.metadata, self._turn.env.files)

    def end_of(self, topic: Topic, index: int) -> int:
        """The end of a partition's log. Errors: KafkaError."""
        return self.get(topic, index).log.end_offset

    def cut(self, topic: Topic, index: int, end_offset: int) -> None:
        """Lose what lies from an offset on: the new leader does not have it.

        Errors: KafkaError, OSError, StorageError.
        """
        partition = self.get(topic, index)
        state = partition.flush_state
        self._turn.durability.settle_now(state)
        partition.log.cut_back(end_offset)
        state.durable_offset = partition.log.end_offset
        key = topic.name, index
        if self._directory.recovery_point(key) > partition.log.synced_offset:  # what comes there next is not synced
            self._directory.recovery_point_moved(key, partition.log.synced_offset)
            self._directory.write_checkpoints()
        partition.reload(lost=True)

    def _missed_from(self, topic: Topic, index: int) -> int:
        return self.metadata.followers.missed_from(topic.topic_id, topic.partitions[index])

    def _lose(self, topic: Topic, index: int) -> None:
        """Another replica leads, and that is durable: lose what it does not have.

        Not before: who finds the leader of before after a crash must find its records too.
        """
        end_offset = self._missed_from(topic, index)
        if end_offset == NO_CEILING:  # the lead has moved on in the same turn
            return
        try:
            if end_offset < self.end_of(topic, index):
                self.cut(topic, index, end_offset)
        except (KafkaError, OSError, StorageError) as error:
            logger.error("%s-%d keeps what its leader has missed, for it cannot be cut: %s", topic.name, index, error)
        self.metadata.followers.lost(topic.topic_id, topic.partitions[index], end_offset)
        partition = self._open.get((topic.topic_id, index))
        if partition is not None:
            partition.configure(topic, self.metadata)

    def follow_again(self) -> None:
        """Followers have begun or ceased to lag: each partition looks how far its high watermark may get."""
        for partition in self.opened():
            topic = self.metadata.topics_by_id.get(partition.topic.topic_id)
            if topic is not None:
                partition.configure(topic, self.metadata)

    def has(self, topic: Topic, index: int) -> bool:
        """Whether a partition is open or has files, without making them."""
        return (topic.topic_id, index) in self._open or self._directory.exists(topic.name, index)

    def size(self, name: str, index: int) -> int:
        """Bytes of a partition's log, whether it is open or not."""
        log = self._directory.logs.get((name, index))
        return log.size_bytes if log is not None else self._directory.size_on_disk(name, index)

    def opened(self) -> list[Partition]:
        """The open partitions."""
        return list(self._open.values())

    def close(self, deadline_ms: int) -> None:
        """Close all partitions with their logs; after the deadline (of the monotonic clock) without a snapshot."""
        clock = self._turn.env.clock
        for partition in self._open.values():
            partition.close(clean=clock.monotonic_ms() < deadline_ms)

    def _topic_changed(self, event: str, topic: Topic, moved: int) -> None:
        """Follow a change of metadata. What cannot be undone waits until the change is durable."""
        flush_state = self._metadata_shard.flush_state
        if event == "deleted":
            self._doomed[topic.name] = self._doomed.get(topic.name, 0) + 1
            flush_state.then(lambda durable: self._drop_topic(topic, durable=durable))
        elif event != "created":
            if event == "configured":
                self._directory.configure(self.metadata, topic)
            for index in range(len(topic.partitions)) if event == "configured" else (moved,):
                partition = self._open.get((topic.topic_id, index))
                if partition is not None:
                    partition.configure(topic, self.metadata)
            if event == "moved" and self._missed_from(topic, moved) != NO_CEILING:
                flush_state.then(lambda durable: self._lose(topic, moved) if durable else None)
            if event == "moved" and topic.internal:
                flush_state.then(lambda durable: self._internal.shard_moved(topic, moved) if durable else None)

    def _drop_topic(self, topic: Topic, *, durable: bool = True) -> None:
        """Remove the files of a topic whose deletion is durable. Until then no partition of its name is opened."""
        try:
            if durable:
                for index in range(len(topic.partitions)):
                    self._drop_partition(topic, index)
                self._directory.write_checkpoints()
                for call in self.dropped:
                    call(topic.name)
        except (OSError, StorageError) as error:
            logger.error("cannot remove the files of topic %s, will try again: %s", topic.name, error)
            self._turn.timers.at(self._turn.steady_ms + RETRY_MS, lambda due_ms, now_ms: self._drop_topic(topic))
        else:
            self._doomed[topic.name] -= 1
            if not self._doomed[topic.name]:
                del self._doomed[topic.name]

    def _drop_partition(self, topic: Topic, index: int) -> None:
        partition = self._open.pop((topic.topic_id, index), None)
        self.metadata.followers.forget(topic.topic_id, index)
        if partition is None:
            self._directory.delete(topic.name, index)
            return
        self._turn.durability.forget(partition.flush_state)
        partition.delete()
        self._directory.forget(topic.name, index)

    def _metadata_reloaded(self) -> None:
        """The metadata was reloaded: remove partitions that are not in it any more, configure the others."""
        self.metadata.listeners.append(self._topic_changed)
        for name in {name for name, _ in self._directory.logs}:
            if (topic := self.metadata.topics.get(name)) is not None:
                self._directory.configure(self.metadata, topic)
        for (topic_id, index), partition in list(self._open.items()):
            topic = self.metadata.topics_by_id.get(topic_id)
            if topic is not None and index < len(topic.partitions):
                partition.configure(topic, self.metadata)
                continue
            try:
                self._drop_partition(partition.topic, index)
            except (OSError, StorageError) as error:
                logger.error("cannot remove the files of %s: %s", partition, error)
