"""The transaction coordinator: the steps of a transaction that touch more than one log.

FlushState.then orders the logs: a step after an append runs when the append is durable.

    Ongoing durable  -> the data of its partitions may be appended
    Prepare* durable -> a marker is appended to every partition
    markers durable  -> Complete* is appended; EndTxn is answered when it is durable

Kafka answers EndTxn after Prepare*, so its clients get CONCURRENT_TRANSACTIONS at their next transaction. A marker that
cannot be written is tried again until it is written; a start continues the transactions that are in Prepare*.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from broker.base.context import Context
from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.config.features import finalized, supported
from broker.coordinator.runtime import READY, Shard
from broker.coordinator.transactions import gate
from broker.coordinator.transactions.ending import Ending
from broker.coordinator.transactions.machine import TransactionMachine
from broker.coordinator.transactions.rules import NeedsProducerIdError, complete, fence
from broker.coordinator.transactions.shards import TransactionShards
from broker.coordinator.transactions.transaction import TopicIndex, Transaction
from broker.coordinator.transactions.written import NextState
from broker.coordinator.written import Marker, Records
from broker.turn.decision import LATER, Decision, Token
from broker.turn.executor import append
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transactions import EndTxnResponse
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.cluster.topics import Topic
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.shard_parts import Answers
    from broker.coordinator.transactions.gate import Refused
    from broker.partitions.table import Partitions
    from broker.turn.flush_state import FlushState
    from broker.turn.turn import Turn

logger: Final = logging.getLogger("momus.transactions")

RETRY_MS: Final = 1000  # until a transaction that has timed out and could not be aborted is tried again


class TransactionCoordinator(TransactionShards):
    """Carries transactions through their states, from one log to the next."""

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
        super().__init__(turn, answers, config, directory, nodes, metadata_shard)
        self.groups = groups
        self._partitions = partitions
        self._ranges = ranges
        self._ending: dict[str, Ending] = {}  # by transactional id
        self._version = (-1, 0)
        partitions.dropped.append(self.topic_gone)

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

    def next_state(self, transaction: Transaction, groups: Sequence[tuple[str, bytes, bytes]] = ()) -> NextState:
        """What is written for a transaction's next state; `groups`: id, key and value of each group in it."""
        known, level = self._version
        if known != self._metadata_shard.machine.version:
            level = self.version
        return NextState(transaction, 1 if level else 0, groups)

    def change(self, shard: Shard, transaction: Transaction, now_ms: int) -> None:
        """Append a transaction's next state. Errors: StorageError: nothing was appended, and the shard was reloaded."""
        append(shard, self.next_state(transaction), now_ms, None)
        self.turn.touch(shard.flush_state)

    def change_now(self, shard: Shard, transaction: Transaction, now_ms: int) -> bool:
        """The same, and write it at once, where that makes it durable (not at `fsync`). False: it was thrown away."""
        append(shard, self.next_state(transaction), now_ms, None)
        return self.turn.durability.write_now(shard.flush_state)

    def end(self, shard: Shard, prepared: Transaction, follow: Callable[[bool], Decision]) -> Decision:
        """Write Prepare*; when it is durable, `follow` calls `send_markers`."""
        write = self.next_state(prepared, self.groups_in(shard, prepared))
        return Decision(shard=shard, writes=((shard, write),), until=shard.flush_state, follow=follow)

    def send_markers(self, shard: Shard, prepared: Transaction, durable: bool, token: Token = None) -> Any:
        """Prepare* is durable: send the markers, and complete the transaction.

        Returns Complete* if it is durable already; LATER: `token`, a parked EndTxn, is answered when it is.
        Errors:  NOT_COORDINATOR: Prepare* or Complete* could not be written.
        """
        ending = Ending(self, shard, prepared)
        if durable:
            self._ending[prepared.transactional_id] = ending
            if self.turn.fsync:
                ending.wait(token)
        ending.send(durable)
        if ending.lost:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{shard} could not be written")
        if ending.result is None:
            ending.wait(token)
            return LATER
        return ending.result

    def groups_in(self, shard: Shard, prepared: Transaction) -> list[tuple[str, bytes, bytes]]:
        """The groups whose offsets are part of an ending transaction, from the loaded group shards."""
        machine: TransactionMachine = shard.machine
        transaction = machine.transactions[prepared.transactional_id]  # before Prepare*: with the producer's epoch
        found: list[tuple[str, bytes, bytes]] = []
        for index in prepared.partitions.get(OFFSETS_TOPIC, ()):
            groups = self.groups.at(index)
            if groups.state is READY:
                for group_id, sender, topics in groups.machine.pending.groups(transaction.producer_id):
                    found.append(machine.group_record(transaction, group_id, sender, topics))
        return found

    def abort(self, index: int, transaction: Transaction) -> None:
        """A transaction has timed out: abort it with a higher epoch, which fences its producer."""
        logger.info("aborting the transaction of %r, which has timed out", transaction.transactional_id)
        shard = self.shards[index]
        try:
            shard.apply(self.fence(shard, transaction))
        except (KafkaError, OSError, StorageError):
            self._fence_later(shard, transaction)
            raise

    def fence(self, shard: Shard, transaction: Transaction, refusal: KafkaError | None = None) -> Decision:
        """Abort an Ongoing transaction without a request of its producer.

        refusal  of the request that asks for it: raised when that is decided and durable.
        """

        def decide(new_id: int | None) -> Decision:
            if shard.machine.transactions.get(transaction.transactional_id) is not transaction:
                return done()  # it has ended while the producer id was written
            version = self.version if new_id is None else 2
            made = fence(transaction, self.turn.now_ms, transaction_version=version, new_producer_id=new_id)
            return self.end(shard, made, lambda durable: done(self.send_markers(shard, made, durable)))

        def done(_: object = None) -> Decision:
            if refusal is not None:
                raise refusal
            return Decision()

        return self.with_new_id(shard, decide, lambda: self._fence_later(shard, transaction))

    def _fence_later(self, shard: Shard, transaction: Transaction) -> None:
        """It could not be aborted now. The timer of a transaction that has timed out is over: set it again."""
        name = transaction.transactional_id
        if name not in shard.deadlines.by_name and shard.machine.transactions.get(name) is transaction:
            shard.deadlines.set(name, self.turn.now_ms + RETRY_MS)

    def with_new_id(
        self, shard: Shard, decide: Callable[[int | None], Decision], failed: Callable[[], None] | None = None
    ) -> Decision:
        """Decide without a new producer id, or again with one, once it is durable that the id is used.

        shard   in which the request is parked until then.
        Errors: COORDINATOR_NOT_AVAILABLE: it could not be written; `failed` is called first.
        """
        try:
            return decide(None)
        except NeedsProducerIdError:
            producer_id, values = self.metadata.next_producer_id()

        def follow(durable: bool) -> Decision:
            if not durable:
                if failed is not None:
                    failed()
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no new producer id could be written")
            return decide(producer_id)

        target = self._metadata_shard
        writes = ((target, Records([(None, value) for value in values])),) if values else ()
        return Decision(shard=shard, writes=writes, until=target.flush_state, follow=follow)

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
        turn = self.turn
        done = complete(prepared, turn.now_ms)
        append(shard, self.next_state(done), turn.now_ms, None)
        if turn.fsync or ending.token is not None:
            turn.touch(shard.flush_state)
        elif turn.durability.write_now(shard.flush_state):
            ending.result = done
        else:
            ending.lost = True
            return
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
        found: Topic | None = self._metadata_shard.machine.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        now_ms = self.turn.now_ms
        if topic == OFFSETS_TOPIC:
            shard = self.groups.at(index)
            if shard.state is not READY:
                shard.require()
            append(shard, Marker(producer_id, producer_epoch, coordinator_epoch, commit=commit), now_ms, None)
            return shard.flush_state
        partition = self._partitions.get(found, index)
        partition.append_marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms, transaction_version)
        return partition.flush_state

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
