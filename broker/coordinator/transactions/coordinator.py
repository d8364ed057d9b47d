"""The transaction coordinator: its shards, and everything of a transaction that touches more than one log.

What orders the logs is FlushState.then: a step behind an append is taken when the append is durable.

    Ongoing durable  -> the data of its partitions may be appended
    Prepare* durable -> a marker is appended to every partition
    markers durable  -> Complete* is appended; EndTxn is answered when it is durable

Kafka answers EndTxn after Prepare*, and its clients meet CONCURRENT_TRANSACTIONS at their next transaction. A marker
that could not be written is written again until it is; a start finds what is in Prepare* and goes on with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.features import finalized, supported
from broker.cluster.metadata_plans import ensure_internal_topic
from broker.cluster.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from broker.coordinator.placement import shard_index
from broker.coordinator.result import Context, Token
from broker.coordinator.runtime import READY, UNLOADED, Shard
from broker.coordinator.transactions import gate as txn_gate
from broker.coordinator.transactions.machine import TransactionMachine
from broker.coordinator.transactions.rules import NeedsProducerIdError, complete, fence
from broker.coordinator.transactions.transaction import ONGOING, PREPARE_COMMIT, Transaction
from broker.shortcuts.transactions import TxnPath
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transactions import EndTxnResponse
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.coordinator.transactions.gate import Refused, TopicIndex
    from broker.durability import FlushState
    from storage.log import Log

logger = logging.getLogger("momus.transactions")

RETRY_MS: Final = 50  # until a marker that could not be written is tried again


class TransactionCoordinator:
    """All shards of the transaction coordinator, whichever node leads them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.shards: list[Shard] = []
        self._ending: dict[str, Ending] = {}  # by transactional id
        self._version = (-1, 0)
        broker.dispatch = TxnPath(self, broker.dispatch).dispatch

    # -- shards

    def open(self) -> None:
        """Make the shards, when `__transaction_state` is there and they are not."""
        if not self.shards and TRANSACTIONS_TOPIC in self.broker.metadata.topics:
            count = self.broker.metadata.internal_partitions(TRANSACTIONS_TOPIC)
            self.shards = [self._shard(index) for index in range(count)]

    def _shard(self, index: int) -> Shard:
        broker = self.broker

        def open_log() -> Log:
            return broker.directory.open_log(broker.metadata, broker.metadata.topics[TRANSACTIONS_TOPIC], index)

        def make_machine() -> TransactionMachine:
            return TransactionMachine(index, broker.config, self)

        return Shard(broker, f"{TRANSACTIONS_TOPIC}-{index}", open_log, make_machine)

    def load(self) -> Iterator[None]:
        """Load what there is to load, a shard a step: transactions end and time out whether or not anyone asks."""
        self.open()
        for index, shard in enumerate(self.shards):
            if shard.state is UNLOADED and self.broker.directory.exists(TRANSACTIONS_TOPIC, index):
                try:
                    shard.require()
                except KafkaError:  # a large one: it goes on loading in the background
                    yield
                yield

    def ensure_topic(self, rng: Any) -> None:
        """Make `__transaction_state` when it is first needed."""
        if not self.shards:
            records = ensure_internal_topic(self.broker.metadata, rng, TRANSACTIONS_TOPIC)
            if records:
                self.broker.metadata_shard.append([(None, value) for value in records])
            self.open()

    def shard(self, transactional_id: str, ctx: Context | None = None) -> Shard:
        """The loaded shard of an id. Errors: NOT_COORDINATOR (asked of ctx's node), COORDINATOR_LOAD_IN_PROGRESS."""
        if not self.shards:
            self.open()
            if not self.shards:
                raise KafkaError(ErrorCode.NOT_COORDINATOR, "there are no transactions yet")
        index = shard_index(transactional_id, len(self.shards))
        if ctx is not None and len(self.broker.nodes) > 1 and self._leader(index) != ctx.node_id:
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
        return self.broker.metadata.topics[TRANSACTIONS_TOPIC].partitions[index].leader

    @property
    def version(self) -> int:
        """The level of the feature transaction.version."""
        metadata = self.broker.metadata
        if self._version[0] != metadata.version:
            levels = finalized(metadata.feature_levels, supported(self.broker.api_versions))
            self._version = metadata.version, levels.get("transaction.version", 0)
        return self._version[1]

    # -- changes

    def change(self, shard: Shard, transaction: Transaction, now_ms: int) -> None:
        """Append a transaction's next state."""
        self._append(shard, transaction, now_ms)
        self.broker.touch(shard.flush_state)

    def change_now(self, shard: Shard, transaction: Transaction, now_ms: int) -> bool:
        """The same where a write makes it durable (not at `fsync`): and it is, or False: it was thrown away."""
        self._append(shard, transaction, now_ms)
        return self.broker.durability.write_now(shard.flush_state)

    def _append(
        self, shard: Shard, transaction: Transaction, now_ms: int, groups: Sequence[tuple[str, bytes, bytes]] = ()
    ) -> None:
        """`groups`: id, key and value of what stands behind it."""
        machine: TransactionMachine = shard.machine
        log = shard.log
        base = log.end_offset
        batch = transaction.batch(1 if self.version else 0, base, log.leader_epoch, now_ms, groups)
        last = base + len(groups)
        log.append((batch,), base_offset=base, last_offset=last, max_timestamp_ms=now_ms, size=len(batch))
        machine.take(transaction, groups)
        if transaction.state is ONGOING:
            shard.set_timer(*machine.timer(transaction))
        else:
            shard.deadlines.pop(transaction.transactional_id, None)

    def end(self, shard: Shard, prepared: Transaction, now_ms: int, token: Token = None) -> Transaction | None:
        """Append Prepare*, and see the transaction through to its end.

        Answers what it came to when that is durable already; None: `token`, an EndTxn, is answered then.
        Errors:  NOT_COORDINATOR: the decision could not be written.
        """
        self._append(shard, prepared, now_ms, self._groups_in(shard, prepared))
        ending = self._ending[prepared.transactional_id] = Ending(self, shard, prepared)
        if self.broker.fsync:
            self.broker.touch(shard.flush_state)
        self.when_durable(shard.flush_state, ending.send)
        if ending.lost:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{shard} could not be written")
        if ending.result is None and token is not None:
            ending.token = token
            shard.parked.add(token)
        return ending.result

    def _groups_in(self, shard: Shard, prepared: Transaction) -> list[tuple[str, bytes, bytes]]:
        """Whose offsets are part of a transaction that ends, as long as the groups' shards know it."""
        machine: TransactionMachine = shard.machine
        transaction = machine.transactions[prepared.transactional_id]  # as it was: with the epoch the producer knows
        found = []
        for index in prepared.partitions.get(OFFSETS_TOPIC, ()):
            groups = self.broker.group_shards[index]
            if groups.state is READY:
                for group_id, sender, topics in groups.machine.pending.groups(transaction.producer_id):
                    found.append((group_id, *machine.group_record(transaction, group_id, sender, topics)))
        return found

    def abort(self, index: int, transaction: Transaction) -> None:
        """A transaction has timed out: end it with an epoch that its producer does not know."""
        logger.info("%r has timed out and is aborted", transaction.transactional_id)
        self.fence(self.shards[index], transaction, self.broker.now_ms)

    def fence(self, shard: Shard, transaction: Transaction, now_ms: int) -> None:
        """Abort an Ongoing transaction in the name of nobody."""
        try:
            made = fence(transaction, now_ms, transaction_version=self.version)
        except NeedsProducerIdError:
            self.with_producer_id(lambda new_id: self._fence_with(shard, transaction, new_id), lambda: None)
        else:
            self.end(shard, made, now_ms)

    def _fence_with(self, shard: Shard, transaction: Transaction, new_id: int) -> None:
        if shard.machine.transactions.get(transaction.transactional_id) is transaction:
            now_ms = self.broker.now_ms
            self.end(shard, fence(transaction, now_ms, transaction_version=2, new_producer_id=new_id), now_ms)

    def with_producer_id(self, then: Callable[[int], None], failed: Callable[[], None]) -> None:
        """Call `then` with a producer id that was never given before, once no crash can make it be given again."""
        shard = self.broker.metadata_shard
        producer_id, records = self.broker.metadata.next_producer_id()
        if records:
            shard.append([(None, value) for value in records])
        self.when_durable(shard.flush_state, lambda durable: then(producer_id) if durable else failed())

    def when_durable(self, flush_state: FlushState, step: Callable[[bool], None]) -> None:
        """FlushState.then; at once when all of the log is durable, or can be made so by a write."""
        if flush_state.durable_offset >= flush_state.log.end_offset:
            step(True)
        elif self.broker.fsync:
            flush_state.then(step)
        else:
            step(self.broker.durability.write_now(flush_state))

    # -- endings

    def resume(self, index: int, prepared: Sequence[Transaction]) -> None:
        """A shard was loaded, and these had been decided: markers are sent, perhaps a second time."""
        shard = self.shards[index]
        for transaction in prepared:
            ending = self._ending[transaction.transactional_id] = Ending(self, shard, transaction)
            self.when_durable(shard.flush_state, ending.send)

    def ended(self, ending: Ending) -> None:
        """Every partition has its marker: say so in the log, and answer the EndTxn that waits for it."""
        prepared, shard = ending.transaction, ending.shard
        if self._ending.get(prepared.transactional_id) is not ending:
            return
        del self._ending[prepared.transactional_id]
        if shard.state is not READY or shard.machine.transactions.get(prepared.transactional_id) is not prepared:
            ending.lost = True
            return  # thrown away meanwhile: when it is loaded again, markers are sent again
        done = complete(prepared, self.broker.now_ms)
        if self.broker.fsync or ending.token is not None:
            self.change(shard, done, self.broker.now_ms)
        elif not self.change_now(shard, done, self.broker.now_ms):
            ending.lost = True
            return
        else:
            ending.result = done
        if ending.token is not None:
            shard.parked.discard(ending.token)
            response = EndTxnResponse(producer_id=done.producer_id, producer_epoch=done.producer_epoch)
            self.broker.answer(shard, ending.token, response)

    def is_current(self, ending: Ending) -> bool:
        """Whether this is how the transaction ends, and not a later attempt."""
        return self._ending.get(ending.transaction.transactional_id) is ending

    def topic_gone(self, name: str) -> None:
        """A topic was deleted: nobody waits for its markers."""
        for ending in list(self._ending.values()):
            for topic, index in [place for place in ending.left if place[0] == name]:
                ending.marked(topic, index, durable=True)

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
        """txn_gate.before_produce."""
        return txn_gate.before_produce(self, ctx, transactional_id, producer_id, producer_epoch, partitions, continue_)


class Ending:
    """One transaction on its way from Prepare* to Complete*."""

    __slots__ = ("coordinator", "left", "lost", "result", "shard", "token", "transaction")

    def __init__(self, coordinator: TransactionCoordinator, shard: Shard, transaction: Transaction) -> None:
        self.coordinator = coordinator
        self.shard = shard
        self.transaction = transaction
        self.token: Token = None  # the EndTxn that waits
        self.result: Transaction | None = None  # Complete*, when it was durable before anybody had to wait
        self.lost = False  # what was decided, or that it is done, could not be written
        self.left: set[TopicIndex] = set()  # partitions without a durable marker

    def send(self, durable: bool) -> None:
        """Prepare* is durable, or it was thrown away: then whoever waits has been told to ask again."""
        if not durable:
            self.lost = True
            return
        left = self.left
        for topic, indexes in self.transaction.partitions.items():
            for index in indexes:
                if not self._mark(topic, index):
                    left.add((topic, index))
        if not left:
            self.coordinator.ended(self)

    def _mark(self, topic: str, index: int) -> bool:
        """Append the marker of one partition; whether nothing more has to be waited for there.

        Again later, when its disk is full or its shard not loaded.
        """
        broker, transaction = self.coordinator.broker, self.transaction
        try:
            flush_state = write_marker(
                broker,
                topic,
                index,
                transaction.producer_id,
                transaction.producer_epoch,
                self.shard.log.leader_epoch,
                commit=transaction.state is PREPARE_COMMIT,
                transaction_version=transaction.client_version,
            )
        except KafkaError as error:
            if error.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED):
                # the partition knows a newer epoch: what this one had open there has ended
                logger.warning("%s-%d refuses the marker of %r: %s", topic, index, transaction.key, error.message)
                return True
            self._later(topic, index)
            return False
        except (OSError, StorageError) as error:
            logger.error("%s-%d cannot take the marker of %r: %s", topic, index, transaction.key, error)
            self._later(topic, index)
            return False
        if flush_state is None:
            return True
        if broker.fsync:
            broker.touch(flush_state)
            flush_state.then(lambda durable: self.marked(topic, index, durable=durable))
            return False
        if broker.durability.write_now(flush_state):
            return True
        self._later(topic, index)
        return False

    def _later(self, topic: str, index: int) -> None:
        """Try again after a while."""
        broker = self.coordinator.broker
        broker.at(broker.now_ms + RETRY_MS, lambda due_ms, now_ms: self._again(topic, index))

    def _again(self, topic: str, index: int) -> None:
        if self.coordinator.is_current(self) and self._mark(topic, index):
            self.marked(topic, index, durable=True)

    def marked(self, topic: str, index: int, *, durable: bool) -> None:
        """The marker of one partition is durable, or was thrown away."""
        if not durable:
            self._later(topic, index)
            return
        self.left.discard((topic, index))
        if not self.left:
            self.coordinator.ended(self)


def write_marker(
    broker: Broker,
    topic: str,
    index: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    *,
    commit: bool,
    transaction_version: int,
) -> FlushState | None:
    """Append a marker to a partition, be it data or offsets, and leave it to the caller to have it written.

    None: no such partition.
    Errors: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, COORDINATOR_LOAD_IN_PROGRESS (an offsets shard that
    is still being loaded).
    """
    found = broker.metadata.topics.get(topic)
    if found is None or not 0 <= index < len(found.partitions):
        return None
    if topic == OFFSETS_TOPIC:
        shard = broker.group_shards[index]
        shard.require()
        shard.append_marker(producer_id, producer_epoch, coordinator_epoch, commit=commit, now_ms=broker.now_ms)
        return shard.flush_state
    partition = broker.partition(found, index)
    partition.append_marker(producer_id, producer_epoch, coordinator_epoch, commit, broker.now_ms, transaction_version)
    return partition.flush_state
