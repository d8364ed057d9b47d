"""Produce: append record batches to partitions that this node leads.

Produce  v5: LogStartOffset. v7: zstd. v8: RecordErrors and ErrorMessage (KIP-467). v10: CurrentLeader and NodeEndpoints
         (KIP-951). v12: adds partitions to transactions (KIP-890). v13: topic ids in place of names (KIP-516).

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

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.coordinator.transactions.gate import PRODUCE_ADDS_SINCE
from broker.handlers.acks_wait import AcksWait, Appended
from broker.handlers.produce_entries import Entry, check_first_batches, find_topic, has_producer, producer_of
from broker.partitions.record_rules import ZSTD_SINCE, RecordsRefusedError, invalid_record, one_batch
from broker.turn.decision import LATER, NO_REPLY, Decision
from broker.wire.errors import lost_code
from protocol.api import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    TopicProduceResponse,
)
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import Topic
    from broker.cluster.nodes import Nodes
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.coordinator.transactions.gate import Refused
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests

LEADER_SINCE: Final = 10
ADMIN_CLIENT: Final = "__admin_client"  # the one client id that may write to internal topics

# Kafka answers these without a log start offset, also when the partition was looked up
_NO_START_OFFSET: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
    }
)


class View(Protocol):
    """What these handlers use of the broker."""

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
    @property
    def turn(self) -> Turn: ...


def produce(broker: View, ctx: Context, request: ProduceRequest) -> Decision:
    """Append or refuse each batch, partition by partition. None: no reply (acks=0).

    Errors:  the whole request: CORRUPT_MESSAGE: a partition's records do not begin with a batch.
             TRANSACTIONAL_ID_AUTHORIZATION_FAILED: transactional records without a transactional id.
             INVALID_PRODUCER_ID_MAPPING: transactional records of two producers.
             a partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, those of record_rules.one_batch, of
             transactions/gate.py, INVALID_REQUIRED_ACKS, INVALID_TOPIC_EXCEPTION (internal), NOT_LEADER_OR_FOLLOWER,
             those of Partition.append.
    Source:  Kafka's KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend.
    """
    check_first_batches(request)
    return _Appending(broker, ctx, request).run()


class _Appending:
    """One Produce request."""

    __slots__ = ("_appended", "_broker", "_ctx", "_endpoints", "_failed", "_gated", "_request", "_response")

    def __init__(self, broker: View, ctx: Context, request: ProduceRequest) -> None:
        self._broker = broker
        self._ctx = ctx
        self._request = request
        self._appended: list[Appended] = []
        self._endpoints: dict[int, ProduceResponseNodeEndpoint] = {}
        self._failed = False
        self._gated: list[Entry] = []
        self._response = ProduceResponse(responses=[])

    def run(self) -> Decision:
        """Append what may be appended now; the rest after the gate."""
        entries = self._entries()
        transactional_id = self._request.transactional_id
        producer = None if transactional_id is None else producer_of(entries)
        for entry in entries:
            if producer is not None and has_producer(entry.records):
                self._to_the_gate(entry, producer)
            else:
                self._append(entry)
        if self._gated:
            assert producer is not None
            assert transactional_id is not None
            names = [(self._topic_of(entry).name, entry.partition) for entry in self._gated]
            refused = self._broker.transactions.before_produce(
                self._ctx, transactional_id, *producer, names, self._later
            )
            if refused is None:
                for each in self._appended:
                    each.flush_state.then(partial(self._lost, each.answer))
                return Decision(LATER)
            self._pass_gate(refused)
        response = self._done()
        reply = NO_REPLY if response is None else LATER if self._waits(response) else response
        reads = [each.flush_state for each in self._appended]
        close = response is None and self._failed
        return Decision(reply, shard=self._broker.metadata_shard, reads=reads, close=close)

    def _waits(self, response: ProduceResponse | None) -> bool:
        """Whether the answer is left to an AcksWait."""
        if response is None or self._request.acks != -1 or not any(each.waits for each in self._appended):
            return False
        AcksWait(self._broker, self._ctx, response, self._appended).begin(self._request.timeout_ms)
        return True

    def _entries(self) -> list[Entry]:
        """The batches to append, one a partition. The others are refused; every partition has one answer."""
        rows: dict[tuple[str, bytes], TopicProduceResponse] = {}
        answers: dict[tuple[str, bytes, int], PartitionProduceResponse] = {}
        entries: dict[tuple[str, bytes, int], Entry] = {}
        broken: set[tuple[str, bytes, int]] = set()
        zstd_allowed = self._ctx.api_version >= ZSTD_SINCE
        for topic_data in self._request.topic_data:
            label = topic_data.name, topic_data.topic_id
            row = rows.get(label)
            if row is None:
                row = rows[label] = TopicProduceResponse(
                    name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=[]
                )
                self._response.responses.append(row)
            topic = find_topic(self._broker.partitions.metadata, self._ctx.api_version, *label)
            for data in topic_data.partition_data:
                key = (*label, data.index)
                answer = answers.get(key)
                if answer is None:
                    answer = answers[key] = PartitionProduceResponse(index=data.index)
                    row.partition_responses.append(answer)
                if isinstance(topic, KafkaError):
                    self._refuse(answer, topic)
                    continue
                try:
                    if not 0 <= data.index < len(topic.partitions):
                        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    records = b"" if data.records is None else one_batch(data.records, zstd_allowed)
                    entries[key] = Entry(topic_data, data.index, records, answer)
                except KafkaError as error:
                    self._refuse(answer, error)
                    broken.add(key)
        return [
            entry._replace(answer=PartitionProduceResponse(index=entry.partition)) if key in broken else entry
            for key, entry in entries.items()
        ]

    def _to_the_gate(self, entry: Entry, producer: tuple[int, int]) -> None:
        """Append a transactional batch whose partition has the transaction open; keep any other for the gate."""
        topic = self._topic_of(entry)
        try:
            partition = _led(self._broker, self._ctx, topic, entry.partition)
            if not partition.has_open_transaction(*producer):
                partition.check_epoch(*producer)
                self._gated.append(entry)
                return
        except KafkaError as error:
            self._refuse(entry.answer, error, topic=topic)
            return
        self._append(entry)

    def _append(self, entry: Entry) -> None:
        """Append one batch and fill in its answer."""
        broker, ctx, answer = self._broker, self._ctx, entry.answer
        topic = find_topic(
            broker.partitions.metadata, ctx.api_version, entry.topic_data.name, entry.topic_data.topic_id
        )
        partition: Partition | None = None
        try:
            if isinstance(topic, KafkaError):
                raise topic  # it was deleted while the batch was at the gate
            if not entry.records:
                raise invalid_record("There are no records")
            if not -1 <= self._request.acks <= 1:
                raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
            if topic.internal and ctx.client_id != ADMIN_CLIENT:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}")
            partition = _led(broker, ctx, topic, entry.partition)
            if partition.is_held and self._request.acks == -1:
                error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Fewer replicas are in sync than the minimum.")
                partition.refused(entry.records, error)
                raise error
            answer.base_offset, answer.log_append_time_ms = partition.append(
                entry.records,
                broker.turn.now_ms,
                zstd_allowed=ctx.api_version >= ZSTD_SINCE,
                begins_at_zero=ctx.api_version >= PRODUCE_ADDS_SINCE,
            )
        except (KafkaError, StorageError) as refused:
            error = refused if isinstance(refused, KafkaError) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
            self._refuse(answer, error, partition, topic)
            return
        answer.log_start_offset = partition.log.log_start_offset
        flush_state = partition.flush_state
        if not flush_state.queued:
            broker.turn.touch(flush_state)
        self._appended.append(Appended.of(partition, entry.records, answer))

    def _refuse(
        self,
        answer: PartitionProduceResponse,
        error: KafkaError,
        partition: Partition | None = None,
        topic: Topic | KafkaError | None = None,
    ) -> None:
        self._failed = True
        answer.error_code = error.code
        answer.error_message = error.message
        answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
        if isinstance(error, RecordsRefusedError):
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
                for at, message in error.errors
            ]
        if partition is not None and error.code not in _NO_START_OFFSET:
            answer.log_start_offset = partition.log.log_start_offset
        if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._ctx.api_version >= LEADER_SINCE and topic:
            _name_leader(self._broker, self._ctx, answer, topic, self._endpoints)

    def _lost(self, answer: PartitionProduceResponse, durable: bool) -> None:
        """Batches that did not wait for the gate are durable, or could not be written."""
        if not durable:
            self._refuse(answer, KafkaError(lost_code(ApiKey.PRODUCE)))

    # ---------------------------------------------------------------- the gate

    def _topic_of(self, entry: Entry) -> Topic:
        label = entry.topic_data.name, entry.topic_data.topic_id
        topic = find_topic(self._broker.partitions.metadata, self._ctx.api_version, *label)
        assert not isinstance(topic, KafkaError)
        return topic

    def _pass_gate(self, refused: Refused) -> None:
        gated, self._gated = self._gated, []
        for entry in gated:
            label = entry.topic_data.name, entry.topic_data.topic_id
            topic = find_topic(self._broker.partitions.metadata, self._ctx.api_version, *label)
            code = ErrorCode.NONE if isinstance(topic, KafkaError) else refused.get((topic.name, entry.partition))
            if code:
                self._refuse_at_gate(topic, entry, code)
            else:
                self._append(entry)

    def _refuse_at_gate(self, topic: Any, entry: Entry, code: ErrorCode) -> None:
        message = None
        if code == ErrorCode.INVALID_TXN_STATE:
            message = "The partition is not part of the transaction"
        elif code == ErrorCode.NOT_ENOUGH_REPLICAS:
            message = "Cannot verify now whether the partition is part of the transaction"
        error = KafkaError(code, message)
        self._refuse(entry.answer, error)
        try:
            self._broker.partitions.get(topic, entry.partition).refused(entry.records, error)
        except KafkaError:  # the partition has moved, or its log is out of use
            return

    def _later(self, refused: Refused) -> None:
        """The gate has decided: append what it admits, and answer when that is durable."""
        broker = self._broker
        token: Any = self._ctx.token
        self._pass_gate(refused)
        parked = broker.parked.find(token)
        if parked is None:
            return  # the connection is closed; its records belong to the transaction all the same
        connection, slot = token
        response, durability = self._done(), broker.turn.durability
        if self._waits(response):
            return
        if response is not None:
            broker.parked.answer(token, response)
            for flush_state in (*(each.flush_state for each in self._appended), broker.metadata_shard.flush_state):
                if not durability.is_settled(flush_state):
                    durability.hold(flush_state, (connection, slot, *parked.frame))
        elif self._failed:
            connection.refuse("Produce with acks=0 failed")
        else:
            broker.parked.drop(token)
            connection.parked.discard(slot)
            connection.fill(slot, b"")
            durability.speaks(connection)

    def _done(self) -> ProduceResponse | None:
        if self._request.acks == 0:
            return None
        self._response.node_endpoints = list(self._endpoints.values())
        return self._response


def _led(broker: View, ctx: Context, topic: Topic, index: int) -> Partition:
    """The partition, if this node leads it. Errors: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR."""
    if topic.partitions[index].leader != ctx.node_id:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    partition = broker.partitions.get(topic, index)
    if partition.metadata_version != broker.partitions.metadata.version or partition.topic is not topic:
        partition.configure(topic, broker.partitions.metadata)
    if partition.is_behind:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return partition


def _name_leader(
    broker: View,
    ctx: Context,
    answer: PartitionProduceResponse,
    topic: Topic | KafkaError,
    endpoints: dict[int, ProduceResponseNodeEndpoint],
) -> None:
    """Name the leader to a client that asked another node (KIP-951)."""
    assert not isinstance(topic, KafkaError)
    info = topic.partitions[answer.index]
    answer.current_leader = ProduceResponseLeaderIdAndEpoch(leader_id=info.leader, leader_epoch=info.leader_epoch)
    if info.leader not in endpoints:
        host, port = broker.nodes.endpoint(info.leader, ctx)
        if port >= 0:
            endpoints[info.leader] = ProduceResponseNodeEndpoint(node_id=info.leader, host=host, port=port)
