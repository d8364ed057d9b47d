"""Produce: append record batches to partitions that this node leads, in every version.

Produce  v0-v2 (only with as.version below 4): message sets. v5: LogStartOffset. v7: zstd. v8: RecordErrors and
         ErrorMessage (KIP-467). v10: CurrentLeader and NodeEndpoints (KIP-951). v12: adds partitions to transactions
         (KIP-890). v13: topic ids in place of names (KIP-516).

Behaviour: one batch of magic 2 a partition; partitions/incoming_batch.py and producers.py have the rules for it. The
           reply waits for the flush of every partition it touched. acks: 0 gets no reply, and an error closes the
           connection; -1 also waits for in-sync followers that lag (acks_wait.py). A transactional batch whose
           partition does not have the transaction open goes through transactions/gate.py first. The other batches of
           the request do not wait for it, or the next request would overtake them.
           The order of checks is Kafka's: the first batch of every partition (the whole request is refused), topic and
           partition, one batch, producer (the whole request), gate, acks, internal topic, leader, the batch's content.
           Of a partition that is named twice the last batch is appended, and there is one answer: an error, if one of
           its batches was not a batch.

Differs: A batch whose records do not have the lengths or the offset deltas that they should, or whose last offset delta
         is not that of its last record, is refused (INVALID_RECORD). Kafka appends many of them, and two records get
         one offset. Where Kafka answers UNKNOWN_SERVER_ERROR, what is wrong is said: no records, a codec that does not
         exist, data that cannot be decompressed, and, where the topic's compression.type is not the batch's, a
         producer id without an epoch or a timestamp below -1.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.cluster.followers import NO_CEILING
from broker.coordinator.transactions.gate import PRODUCE_ADDS_SINCE
from broker.coordinator.transactions.gate import ask as ask_gate
from broker.partitions.record_rules import WrittenBeforeError, invalid_record
from broker.requests.acks_wait import AcksWait
from broker.requests.message_sets import PRODUCE_BATCHES_SINCE, as_one_batch
from broker.requests.produce_ask import Ask, Entry, find_topic, has_producer, producer_of, response_of
from broker.requests.produce_late import send_late
from broker.requests.produce_search import Search
from broker.requests.repeated import HotRequest
from broker.turn.decision import LATER, NO_REPLY, Decision
from broker.turn.executor import append
from broker.wire.errors import lost_code
from protocol.api import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.shape import OpenShape, Shape
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.nodes import Nodes
    from broker.cluster.topics import Topic
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.coordinator.transactions.gate import Refused
    from broker.partitions.table import Partitions
    from broker.requests.kept import Kept
    from broker.wire.parked import ParkedRequests

LEADER_SINCE: Final = 10
ADMIN_CLIENT: Final = "__admin_client"  # the one client id that may write to internal topics
IN_THE_BATCH: Final = "in the batch"  # the reply to a repeat: where the batch is in the log
NOT_SERVED: Final = Decision()  # of a repeat that is out of the ordinary: it goes the general way

_AT_THE_GATE: Final = {
    ErrorCode.INVALID_TXN_STATE: "The partition is not part of the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Cannot verify now whether the partition is part of the transaction",
}


class View(Protocol):
    """What the rule uses of the broker."""

    @property
    def nodes(self) -> Nodes: ...
    @property
    def metadata_shard(self) -> Shard: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def parked(self) -> ParkedRequests: ...


class Produce(HotRequest):
    """The rule, the general codec, and other records for the same partition."""

    REQUEST = OpenShape(ProduceRequest, "records")
    REPLY = Shape(ProduceResponse, "base_offset", "log_append_time_ms", "log_start_offset")

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self._view: View = broker

    def decide(self, ask: Ask, ctx: Context) -> Decision:
        """Append or refuse each batch, partition by partition.

        Errors:  the whole request: CORRUPT_MESSAGE: a partition's records do not begin with a batch.
                 TRANSACTIONAL_ID_AUTHORIZATION_FAILED: transactional records without a transactional id.
                 INVALID_PRODUCER_ID_MAPPING: transactional records of two producers.
                 a partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, those of record_rules.one_batch, of
                 transactions/gate.py, INVALID_REQUIRED_ACKS, INVALID_TOPIC_EXCEPTION (internal),
                 NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, those of Partition.decide.
        Source:  Kafka's KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend.
        """
        prepared = ctx.prepared
        if prepared is None:
            return self._decide_all(ask, ctx)
        accepted, pass_gate = prepared
        # one more batch for a partition whose topic, leader and acks were found right
        batch, partition, served = ask.batch, ask.partition, NOT_SERVED
        try:
            if (
                partition.ceiling == NO_CEILING  # else acks=all is refused or waits
                and not partition.log.broken
                and partition.decide(batch, ctx.now_ms)
                and batch.transactional is ask.is_transactional
            ):
                served = accepted
                if ask.is_transactional:
                    producers = batch.producers
                    if producers is None:
                        served = NOT_SERVED
                    elif producers.has_open_transaction(batch.producer_id, batch.producer_epoch):
                        served.writes, served.then = ask.writes, None
                    elif self.turn.fsync:
                        served = NOT_SERVED
                    else:
                        served.writes, served.then = (), pass_gate
        finally:
            if served is NOT_SERVED:
                batch.let_go()
        return served

    def message(self, ctx: Context, request: ProduceRequest) -> Decision:
        """See HotRequest. The reply is made when all is written."""
        return self.decide(Ask(request), ctx)

    def prepare(self, kept: Kept, decision: Decision) -> None:
        """The next batches go the same way."""
        ask: Ask = kept.ask
        ask.keep()
        adds = kept.ctx.api_version >= PRODUCE_ADDS_SINCE
        kept.ctx.prepared = decision, partial(self._pass_gate_again, ask, adds)
        decision.writes, decision.reads, decision.reply = ask.writes, (ask.partition.flush_state,), IN_THE_BATCH

    def fill(self, ask: Ask, fields: tuple[Any, ...], width: int) -> None:
        """See HotRequest."""
        ask.batch.records = fields[0]

    def values(self, kept: Kept, decision: Decision, reply: Any) -> bool:
        """See HotRequest. Before v5 there is no log start offset."""
        ask, values = kept.ask, kept.values
        batch = ask.batch
        values[0], values[1] = batch.base_offset, batch.append_ms
        if len(values) > 3:
            values[2] = ask.partition.log.log_start_offset
        batch.let_go()
        return True

    # -- the general way

    def _decide_all(self, ask: Ask, ctx: Context) -> Decision:
        ask.check_first_batches()
        entries = ask.take_batches(self._view.partitions.metadata, ctx.api_version)
        producer = None if ask.transactional_id is None else producer_of(entries)
        for entry in entries:
            if producer is None or not has_producer(entry.batch.records) or self._is_open(ask, ctx, entry, producer):
                self._judge(ask, ctx, entry)
                ask.judged.append(entry)
        writes = tuple([(each.partition, each.batch) for each in ask.judged if each.is_new and each.partition])
        decision = Decision(shard=self._view.metadata_shard, writes=writes, apart=True)
        decision.then = partial(self._written, ask, ctx, decision, producer)
        return decision

    def _is_open(self, ask: Ask, ctx: Context, entry: Entry, producer: tuple[int, int]) -> bool:
        """Whether the partition has the transaction open. If not, the batch goes to the gate, or is refused."""
        topic = self._topic_of(ctx, entry)
        try:
            partition = self._view.partitions.led(topic, entry.index, ctx.node_id)
            if partition.has_open_transaction(*producer):
                return True
            partition.check_epoch(*producer)
            ask.gated.append(entry)
        except KafkaError as error:
            ask.refuse(entry, error)
            self._name_leader(ask, ctx, entry)
        return False

    def _judge(self, ask: Ask, ctx: Context, entry: Entry) -> None:
        """Whether the batch is new, and to be written. If not, it has an error, or is a repetition."""
        batch = entry.batch
        try:
            topic = self._topic_of(ctx, entry)  # it may have been deleted while the batch was at the gate
            if not batch.records:
                raise invalid_record("There are no records")
            if not -1 <= ask.acks <= 1:
                raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
            if topic.internal and ctx.client_id != ADMIN_CLIENT:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}")
            partition = entry.partition = self._view.partitions.led(topic, entry.index, ctx.node_id)
            is_old, sent = ctx.api_version < PRODUCE_BATCHES_SINCE, batch.records
            if is_old:
                batch.records = b""  # a refused one has no producer
            if ask.acks == -1:
                partition.before_write()
            if is_old:
                batch.records = as_one_batch(sent, partition.rules.max_inflated_bytes)
            entry.is_new = partition.decide(batch, self.turn.now_ms)
        except (KafkaError, StorageError) as error:
            batch.error = error

    def _written(self, ask: Ask, ctx: Context, decision: Decision, producer: tuple[int, int] | None) -> Any:
        """What was to be written is, or could not be: answer, or ask the gate first."""
        decision.then = None  # it refers to the decision
        for entry in ask.judged:
            self._settle(ask, ctx, entry)
        if ask.gated:
            assert producer is not None
            assert ask.transactional_id is not None
            names = [(self._topic_of(ctx, entry).name, entry.index) for entry in ask.gated]
            refused = self._view.transactions.before_produce(
                ctx, ask.transactional_id, *producer, names, partial(self._later, ask, ctx)
            )
            if refused is None:
                for partition, entry in ask.appended:
                    partition.flush_state.then(partial(self._lost, ask, entry))
                return LATER
            self._pass_gate(ask, ctx, refused)
        reply = self._finish(ask, ctx)
        decision.reads = ask.reads()
        decision.close = ask.acks == 0 and ask.failed
        if reply is not LATER and ctx.api_version >= PRODUCE_BATCHES_SINCE and ask.may_repeat():
            decision.repeats = ask
        return reply

    def _settle(self, ask: Ask, ctx: Context, entry: Entry) -> None:
        """The batch was written, or could not be, or was not to be: fill in its answer."""
        batch, partition, error = entry.batch, entry.partition, entry.batch.error
        if partition is not None:
            if error is None:
                if not entry.is_new:
                    batch.not_appended(partition.log)
                entry.accept(partition.log.log_start_offset)
                self.turn.touch(partition.flush_state)
                ask.appended.append((partition, entry))
                return
            if batch.size and isinstance(error, KafkaError):
                batch.not_appended(partition.log)
            batch.refused(partition, error)
            if error.__class__ is WrittenBeforeError:
                ask.seen.append(partition.flush_state)
                if partition.rules.looks_up:
                    ask.sought.append((partition, entry, error))
                    return
        assert error is not None
        ask.refuse(entry, error if isinstance(error, KafkaError) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        self._name_leader(ask, ctx, entry)

    def _name_leader(self, ask: Ask, ctx: Context, entry: Entry) -> None:
        """Name the leader to a client that asked another node (KIP-951)."""
        if entry.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and ctx.api_version >= LEADER_SINCE:
            ask.name_leader(entry, self._topic_of(ctx, entry), self._view.nodes, ctx)

    def _topic_of(self, ctx: Context, entry: Entry) -> Topic:
        """Errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID."""
        topic = find_topic(self._view.partitions.metadata, ctx.api_version, entry.label)
        if isinstance(topic, KafkaError):
            raise topic
        return topic

    # -- the gate

    def _pass_gate_again(self, ask: Ask, adds: bool) -> None:
        """The first batch of a transaction, of a repeated request. Errors: KafkaError: it may not pass."""
        batch, transactions, now_ms = ask.batch, self._view.transactions, self.turn.now_ms
        assert ask.transactional_id is not None
        if adds or transactions.config.transaction_partition_verification_enable:
            refused = ask_gate(
                transactions,
                now_ms,
                ask.transactional_id,
                batch.producer_id,
                batch.producer_epoch,
                ask.places,
                adds,
                _nothing_waits,
            )
            if refused:
                raise KafkaError(ErrorCode.TRANSACTION_ABORTABLE)
        append(ask.partition, batch, now_ms, self.durability)

    def _pass_gate(self, ask: Ask, ctx: Context, refused: Refused) -> None:
        """Append those that may pass."""
        gated, ask.gated = ask.gated, []
        for entry in gated:
            topic = find_topic(self._view.partitions.metadata, ctx.api_version, entry.label)
            code = ErrorCode.NONE if isinstance(topic, KafkaError) else refused.get((topic.name, entry.index))
            if code:
                self._refuse_at_gate(ask, entry, topic, KafkaError(code, _AT_THE_GATE.get(code)))
                continue
            self._judge(ask, ctx, entry)
            if entry.is_new and entry.partition is not None:
                with suppress(StorageError):  # the batch has been told
                    append(entry.partition, entry.batch, self.turn.now_ms, self.durability)
            self._settle(ask, ctx, entry)

    def _refuse_at_gate(self, ask: Ask, entry: Entry, topic: Any, error: KafkaError) -> None:
        ask.refuse(entry, error)
        with suppress(KafkaError):  # the partition has moved, or its log is out of use
            entry.batch.refused(self._view.partitions.get(topic, entry.index), error)

    def _later(self, ask: Ask, ctx: Context, refused: Refused) -> None:
        """The gate has decided: append what it admits, and answer when that is durable."""
        self.turn.begin()
        self._pass_gate(ask, ctx, refused)
        if self._view.parked.find(ctx.token) is None:
            return  # the connection is closed; its records belong to the transaction all the same
        send_late(self._view.parked, self.durability, self._view.metadata_shard, ask, ctx, self._finish(ask, ctx))

    def _lost(self, ask: Ask, entry: Entry, durable: bool) -> None:
        """Batches that did not wait for the gate are durable, or could not be written."""
        if not durable:
            ask.refuse(entry, KafkaError(lost_code(ApiKey.PRODUCE)))
            ask.appended = [each for each in ask.appended if each[1] is not entry]

    # -- the answer

    def _finish(self, ask: Ask, ctx: Context) -> Any:
        """Answer. What was sent again is looked up first; without a reply (acks=0) it need not be."""
        if ask.sought and ask.acks:
            search = Search(self.turn, ask)
            if not search.is_done_at_once():
                search.go_on(ctx, self._view.parked, partial(self._lost, ask), partial(self._searched, ask, ctx))
                return LATER
        return self._answer(ask, ctx)

    def _searched(self, ask: Ask, ctx: Context) -> None:
        send_late(self._view.parked, self.durability, self._view.metadata_shard, ask, ctx, self._answer(ask, ctx))

    def _answer(self, ask: Ask, ctx: Context) -> Any:
        """The response, unless there is none, or an AcksWait makes it."""
        if ask.acks == 0:
            return NO_REPLY
        if ask.acks == -1 and any(partition.ceiling < entry.end_offset for partition, entry in ask.appended):
            AcksWait(self.turn, ctx, ask.appended, partial(self._acknowledge, ask, ctx)).begin(ask.timeout_ms)
            return LATER
        return response_of(ask)

    def _acknowledge(self, ask: Ask, ctx: Context) -> None:
        token: Any = ctx.token
        self._view.parked.answer(token, response_of(ask))


def _nothing_waits(durable: bool) -> None:
    """What is called when the gate opens later: never, where a write is durable at once."""
    raise AssertionError(f"a request is answered that waits at the gate (durable: {durable})")
