"""The live share partitions of the process: made from the stored state at their first use, with locks that expire.

Every change is decided on the live state, appended to the share coordinator's log, and only then followed by the start
offset. A reply that tells of it waits until it is durable (Durability.unsettled_shards). If a log fails, the live
states that it stores are forgotten, and made again from what is durable. They stay when the log gets another leader.

Locks go by the steady clock, so that a moved test clock expires them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.coordinator.share.acknowledge import Acknowledgement, apply, decide
from broker.coordinator.share.coordinator import ShareCoordinator
from broker.coordinator.share.dead_letters.addressee import has_queue
from broker.coordinator.share.dead_letters.letter import REJECTED, TOO_OFTEN, Letter
from broker.coordinator.share.in_flight import ARCHIVING
from broker.coordinator.share.limits import Limits
from broker.coordinator.share.lost import without_lost
from broker.coordinator.share.sessions import ShareSessions
from broker.coordinator.share.share_partition import SharePartition
from broker.coordinator.share.start import start_offset
from broker.coordinator.share.state import NOT_STARTED, Key
from broker.coordinator.written import Records, ShareUpdate
from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.topics import Topic
    from broker.config.settings import BrokerConfig
    from broker.coordinator.runtime import Shard
    from broker.coordinator.share.combine import StateBatch
    from broker.coordinator.share.dead_letters.post import Post
    from broker.coordinator.share.dead_letters.sending import Watch
    from broker.coordinator.share.in_flight import Delivery
    from broker.partitions.table import Partitions
    from broker.partitions.waiters import Waiter
    from broker.turn.flush_state import FlushState
    from broker.turn.turn import Turn
    from broker.turn.write import Write

logger = logging.getLogger("momus.share")


class LivePartition:
    """A share partition with its alarm, and the parked fetches that wait for records to be given back."""

    __slots__ = ("alarm", "alarm_ms", "gone", "index", "key", "state", "waiters")

    def __init__(self, key: Key, index: int, state: SharePartition) -> None:
        self.key = key
        self.index = index  # of its shard
        self.state = state
        self.alarm = 0  # the number of its timer, set while alarm_ms is not None
        self.alarm_ms: int | None = None
        self.waiters: dict[Waiter, None] = {}
        self.gone = False


class SharePartitions:
    """Share partition -> its live state, and the share sessions."""

    def __init__(
        self,
        turn: Turn,
        config: BrokerConfig,
        metadata_shard: Shard,
        partitions: Partitions,
        coordinator: ShareCoordinator,
        watch: Watch,
    ) -> None:
        self._watch = watch
        self.coordinator = coordinator
        self.sessions = ShareSessions(config.group_share_max_share_sessions)
        self._turn = turn
        self._config = config
        self._metadata_shard = metadata_shard
        self._partitions = partitions
        self._live: dict[Key, LivePartition] = {}
        self._post: Post | None = None
        coordinator.reloaded.append(self._drop)

    def start(self) -> None:
        """Follow the metadata: deleted topics, and leaders that move."""
        self.metadata.listeners.append(self._topic_changed)
        self._metadata_shard.when_reloaded.append(self.start_again)

    def start_again(self) -> None:
        """The metadata was reloaded: follow the new object."""
        self.metadata.listeners.append(self._topic_changed)

    @property
    def post(self) -> Post:
        """The letters on their way to dead-letter queues; made when first needed."""
        if self._post is None:
            # 4 ms: most groups have no such queue
            from broker.coordinator.share.dead_letters.post import Post
            from broker.coordinator.share.dead_letters.sending import Office

            office = Office(self._turn, self._metadata_shard, self._partitions, self._watch)
            self._post = Post(office, self._archive)
        return self._post

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""
        metadata: ClusterMetadata = self._metadata_shard.machine
        return metadata

    def limits(self, group_id: str) -> Limits:
        """The settings of a group."""
        metadata = self.metadata
        if group_id not in metadata.group_configs:
            config = self._config
            return Limits(
                config.group_share_delivery_count_limit,
                config.group_share_partition_max_record_locks,
                config.group_share_record_lock_duration_ms,
            )
        return Limits(
            int(self.value(group_id, "share.delivery.count.limit")),
            int(self.value(group_id, "share.partition.max.record.locks")),
            int(self.value(group_id, "share.record.lock.duration.ms")),
            bool(self.value(group_id, "share.renew.acknowledge.enable")),
            has_queue(metadata, group_id),
        )

    def value(self, group_id: str, key: str) -> int | str:
        """A setting of the group."""
        found = self.metadata.group_value(group_id, key)
        assert isinstance(found, (int, str))
        return found

    # -- live states

    def get(self, group_id: str, topic: Topic, index: int) -> LivePartition:
        """The share partition; made from its stored state at its first use.

        Errors:  COORDINATOR_NOT_AVAILABLE; UNKNOWN_SERVER_ERROR: the group has no state for it; NOT_LEADER_OR_FOLLOWER:
                 a later leader has it; OFFSET_NOT_AVAILABLE (start.py); those of Partitions.get.
        """
        key = Key(group_id, topic.topic_id, index)
        live = self._live.get(key)
        if live is None:
            state = self._load(key, topic, index)
            live = self._live[key] = LivePartition(key, self.coordinator.index_of(key), state)
            archiving = state.archiving()
            if archiving:
                flush_state = self.coordinator.shard_at(live.index).flush_state
                self.post.resume(key, archiving, self.limits(group_id).most_deliveries, flush_state)
        return live

    def _load(self, key: Key, topic: Topic, index: int) -> SharePartition:
        shard = self.coordinator.shard(key)
        stored = shard.machine.states.get(key)
        if stored is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        leader_epoch = topic.leader_epoch(index)
        if stored.leader_epoch > leader_epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        start = stored.start_offset
        if start == NOT_STARTED:
            reset = str(self.value(key.group_id, "share.auto.offset.reset"))
            start = start_offset(self._partitions.get(topic, index), reset, self._turn.now_ms)
        if stored.leader_epoch != leader_epoch:
            count = stored.delivery_complete_count
            self._append(key, shard, leader_epoch, stored.start_offset, count, ())
        return SharePartition.from_state(stored, start, leader_epoch)

    def known(self, group_id: str, topic_id: bytes, index: int) -> LivePartition | None:
        """The share partition, if it is in use."""
        return self._live.get(Key(group_id, topic_id, index))

    # -- changes

    def acknowledge(
        self,
        live: LivePartition,
        member: str,
        acknowledgements: Sequence[Acknowledgement],
        limits: Limits,
        released: list[Delivery] | None = None,
    ) -> None:
        """Take a member's acknowledgements, all or none. `released`: gets what is available after `make_available`.

        Errors:  INVALID_RECORD_STATE, INVALID_REQUEST, COORDINATOR_NOT_AVAILABLE.
        """
        shard = self.coordinator.shard_at(live.index)
        changes = decide(live.state, limits, member, self._turn.steady_ms + limits.lock_ms, acknowledgements)
        stored = apply(live.state, changes, released)
        letters = [
            Letter(first, last, delivery.count, REJECTED if is_rejected else TOO_OFTEN)
            for first, last, delivery, state, is_rejected in changes
            if state == ARCHIVING
        ]
        self._store(live, shard, stored, letters)
        self.settle(live)

    def release(self, group_id: str, member: str, places: Iterable[tuple[bytes, int]]) -> None:
        """A session has ended: give back what the member has acquired."""
        for topic_id, index in places:
            live = self._live.get(Key(group_id, topic_id, index))
            if live is not None:
                self._give_back(live, live.state.release(member, self.limits(group_id)))

    def _expire(self, live: LivePartition, now_ms: int) -> None:
        """Locks have expired."""
        live.alarm_ms = None
        if not live.gone:
            self._give_back(live, live.state.expire(now_ms, self.limits(live.key.group_id)))

    def _give_back(self, live: LivePartition, batches: Sequence[StateBatch]) -> None:
        """Store what was given back. If it cannot be stored, it is given back all the same, as in Kafka."""
        if batches:
            letters = [
                Letter(first, last, count, TOO_OFTEN) for first, last, state, count in batches if state == ARCHIVING
            ]
            try:
                self._store(live, self.coordinator.shard_at(live.index), batches, letters)
            except KafkaError as error:
                logger.warning("records given back are not stored: %s: %s", live.key.text, error.message)
                live.state.move_start()
        self.settle(live)

    def _store(
        self, live: LivePartition, shard: Shard, batches: Sequence[StateBatch], letters: Sequence[Letter] = ()
    ) -> None:
        """Append states, then move the start offset, and send letters to the group's dead-letter queue.

        Errors:  COORDINATOR_NOT_AVAILABLE: the log cannot be written.
        """
        if not batches:
            return
        state = live.state
        self._append(live.key, shard, state.leader_epoch, state.start_offset, state.complete_count, batches)
        state.move_start()
        if letters:
            self.post.send(live.key, letters, shard.flush_state)

    def _archive(self, key: Key, letters: Sequence[Letter], then: Callable[[bool], None]) -> None:
        """These are in the dead-letter queue, or given up: archive the records, whether the partition is in use or not.

        `then(True)` when that is durable, or there is nothing to archive; `then(False)`: the log still says ARCHIVING.
        """
        try:
            shard = self.coordinator.shard(key)
            live, stored = self._live.get(key), shard.machine.states.get(key)
            if live is not None:
                self._store(live, shard, live.state.end_archiving(letters))
                self.settle(live)
            elif stored is not None:
                made = SharePartition.from_state(stored, stored.start_offset, stored.leader_epoch)
                batches = made.end_archiving(letters)
                if batches:
                    self._append(key, shard, made.leader_epoch, made.start_offset, made.complete_count, batches)
        except (KafkaError, OSError, StorageError) as error:
            logger.error("records of %s are not archived, will try again: %s", key.text, error)
            then(False)
        else:
            shard.flush_state.then(then)
            self._turn.touch(shard.flush_state)

    def _append(
        self,
        key: Key,
        shard: Shard,
        leader_epoch: int,
        start: int,
        count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        machine = shard.machine
        record = machine.written(key, leader_epoch, start, count, batches, self._turn.now_ms)
        write: Write = Records([record])
        if machine.takes_update(key):
            write = ShareUpdate(record, key, leader_epoch, start, count, batches)
        try:
            shard.write(write)
        except StorageError as error:  # the shard was reloaded, and this state forgotten
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    def settle(self, live: LivePartition) -> None:
        """After a change: set the alarm of the next lock, and let parked fetches look again.

        An alarm that would ring too early stays: when it rings, it is set anew.
        """
        due_ms = live.state.next_deadline_ms
        if due_ms is not None and (live.alarm_ms is None or due_ms < live.alarm_ms) and not live.gone:
            if live.alarm_ms is not None:
                self._turn.timers.cancel(live.alarm)
            live.alarm_ms = due_ms
            live.alarm = self._turn.timers.at(due_ms, lambda _, now_ms: self._expire(live, now_ms), is_deadline=True)
        self.poll(live)

    @staticmethod
    def poll(live: LivePartition) -> None:
        """Let the parked fetches look again, oldest first."""
        for wait in list(live.waiters):
            wait.poll()

    def without_lost(self, failed: FlushState) -> Callable[[Any, Any], None] | None:
        """What takes out of a response to a request what a log that has failed stores; None: that is nothing."""
        is_lost = self.coordinator.stored_in(failed)
        return None if is_lost is None else partial(without_lost, is_lost=is_lost)

    # -- sessions

    def end_session(self, node_id: int, group_id: str, member: str) -> bool:
        """End a member's session, and give back what it has acquired. Whether there was one."""
        session = self.sessions.remove(node_id, group_id, member)
        if session is None:
            return False
        self.release(group_id, member, list(session.partitions))  # a parked fetch that gets them changes their order
        return True

    def disconnected(self, connection: object) -> None:
        """A connection is closed: its sessions end, and share partitions that nobody reads any more are forgotten."""
        for node_id, group_id, member in self.sessions.of_connection(connection):
            self.end_session(node_id, group_id, member)
            if not self.sessions.has_members(group_id):
                self.drop_group(group_id)

    def clear(self) -> None:
        """Share groups were switched off: end all sessions, and forget all share partitions."""
        self.sessions.clear()
        self._drop(lambda key: True)

    # -- forgetting

    def drop(self, keys: Container[Key]) -> None:
        """Forget some share partitions: their state begins again."""
        self._drop(lambda key: key in keys)

    def drop_group(self, group_id: str) -> None:
        """Forget the share partitions of a group."""
        self._drop(lambda key: key.group_id == group_id)

    def _topic_changed(self, event: str, topic: Topic, index: int) -> None:
        """Forget the share partitions of a deleted topic, or of a partition that another node leads."""
        if event == "deleted":
            self._drop(lambda key: key.topic_id == topic.topic_id)
            flush_state = self._metadata_shard.flush_state
            flush_state.then(lambda durable: self.coordinator.forget_gone_topics() if durable else None)
        elif event == "moved":
            self._drop(lambda key: key.topic_id == topic.topic_id and key.partition == index)

    def _drop(self, concerns: Callable[[Key], bool]) -> None:
        for key in [key for key in self._live if concerns(key)]:
            live = self._live.pop(key)
            live.gone = True
            if live.alarm_ms is not None:
                self._turn.timers.cancel(live.alarm)
            self.poll(live)
