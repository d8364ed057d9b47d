"""The shards of the share coordinator: finds the shard of a share partition, reads and writes its state, prunes logs.

Kafka's brokers ask it over the network; here every virtual broker is in the same process, and all of them reach it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from broker.base.placement import shard_index
from broker.cluster.metadata_plans import ensure_internal_topic
from broker.cluster.topic_names import SHARE_STATE_TOPIC
from broker.coordinator.loading import drop_shards, load_shards
from broker.coordinator.runtime import READY, Shard
from broker.coordinator.shard_parts import PartitionLog
from broker.coordinator.share.machine import ShareStateMachine
from broker.coordinator.share.state import NOT_STARTED, Key, ShareState
from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.shard_parts import Answers
    from broker.turn.decision import Record
    from broker.turn.flush_state import FlushState
    from broker.turn.turn import Turn

logger = logging.getLogger("momus.share")

RECORDS_A_BATCH = 1000  # about 100 kB: below every message limit, so that a batch is never split


class ShareCoordinator:
    """One shard for each partition of `__share_group_state`, whichever node leads it."""

    def __init__(
        self, turn: Turn, answers: Answers, config: BrokerConfig, directory: DataDirectory, metadata_shard: Shard
    ) -> None:
        self.turn = turn
        self._answers = answers
        self._config = config
        self._directory = directory
        self._metadata_shard = metadata_shard
        self.shards: list[Shard] = []
        # called after a shard was read again, with a function that says of which share partitions the state is lost
        self.reloaded: list[Callable[[Callable[[Key], bool]], None]] = []
        self._before_moves: dict[int, Mapping[Key, ShareState]] = {}  # shard that moves -> its states until then
        metadata_shard.when_reloaded.append(self._metadata_reloaded)

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""
        metadata: ClusterMetadata = self._metadata_shard.machine
        return metadata

    # -- shards

    def open(self) -> None:
        """Make the shards, if `__share_group_state` exists and they do not."""
        if not self.shards and SHARE_STATE_TOPIC in self.metadata.topics:
            count = self.metadata.internal_partitions(SHARE_STATE_TOPIC)
            self.shards = [self._shard(index) for index in range(count)]

    def _shard(self, index: int) -> Shard:
        source = PartitionLog(self._directory, lambda: self.metadata, SHARE_STATE_TOPIC, index)

        def make_machine() -> ShareStateMachine:
            return ShareStateMachine(index, self._config, self._prune)

        shard = Shard(self.turn, self._answers, f"{SHARE_STATE_TOPIC}-{index}", source, make_machine)
        shard.when_reloaded.append(lambda: self._reloaded(index))
        return shard

    def reload_moved(self, shard: Shard) -> None:
        """Another node gets the log of a shard, all of which is durable: read it again.

        A share partition goes on with its locks if the log says of it what it said before, as in Kafka, where it stays
        with the leader of its records. The new leader may have missed some of the log.
        """
        self._before_moves[shard.machine.index] = shard.machine.states
        shard.reload()

    def _reloaded(self, index: int) -> None:
        before, now = self._before_moves.pop(index, {}), self.shards[index].machine.states

        def is_lost(key: Key) -> bool:
            return self.index_of(key) == index and (key not in before or now.get(key) != before[key])

        for call in self.reloaded:
            call(is_lost)

    def load(self) -> Iterator[None]:
        """Load the shards, one a step: their logs are to be pruned without a request."""
        self.open()
        yield from load_shards(self._directory, SHARE_STATE_TOPIC, self.shards, self._forget_gone)

    def ensure_topic(self) -> None:
        """Make `__share_group_state` when it is first needed."""
        if not self.shards:
            records = ensure_internal_topic(self.metadata, self.turn.env.rng, SHARE_STATE_TOPIC)
            if records:
                self._metadata_shard.append([(None, value) for value in records])
            self.open()

    def _metadata_reloaded(self) -> None:
        if SHARE_STATE_TOPIC not in self.metadata.topics:
            for index in range(len(self.shards)):
                self._reloaded(index)
            drop_shards(self.turn, self._directory, SHARE_STATE_TOPIC, self.shards)

    def index_of(self, key: Key) -> int:
        """The partition of `__share_group_state` that holds a share partition."""
        return shard_index(key.text, len(self.shards))

    def shard(self, key: Key) -> Shard:
        """The loaded shard of a share partition. Errors: COORDINATOR_NOT_AVAILABLE: there is none; see `shard_at`."""
        if not self.shards:
            self.open()
            if not self.shards:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no share partition has been made yet")
        return self.shard_at(self.index_of(key))

    def shard_at(self, index: int) -> Shard:
        """A loaded shard.

        Errors:  COORDINATOR_NOT_AVAILABLE: it is loading, or its log cannot be used. As in Kafka, whose brokers ask the
                 coordinator of each share partition, that is an error of this partition, and the others are served.
        """
        shard = self.shards[index]
        if shard.state is not READY:
            try:
                shard.require()
            except KafkaError as error:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from None
            except (OSError, StorageError) as error:
                logger.error("%s cannot be used: %s", shard, error)
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        return shard

    def stored_in(self, flush_state: FlushState) -> Callable[[Key], bool] | None:
        """Whether a share partition is stored in this log; None: it is the log of something else."""
        for index, shard in enumerate(self.shards):
            if shard.flush_state is flush_state:
                return lambda key: self.index_of(key) == index
        return None

    def state(self, key: Key) -> ShareState | None:
        """What is stored of a share partition. Errors: COORDINATOR_NOT_AVAILABLE."""
        found: ShareState | None = self.shard(key).machine.states.get(key)
        return found

    # -- changes

    def initialize(
        self, starts: Mapping[Key, int], state_epoch: int, then: Callable[[bool], None], *, at_once: bool = False
    ) -> None:
        """Make states; `then(True)` when they are durable. `at_once`: wait for that; an operator sets the start offset.

        A state that is there already begins again, as in Kafka: what it says is forgotten. Unless an operator gives a
        start offset, one of a later group epoch stays as it is: the end of the group's log was lost. Kafka refuses that
        with FENCED_STATE_EPOCH until the group has come to that epoch.
        Errors:  COORDINATOR_NOT_AVAILABLE: a shard is being loaded; nothing was written.
        """
        self.ensure_topic()
        now_ms = self.turn.now_ms
        found = self._by_shard(starts)
        self._append(
            {
                shard: [
                    shard.machine.initialized(key, state_epoch, starts[key], now_ms)
                    for key in keys
                    if (at_once and starts[key] != NOT_STARTED) or shard.machine.may_initialize(key, state_epoch)
                ]
                for shard, keys in found.items()
            },
            then,
            at_once=at_once,
        )

    def delete(self, keys: Iterable[Key], then: Callable[[bool], None]) -> None:
        """Delete states, and wait until that is durable: then `then(True)`.

        Errors:  COORDINATOR_NOT_AVAILABLE: nothing was written.
        """
        self.ensure_topic()
        records = {shard: shard.machine.deleted(found) for shard, found in self._by_shard(keys).items()}
        self._append(records, then, at_once=True)

    def _by_shard(self, keys: Iterable[Key]) -> dict[Any, list[Key]]:
        found: dict[Any, list[Key]] = {}
        for key in keys:
            found.setdefault(self.shard(key), []).append(key)
        return found

    def _append(self, records: Mapping[Any, list[Record]], then: Callable[[bool], None], *, at_once: bool) -> None:
        """Append to several shards; `then` is called once, with whether all of it is durable."""
        waiting = [shard for shard, some in records.items() if some]
        if not waiting:
            then(True)
            return
        waiting.insert(0, self._metadata_shard)  # it may have just got the topic: without it the states are lost
        outcome = [len(waiting), True]

        def settled(durable: bool) -> None:
            outcome[0] -= 1
            outcome[1] = outcome[1] and durable
            if not outcome[0]:
                then(bool(outcome[1]))

        for shard in waiting:
            some = records.get(shard, ())
            for at in range(0, len(some), RECORDS_A_BATCH):
                shard.append(some[at : at + RECORDS_A_BATCH])
        for shard in waiting:
            self._when_durable(shard.flush_state, settled, at_once=at_once)

    def _when_durable(self, flush_state: FlushState, step: Callable[[bool], None], *, at_once: bool) -> None:
        """FlushState.then, or at once when the log is durable or a write makes it so, or a sync if it must be now."""
        if at_once:
            try:
                self.turn.durability.settle_now(flush_state)
            except (OSError, StorageError) as error:
                logger.error("cannot write what was decided: %s", error)
                step(False)  # the log was cut back to what is durable, and these records are gone
                return
        if flush_state.durable_offset >= flush_state.log.end_offset:
            step(True)
        elif at_once:
            step(False)
        elif self.turn.fsync:
            flush_state.then(step)
        else:
            step(self.turn.durability.write_now(flush_state))

    def forget_gone_topics(self) -> None:
        """Delete the state of share partitions whose topics do not exist any more."""
        for shard in self.shards:
            self._forget_gone(shard)

    def _forget_gone(self, shard: Shard) -> None:
        if shard.state is not READY:
            return
        known = self.metadata.topics_by_id
        gone = [key for key in shard.machine.states if key.topic_id not in known]
        for at in range(0, len(gone), RECORDS_A_BATCH):
            shard.append(shard.machine.deleted(gone[at : at + RECORDS_A_BATCH]))

    def _prune(self, index: int, offset: int) -> None:
        """Drop the records of a shard's log below an offset, once all that makes them needless is durable."""
        flush_state = self.shards[index].flush_state
        if flush_state.durable_offset >= flush_state.log.end_offset:
            self._drop_before(index, offset)
        else:
            flush_state.then(lambda durable: self._drop_before(index, offset) if durable else None)

    def _drop_before(self, index: int, offset: int) -> None:
        shard = self.shards[index]
        log = shard.log
        if offset <= log.log_start_offset:
            return
        try:
            log.delete_records_before(offset)
            self._directory.log_start_moved(SHARE_STATE_TOPIC, index, offset)
            self._directory.write_checkpoints()
            log.retain(self.turn.now_ms, shard.flush_state.durable_offset)
        except (OSError, StorageError) as error:
            logger.error("cannot prune %s: %s", shard, error)
