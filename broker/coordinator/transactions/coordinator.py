"""The transaction coordinator: its shards, and the steps of a transaction that touch more than one log.

FlushState.then orders the logs: a step after an append runs when the append is durable.

    Ongoing durable  -> the data of its partitions may be appended
    Prepare* durable -> a marker is appended to every partition
    markers durable  -> Complete* is appended; EndTxn is answered when it is durable

Kafka answers EndTxn after Prepare*, so its clients get CONCURRENT_TRANSACTIONS at their next transaction. A marker that
cannot be written is tried again until it is written; a start continues the transactions that are in Prepare*.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from broker.base.context import Context
from broker.base.placement import shard_index
from broker.cluster.metadata_plans import ensure_internal_topic, is_short_of_replicas
from broker.cluster.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from broker.config.features import finalized, supported
from broker.coordinator.loading import drop_shards, load_shards
from broker.coordinator.runtime import READY, Shard
from broker.coordinator.shard_parts import PartitionLog
from broker.coordinator.transactions import gate
from broker.coordinator.transactions.ending import Ending
from broker.coordinator.transactions.machine import TransactionMachine
from broker.coordinator.transactions.rules import NeedsProducerIdError, complete, fence
from broker.coordinator.transactions.transaction import ONGOING, TopicIndex, Transaction
from broker.turn.decision import Token
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transactions import EndTxnResponse
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.directory import DataDirectory
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.shard_parts import Answers
    from broker.coordinator.transactions.gate import Refused
    from broker.partitions.table import Partitions
    from broker.turn.durability import FlushState
    from broker.turn.turn import Turn

logger = logging.getLogger("momus.transactions")

RETRY_MS: Final = 1000  # until a transaction that has timed out and could not be aborted is tried again


class TransactionCoordinator:
    """All shards of the transaction coordinator, whichever node leads them."""

    def __init__(
        self,
        turn: Turn,
        answers: Answers,
        config: BrokerConfig,
        directory: DataDirectory,
        nodes: Nodes,
        metadata_shard: Shard,
        groups: GroupShards,
        partitions: Partitions,
        ranges: Sequence[tuple[int, int, int]],
    ) -> None:
        """`ranges`: (API key, first version, last version) of the served APIs."""
        self.turn = turn
        self.config = config
        self.groups = groups
        self._answers = answers
        self._directory = directory
        self._nodes = nodes
        self._metadata_shard = metadata_shard
        self._partitions = partitions
        self._ranges = ranges
        self.shards: list[Shard] = []
        self._ending: dict[str, Ending] = {}  # by transactional id
        self._version = (-1, 0)
        partitions.dropped.append(self.topic_gone)
        metadata_shard.when_reloaded.append(self._metadata_reloaded)

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""
        metadata: ClusterMetadata = self._metadata_shard.machine
        return metadata

    # -- shards

    def open(self) -> None:
        """Make the shards, if `__transaction_state` exists and they do not."""
        if not self.shards and TRANSACTIONS_TOPIC in self.metadata.topics:
            count = self.metadata.internal_partitions(TRANSACTIONS_TOPIC)
            self.shards = [self._shard(index) for index in range(count)]

    def _shard(self, index: int) -> Shard:
        source = PartitionLog(self._directory, lambda: self.metadata, TRANSACTIONS_TOPIC, index)

        def make_machine() -> TransactionMachine:
            return TransactionMachine(index, self.config, self)

        def is_short() -> bool:
            return not self._nodes.is_one and is_short_of_replicas(self.metadata, TRANSACTIONS_TOPIC, index)

        name = f"{TRANSACTIONS_TOPIC}-{index}"
        return Shard(self.turn, self._answers, name, source, make_machine, is_short=is_short)

    def load(self) -> Iterator[None]:
        """Load the shards, one a step: transactions must end and time out without a request."""
        self.open()
        yield from load_shards(self._directory, TRANSACTIONS_TOPIC, self.shards)

    def ensure_topic(self, rng: Any) -> None:
        """Make `__transaction_state` when it is first needed."""
        if not self.shards:
            records = ensure_internal_topic(self.metadata, rng, TRANSACTIONS_TOPIC)
            if records:
                self._metadata_shard.append([(None, value) for value in records])
            self.open()

    def _metadata_reloaded(self) -> None:
        if TRANSACTIONS_TOPIC not in self.metadata.topics:
            drop_shards(self.turn, self._directory, TRANSACTIONS_TOPIC, self.shards)

    def shard(self, transactional_id: str, ctx: Context | None = None) -> Shard:
        """The loaded shard of an id. Errors: NOT_COORDINATOR (of ctx's node), COORDINATOR_LOAD_IN_PROGRESS."""
        if not self.shards:
            self.open()
            if not self.shards:
                raise KafkaError(ErrorCode.NOT_COORDINATOR, "there are no transactions yet")
        index = shard_index(transactional_id, len(self.shards))
        if ctx is not None and not self._nodes.is_one and self._leader(index) != ctx.node_id:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"node {ctx.node_id} does not coordinate {transactional_id!r}")
        shard = self.shards[index]
        if shard.state is not READY:
            shard.require()
        return shard

    def own_shards(self, ctx: Context) -> Iterator[Shard]:
        """The loaded shards that a node coordinates. Errors: COORDINATOR_LOAD_IN_PROGRESS."""
        self.open()
        for index, shard in enumerate(self.shards):
            if self._leader(index) == ctx.node_id:
                shard.require()
                yield shard

    def _leader(self, index: int) -> int:
        return self.metadata.topics[TRANSACTIONS_TOPIC].partitions[index].leader

    @property
    def version(self) -> int:
        """The level of the feature transaction.version."""
        metadata: ClusterMetadata = self._metadata_shard.machine
        known, level = self._version
        if known == metadata.version:
            return level
        levels = finalized(metadata.feature_levels, supported(self._ranges, metadata.config.release))
        self._version = metadata.version, levels.get("transaction.version", 0)
        return self._version[1]

    # -- changes

    def change(self, shard: Shard, transaction: Transaction, now_ms: int) -> None:
        """Append a transaction's next state."""
        self.append(shard, transaction, now_ms)
        self.turn.touch(shard.flush_state)

    def change_now(self, shard: Shard, transaction: Transaction, now_ms: int) -> bool:
        """The same, and write it at once, where that makes it durable (not at `fsync`). False: it was thrown away."""
        self.append(shard, transaction, now_ms)
        return self.turn.durability.write_now(shard.flush_state)

    def append(
        self, shard: Shard, transaction: Transaction, now_ms: int, groups: Sequence[tuple[str, bytes, bytes]] = ()
    ) -> None:
        """Append a transaction's next state; the caller has it written.

        groups   id, key and value of the group records that follow.
        Errors:  StorageError: nothing was appended, and the shard was reloaded, as by Shard.append.
        """
        machine: TransactionMachine = shard.machine
        machine.check_step(transaction)
        log = shard.log
        base = log.end_offset
        batch = transaction.batch(1 if self.version else 0, base, log.epochs.latest, now_ms, groups)
        last = base + len(groups)
        try:
            log.append((batch,), base_offset=base, last_offset=last, max_timestamp_ms=now_ms, size=len(batch))
        except StorageError:  # the log is out of use, after a failure of the cleaner for example
            shard.reload()
            raise
        machine.replay_transaction(transaction, groups)
        if transaction.state is not ONGOING:
            shard.deadlines.by_name.pop(transaction.transactional_id, None)
        elif transaction.transactional_id not in shard.deadlines.by_name:  # it begins: what passes from now on counts
            shard.deadlines.set(*machine.timer(transaction))

    def end(self, shard: Shard, prepared: Transaction, now_ms: int, token: Token = None) -> Transaction | None:
        """Append Prepare*, send the markers, and complete the transaction.

        Answers Complete* if it is durable already. None: `token`, a parked EndTxn, is answered when it is.
        Errors:  NOT_COORDINATOR: the decision could not be written.
        """
        self.append(shard, prepared, now_ms, self._groups_in(shard, prepared))
        ending = self._ending[prepared.transactional_id] = Ending(self, shard, prepared)
        if self.turn.fsync:
            self.turn.touch(shard.flush_state)
        self.when_durable(shard.flush_state, ending.send)
        if ending.lost:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{shard} could not be written")
        if ending.result is None and token is not None:
            ending.token = token
            shard.parked.add(token)
        return ending.result

    def _groups_in(self, shard: Shard, prepared: Transaction) -> list[tuple[str, bytes, bytes]]:
        """The groups whose offsets are part of an ending transaction, from the loaded group shards."""
        machine: TransactionMachine = shard.machine
        transaction = machine.transactions[prepared.transactional_id]  # before Prepare*: with the producer's epoch
        found = []
        for index in prepared.partitions.get(OFFSETS_TOPIC, ()):
            groups = self.groups.shards[index]
            if groups.state is READY:
                for group_id, sender, topics in groups.machine.pending.groups(transaction.producer_id):
                    found.append((group_id, *machine.group_record(transaction, group_id, sender, topics)))
        return found

    def abort(self, index: int, transaction: Transaction) -> None:
        """A transaction has timed out: abort it with a higher epoch, which fences its producer."""
        logger.info("aborting the transaction of %r, which has timed out", transaction.transactional_id)
        shard = self.shards[index]
        try:
            self.fence(shard, transaction, self.turn.now_ms)
        except (KafkaError, OSError, StorageError):
            self._fence_later(shard, transaction)
            raise

    def fence(self, shard: Shard, transaction: Transaction, now_ms: int) -> None:
        """Abort an Ongoing transaction without a request of its producer."""
        try:
            made = fence(transaction, now_ms, transaction_version=self.version)
        except NeedsProducerIdError:
            self.with_producer_id(
                lambda new_id: self._fence_with(shard, transaction, new_id),
                lambda: self._fence_later(shard, transaction),
            )
        else:
            self.end(shard, made, now_ms)

    def _fence_with(self, shard: Shard, transaction: Transaction, new_id: int) -> None:
        if shard.machine.transactions.get(transaction.transactional_id) is transaction:
            now_ms = self.turn.now_ms
            self.end(shard, fence(transaction, now_ms, transaction_version=2, new_producer_id=new_id), now_ms)

    def _fence_later(self, shard: Shard, transaction: Transaction) -> None:
        """It could not be aborted now. The timer of a transaction that has timed out is over: set it again."""
        name = transaction.transactional_id
        if name not in shard.deadlines.by_name and shard.machine.transactions.get(name) is transaction:
            shard.deadlines.set(name, self.turn.now_ms + RETRY_MS)

    def with_producer_id(self, then: Callable[[int], None], failed: Callable[[], None]) -> None:
        """Call `then` with a new producer id, once it is durable that the id is used."""
        shard = self._metadata_shard
        producer_id, records = self.metadata.next_producer_id()
        if records:
            shard.append([(None, value) for value in records])
        self.when_durable(shard.flush_state, lambda durable: then(producer_id) if durable else failed())

    def when_durable(self, flush_state: FlushState, step: Callable[[bool], None]) -> None:
        """FlushState.then, or at once when the log is durable or a write makes it so."""
        if flush_state.durable_offset >= flush_state.log.end_offset:
            step(True)
        elif self.turn.fsync:
            flush_state.then(step)
        else:
            step(self.turn.durability.write_now(flush_state))

    # -- endings

    def resume(self, index: int, prepared: Sequence[Transaction]) -> None:
        """A shard was loaded with these transactions in Prepare*: send their markers, some for the second time."""
        shard = self.shards[index]
        for transaction in prepared:
            ending = self._ending[transaction.transactional_id] = Ending(self, shard, transaction)
            self.when_durable(shard.flush_state, ending.send)

    def ended(self, ending: Ending) -> None:
        """Every partition has its marker: append Complete*, and answer the parked EndTxn."""
        prepared, shard = ending.transaction, ending.shard
        if self._ending.get(prepared.transactional_id) is not ending:
            return
        del self._ending[prepared.transactional_id]
        if shard.state is not READY or shard.machine.transactions.get(prepared.transactional_id) is not prepared:
            ending.lost = True
            return  # the shard was thrown away meanwhile: when it is loaded, markers are sent again
        done = complete(prepared, self.turn.now_ms)
        if self.turn.fsync or ending.token is not None:
            self.change(shard, done, self.turn.now_ms)
        elif not self.change_now(shard, done, self.turn.now_ms):
            ending.lost = True
            return
        else:
            ending.result = done
        if ending.token is not None:
            shard.parked.discard(ending.token)
            response = EndTxnResponse(producer_id=done.producer_id, producer_epoch=done.producer_epoch)
            self._answers.answer(ending.token, response, shard.flush_state)

    def is_current(self, ending: Ending) -> bool:
        """Whether no later ending of the transaction has begun."""
        return self._ending.get(ending.transaction.transactional_id) is ending

    def topic_gone(self, name: str) -> None:
        """A topic was deleted: do not wait for its markers."""
        for ending in list(self._ending.values()):
            for topic, index in [place for place in ending.left if place[0] == name]:
                ending.marked(topic, index, durable=True)

    def write_marker(
        self,
        topic: str,
        index: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        commit: bool,
        transaction_version: int,
    ) -> FlushState | None:
        """Append a marker to a partition of data or offsets. The caller has it written.

        None: no such partition.
        Errors:  INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: see Producers.check_marker.
                 COORDINATOR_LOAD_IN_PROGRESS: an offsets shard that is still being loaded.
        """
        found = self.metadata.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        now_ms = self.turn.now_ms
        if topic == OFFSETS_TOPIC:
            shard = self.groups.shards[index]
            shard.require()
            shard.append_marker(producer_id, producer_epoch, coordinator_epoch, commit=commit, now_ms=now_ms)
            return shard.flush_state
        partition = self._partitions.get(found, index)
        partition.append_marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms, transaction_version)
        return partition.flush_state

    # -- the gate

    # -- the gate

    def before_produce(
        self,
        ctx: Context,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicIndex],
        continue_: Callable[[Refused], None],
    ) -> Refused | None:
        """Whether transactional records may be appended: see gate.before_produce."""
        return gate.before_produce(self, ctx, transactional_id, producer_id, producer_epoch, partitions, continue_)
