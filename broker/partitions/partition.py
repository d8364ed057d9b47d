"""One topic-partition: append, high watermark, idempotent producers, and the fetches that wait for records.

Durable: nothing, until FlushState has flushed (or synced) the log and called `advance`. Only that moves the high
watermark, and no reader gets a record at or above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker.partitions.incoming_batch import ClientBatch, Marker, stamp
from broker.partitions.producer_files import ProducerFiles, replay_log
from broker.partitions.producer_table import ProducerSnapshot, add_to_sequence
from broker.partitions.producer_undo import forget_below
from broker.partitions.producers import STABLE, Producers
from broker.partitions.record_rules import TopicRules
from broker.partitions.waiters import Waiter, poll_all
from broker.turn.executor import append
from broker.turn.flush_state import Owner
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.topics import Topic, TopicPartition
    from broker.turn.write import Write
    from storage.files.env import Files
    from storage.files.errors import StorageError
    from storage.log.log import Log
    from storage.segments.transaction_index import Markers

SNAPSHOT_EVERY_BYTES: Final = 16 * 1024 * 1024  # bounds how much a start after a crash reads again
SNAPSHOT_BYTES_A_PRODUCER: Final = 400  # eight times its size in a snapshot: with many producers, fewer snapshots


class Partition(Owner):
    """A partition and its log. Timestamps are Unix milliseconds."""

    __slots__ = (
        "_appended_at_snapshot",
        "_files",
        "_followed_offset",
        "_held_offset",
        "_leader",
        "_plain",
        "_producers",
        "_producers_before",
        "_stable_seen",
        "appended_bytes",
        "ceiling",
        "closed",
        "high_watermark",
        "index",
        "info",
        "is_behind",
        "is_held",
        "metadata_version",
        "rules",
        "stable_waiters",
        "topic",
        "waiters",
    )

    def __init__(self, topic: Topic, index: int, log: Log, metadata: ClusterMetadata, files: Files) -> None:
        self.index, self.log = index, log
        self._leader = -1
        self.high_watermark = log.end_offset
        self.waiters: dict[Waiter, None] = {}  # parked fetches, oldest first, and acks=all
        self.stable_waiters: dict[Waiter, None] = {}  # parked fetches of committed records only
        # the last stable offset at their last poll; where the high watermark would be without the ceiling
        self._stable_seen, self._held_offset = -1, 0
        self._producers: Producers | None = None
        self.configure(topic, metadata)
        self.appended_bytes = self._appended_at_snapshot = 0  # since this object was made
        self.closed = False
        self._producers_before: Producers | None = None  # their state before a failed write
        self._plain = not log.end_offset  # the log was empty: there is no producer state to load
        self._followed_offset = -1  # how far a log that a shard writes was read for producers
        self._files = ProducerFiles(files, log)
        log.when_compacted = self._compacted

    def configure(self, topic: Topic, metadata: ClusterMetadata) -> None:
        """Take over the topic's present metadata. Callers compare `metadata_version` first."""
        config = metadata.config
        self.metadata_version = metadata.version
        self.topic = topic
        self.info: TopicPartition = topic.partitions[self.index]
        if self.log.leader_epoch != self.info.leader_epoch:
            self.log.set_leader_epoch(self.info.leader_epoch)
        self.rules = TopicRules(
            lambda key: metadata.value(topic, key),
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            max_inflated_bytes=config.decompression_max_bytes,
            producer_state=config.producer_state,
        )
        least = metadata.value(topic, "min.insync.replicas")
        self.is_held, self.is_behind, self.ceiling = metadata.followers.limits(
            topic.topic_id, self.info, least, self.high_watermark, self.log.end_offset
        )
        if self._held_offset > self.high_watermark:
            self.advance(self._held_offset)
        if self._leader != self.info.leader:
            self._leader = self.info.leader
            self.wake()  # parked fetches now wait at the wrong node

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.index}"

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read: what is below it was deleted."""
        return self.log.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        """Below this offset every transaction has ended, and its marker is durable."""
        producers = self._producers
        if producers is None:
            if self._plain and self.flush_state.owner is self:
                return self.high_watermark
            producers = self.producers
        if self._followed_offset >= 0:
            self._follow(producers)
        unstable = producers.unstable  # no min(): each Fetch of committed records asks for this
        return self.high_watermark if unstable >= self.high_watermark else max(unstable, self.log.log_start_offset)

    def aborted_transactions(self, from_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that touch the range."""
        aborted = None if self._producers is None else self._producers.aborted
        return aborted.overlapping(from_offset, end_offset) if aborted else []

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has written here in its present transaction."""
        return not self._plain and self.producers.has_open_transaction(producer_id, producer_epoch)

    def check_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Errors: INVALID_PRODUCER_EPOCH: a higher epoch of the producer has written here, or ended a transaction."""
        if not self._plain:
            self.producers.check_epoch(producer_id, producer_epoch)

    def decide(self, batch: ClientBatch, now_ms: int) -> bool:
        """Whether a client's batch is to be written; if not, it repeats an earlier one and is answered as that was.

        Errors:  those of incoming_batch.stamp, then those of Producers.decide.
        """
        stamp(batch, self.rules, now_ms, self)
        batch.producers = None
        if batch.producer_id < 0 or self._followed_offset >= 0:
            return True
        batch.producers = producers = self._producers or self.producers
        batch.last_sequence = add_to_sequence(batch.base_sequence, batch.last_delta)
        repeated = producers.decide(
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_sequence,
            transactional=batch.transactional,
            begins_at_zero=batch.begins_at_zero and batch.transactional,
        )
        if repeated is None:
            return True
        batch.base_offset, batch.append_ms = repeated.base_offset, repeated.timestamp_ms
        return False

    def not_written(self, write: Write, error: StorageError) -> None:
        """An append has failed."""
        if isinstance(write, ClientBatch):
            write.refused(self, error)

    def before_write(self) -> None:
        """Check that a write with acks=all may be made. Errors: NOT_ENOUGH_REPLICAS."""
        if self.is_held:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Fewer replicas are in sync than the minimum.")

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        now_ms: int,
        transaction_version: int,
    ) -> None:
        """End a producer's transaction here, however many replicas are in sync. The caller has it written.

        Errors:  INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: see Producers.check_marker.
        """
        self.producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
        append(self, Marker(producer_id, producer_epoch, coordinator_epoch, commit=commit), now_ms, None)

    # ---------------------------------------------------------------- durability

    def advance(self, durable_offset: int) -> None:
        """Everything below this offset is durable: readers may see it, as far as enough replicas have it."""
        if durable_offset > self.ceiling:
            self._held_offset = durable_offset
            durable_offset = self.ceiling
        if durable_offset > self.high_watermark:
            self.high_watermark = durable_offset
            producers = self._producers
            if producers is not None:
                if producers.undo:
                    forget_below(producers.undo, durable_offset)
                if producers.unstable != STABLE:
                    producers.settle(durable_offset)
            if self.waiters:
                poll_all(self.waiters, self.log)
            if self.stable_waiters:
                stable = self.last_stable_offset
                if stable != self._stable_seen:
                    self._stable_seen = stable
                    poll_all(self.stable_waiters, self.log)

    def watch(self, wait: Waiter, *, committed: bool) -> None:
        """Poll the fetch when there is more to read for it."""
        if committed:
            self._stable_seen = self.last_stable_offset
            self.stable_waiters[wait] = None
        else:
            self.waiters[wait] = None

    def unwatch(self, wait: Waiter) -> None:
        """The fetch has been answered, or its connection is closed."""
        self.waiters.pop(wait, None)
        self.stable_waiters.pop(wait, None)

    def wake(self) -> None:
        """Poll all parked fetches: the partition has changed or was closed."""
        poll_all({**self.waiters, **self.stable_waiters}, self.log)

    def reload(self, *, lost: bool = False) -> None:
        """The log was cut back: load the producer state again. `lost`: durable records too, so nothing is recalled."""
        if self._producers is not None and not lost:
            self._producers.revert(self.log.end_offset)
            self._producers_before = self._producers
        self._producers = None
        self._files.remove_after(self.log.end_offset)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        self._held_offset = min(self._held_offset, self.log.end_offset)
        self.log.set_leader_epoch(self.info.leader_epoch)  # the record of its start may have been cut off
        self.wake()

    def close(self, *, clean: bool = True) -> None:
        """Close the log. Parked fetches notice it when they are polled."""
        if not self.closed:
            self.closed = True
            self.wake()
            if clean and self.flush_state.owner is self:
                self.take_snapshot()
            self.log.close(clean=clean)

    def delete(self) -> None:
        """The topic was deleted: remove all files of this partition."""
        if not self.closed:
            self.closed = True
            self.wake()
        self.log.delete()

    # ---------------------------------------------------------------- producers

    @property
    def producers(self) -> Producers:
        """The producer state, loaded when first needed: many partitions never have an idempotent producer."""
        producers = self._producers
        if producers is None:
            batches = self.rules.keeps_batches
            plain = self._plain and self.flush_state.owner is self
            producers = Producers(batches=batches) if plain else self._files.load(batches=batches)
            producers.settle(self.high_watermark)
            self._plain = False
            if self._producers_before is not None:
                producers.recall(self._producers_before)
                self._producers_before = None
            if self.flush_state.owner is not self:
                self._followed_offset = self.log.flushed_offset
            else:
                producers.undo = []
            self._producers = producers
        return producers

    def known_producers(self) -> Iterator[ProducerSnapshot]:
        """The state of each producer, by rising id."""
        producers = self.producers
        if self._followed_offset >= 0:
            self._follow(producers)
        return producers.snapshot()

    def _follow(self, producers: Producers) -> None:
        """Replay what a shard has appended to its log."""
        if self._followed_offset < self.high_watermark:
            replay_log(producers, self.log, self._followed_offset, self.high_watermark)
            producers.settle(self.high_watermark)
            self._followed_offset = self.high_watermark

    def take_snapshot(self) -> bool:
        """Write a producer snapshot beside the log. False: it exists already, or cannot be written now."""
        return bool(list(self._save()))

    def _save(self) -> Iterator[None]:
        producers = self.producers
        appended_bytes = self.appended_bytes
        for _ in self._files.save(producers):
            yield
            if self._producers is not producers or self.log.broken:
                return  # the log was cut back or deleted meanwhile
        self._appended_at_snapshot = appended_bytes

    def clean(self, now_ms: int, limit_offset: int) -> Iterator[None]:
        """Compact the log below an offset, at most the last stable one, in steps of a few milliseconds."""
        return self.log.clean(now_ms, limit_offset, last_batch_of=lambda pid: self.producers.table.last_batch_of(pid))

    def _compacted(self, base_offset: int, end_offset: int, markers: Markers) -> None:
        if self._producers is not None:
            self._producers.aborted.keep(base_offset, end_offset, markers)

    def maintenance(self, now_ms: int, limit_offset: int | None = None) -> Iterator[None]:
        """Retention below the limit (the high watermark), expiry of producers and their snapshot, in small steps."""
        limit = self.high_watermark if limit_offset is None else limit_offset
        # producers are loaded before the records go that tell of them
        if self.log.retain(now_ms, limit, lambda: self._plain or self.producers):
            self._files.remove_before(self.log.log_start_offset)
            if self._producers is not None:
                self._producers.aborted.drop_before(self.log.log_start_offset)
            yield
        if self._producers is not None and not self.closed:
            for _ in self._producers.expire(now_ms, self.rules.producer_id_expiration_ms):
                yield
        rows = 0 if self._producers is None else len(self._producers.table)
        every = max(SNAPSHOT_EVERY_BYTES, SNAPSHOT_BYTES_A_PRODUCER * rows)
        if self.appended_bytes - self._appended_at_snapshot >= every and not self.closed:
            yield
            if not self.closed:  # else the directory may be that of a topic made anew
                yield from self._save()

    def delete_records(self, offset: int) -> int:
        """Move the log start offset up to `offset` (-1: the high watermark). Answers the new low watermark.

        Errors:  those of TopicRules.check_deletion.
        """
        offset = self.high_watermark if offset == -1 else offset
        self.rules.check_deletion(str(self), offset, self.high_watermark)
        if offset > self.log.log_start_offset:
            if not self._plain and len(self.producers.table):
                self.take_snapshot()  # for a start, which reads the log from its new beginning
            self.log.delete_records_before(offset)
            if self._producers is not None:
                self._producers.aborted.drop_before(offset)
        return self.log.log_start_offset
