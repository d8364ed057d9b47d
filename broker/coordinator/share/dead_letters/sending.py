"""Sending: writes letters to the queue of a group, batch after batch, each when the one before it is durable.

A queue that does not exist is made first, where that is allowed. A partition of the queue without a leader is tried
again, MOST_TRIES times in all, 1 s, 2 s, 4 s and 8 s later by the cluster's clock; so is a fault that stands for a lost
connection. Anything else that goes wrong ends it at once: the letters that are left are not written, an error in the
log says why, and their records are archived all the same, as in Kafka.

Source: KIP-1191; Kafka's ShareGroupDLQStateManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.cluster.metadata_plans import check_new_name, create_default_topic
from broker.coordinator.share.dead_letters.addressee import CONFIGS, objection, queue_of, wants_copies
from broker.coordinator.share.dead_letters.letter import Letter, Original, Sender, next_batch, no_copy
from broker.coordinator.share.dead_letters.originals import Originals
from broker.partitions.incoming_batch import ClientBatch
from broker.turn.executor import append
from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.topics import Topic
    from broker.coordinator.runtime import Shard
    from broker.coordinator.share.state import Key
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn

logger = logging.getLogger("momus.share")

MOST_TRIES: Final = 5
FIRST_WAIT_MS: Final = 1000  # doubled with each try
REPLICAS_MS: Final = 30_000  # for which in-sync replicas that lag are waited for, as for acks=all
TRIED_AGAIN: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)


class Watch(Protocol):
    """Who watches over what the broker writes by itself."""

    def letter_fault(self, group_id: str, queue: str, partition: int) -> ErrorCode | None:
        """The error that a test wants a write to this queue to meet; None: none."""

    def letters_written(self, place: QueuePartition, batch: bytes, first: int, error: KafkaError | None) -> None:
        """A batch is in a queue, from this offset on; or it was refused, and may be tried again."""


class Office:
    """What all sendings use."""

    __slots__ = ("metadata_shard", "partitions", "turn", "watch")

    def __init__(self, turn: Turn, metadata_shard: Shard, partitions: Partitions, watch: Watch) -> None:
        self.turn = turn
        self.metadata_shard = metadata_shard
        self.partitions = partitions
        self.watch = watch

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""
        metadata: ClusterMetadata = self.metadata_shard.machine
        return metadata


class QueuePartition(NamedTuple):
    """A partition of a queue, and the node that leads it; -1: none."""

    topic: str
    partition: int
    leader: int


class Filled(NamedTuple):
    """A batch, how many records it has, and the letters that are left after it."""

    data: bytes
    total: int
    left: list[Letter]


class Wait(NamedTuple):
    """A batch that is in the log of the queue, from an offset on."""

    partition: Partition
    first: int
    filled: Filled


class Sending:
    """Letters of one share partition on their way. `ended` is called once, when they are durable or given up."""

    def __init__(self, office: Office, key: Key, letters: Sequence[Letter], ended: Callable[[], None]) -> None:
        self._office = office
        self._key = key
        self._ended = ended
        self._left = sorted(letters)
        self._original: Original | None = None
        self._tries = 0
        self._filled: Filled | None = None  # the batch that is tried
        self._waits_for: Wait | None = None
        self._alarm = 0

    def go_on(self) -> None:
        """Write the next batch, or first make the queue."""
        office = self._office
        office.turn.begin()
        try:
            metadata = office.metadata
            why = objection(metadata, self._key.group_id)
            if why is not None:
                self._give_up(why)
                return
            name = queue_of(metadata, self._key.group_id)
            topic = metadata.topics.get(name)
            if topic is None:
                self._make(name)
            else:
                self._write(topic)
        except KafkaError as error:
            self._tries += 1
            if error.code in TRIED_AGAIN and self._tries < MOST_TRIES:
                due_ms = office.turn.steady_ms + (FIRST_WAIT_MS << (self._tries - 1))
                office.turn.timers.at(due_ms, lambda due_ms, now_ms: self.go_on(), is_deadline=True)
            else:
                self._give_up(f"{ErrorCode(error.code).name}: {error.message}")
        except (StorageError, OSError) as error:
            self._give_up(str(error))

    def _make(self, name: str) -> None:
        """Make the queue; go on when it is durable. Errors: KafkaError, StorageError."""
        office = self._office
        check_new_name(office.metadata, name)
        _, records = create_default_topic(office.metadata, office.turn.env.rng, name, configs=CONFIGS)
        office.metadata_shard.append([(None, value) for value in records])
        office.metadata_shard.flush_state.then(self._made)

    def _made(self, durable: bool) -> None:
        if durable:
            self.go_on()
        else:
            self._give_up("the queue could not be made: the log of the metadata could not be written")

    def _write(self, topic: Topic) -> None:
        """Append one batch, and wait until it is readable. Errors: KafkaError, StorageError, OSError."""
        office = self._office
        filled = self._filled = self._filled or self._fill(topic)
        index = self._key.partition % len(topic.partitions)
        place = QueuePartition(topic.name, index, topic.partitions[index].leader)
        try:
            partition, first = self._append(topic, place, filled.data)
        except KafkaError as error:
            office.watch.letters_written(place, filled.data, -1, error)
            raise
        office.watch.letters_written(place, filled.data, first, None)
        wait = self._waits_for = Wait(partition, first, filled)
        partition.watch(self, committed=False)
        partition.flush_state.then(partial(self._settled, wait))

    def _fill(self, topic: Topic) -> Filled:
        """The next batch for the queue. Errors: KafkaError."""
        office, key = self._office, self._key
        source = office.metadata.topics_by_id.get(key.topic_id)
        if source is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "the topic of the records has been deleted")
        most_bytes = int(str(office.metadata.value(topic, "max.message.bytes")))
        if self._original is None:
            self._original = no_copy
            if wants_copies(office.metadata, key.group_id):
                partition = office.partitions.get(source, key.partition)
                self._original = Originals(partition, max(each.last for each in self._left), most_bytes)
        sender = Sender(key.group_id, source.name, key.partition)
        return Filled(*next_batch(sender, self._left, self._original, most_bytes, office.turn.now_ms))

    def _append(self, topic: Topic, place: QueuePartition, data: bytes) -> tuple[Partition, int]:
        """Append as a Produce with acks=all does. Returns the partition, and the offset. Errors: see `_write`."""
        office, turn = self._office, self._office.turn
        code = office.watch.letter_fault(self._key.group_id, place.topic, place.partition)
        if code is not None:
            raise KafkaError(code, "a fault is set")
        if place.leader < 0:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"no replica of {place.topic}-{place.partition} leads")
        partition = office.partitions.led(topic, place.partition, place.leader)
        partition.before_write()
        batch = ClientBatch(data)
        partition.decide(batch, turn.now_ms)
        append(partition, batch, turn.now_ms, turn.durability)
        return partition, batch.base_offset

    def _settled(self, wait: Wait, durable: bool) -> None:
        """The batch is durable, or was thrown away."""
        if self._waits_for is not wait:
            return  # it is readable already, or the queue was deleted
        if not durable:
            self._stop_waiting(wait)
            self._give_up(f"the log of {wait.partition} could not be written")
            return
        self.poll()
        if self._waits_for is wait:  # in-sync replicas lag
            turn = self._office.turn
            self._alarm = turn.timers.at(turn.steady_ms + REPLICAS_MS, lambda due_ms, now_ms: self._expire(wait))

    def poll(self) -> None:
        """The high watermark of the queue has moved, or the partition is closed."""
        wait = self._waits_for
        assert wait is not None
        partition = wait.partition
        if partition.closed:
            self._stop_waiting(wait)
            if partition.topic.topic_id not in self._office.metadata.topics_by_id:  # else the broker ends: see post.py
                self._give_up(f"the topic of {partition} was deleted")
        elif partition.high_watermark >= wait.first + wait.filled.total:
            self._stop_waiting(wait)
            self._left, self._filled, self._tries = wait.filled.left, None, 0
            if self._left:  # between turns: there may be thousands of large records
                self._office.turn.jobs.add(self._rest())
            else:
                self._ended()

    def _expire(self, wait: Wait) -> None:
        self._stop_waiting(wait)
        self._give_up(f"REQUEST_TIMED_OUT: in-sync replicas of {wait.partition} lag")

    def _stop_waiting(self, wait: Wait) -> None:
        self._waits_for = None
        self._office.turn.timers.cancel(self._alarm)
        wait.partition.unwatch(self)

    def _rest(self) -> Iterator[None]:
        yield from ()
        self.go_on()

    def _give_up(self, why: str) -> None:
        key, source = self._key, self._office.metadata.topics_by_id.get(self._key.topic_id)
        first, last = self._left[0].first, self._left[-1].last
        logger.error(
            "group %s: offsets %d to %d of %s-%d are archived without a record in the dead-letter queue: %s",
            *(key.group_id, first, last, key.topic_id.hex() if source is None else source.name, key.partition, why),
        )
        self._ended()
