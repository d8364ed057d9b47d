"""Produce: append record batches to partitions that this node leads.

Produce  v5: LogStartOffset. v7: zstd. v8: RecordErrors and ErrorMessage (KIP-467). v10: CurrentLeader and NodeEndpoints
         (KIP-951). v12: adds partitions to transactions (KIP-890). v13: topic ids in place of names (KIP-516).

Behaviour: one batch of magic 2 a partition; partitions/incoming_batch.py and producers.py have the rules for it. The
           reply waits for the flush of every partition it touched. acks: 0 gets no reply, and an error closes the
           connection; 1 and -1 mean the same, since a log has one replica. A transactional batch whose partition does
           not have the transaction open goes through transactions/gate.py first. The other batches of the request do
           not wait for it, or the next request would overtake them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.coordinator.result import PARKED, _Parked
from broker.coordinator.transactions.gate import PRODUCE_ADDS_SINCE
from broker.partitions.record_rules import ZSTD_SINCE, NotOneBatchError, RecordsRefusedError, is_transactional
from broker.wire.errors import lost_code
from protocol.api import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    TopicProduceData,
    TopicProduceResponse,
)
from protocol.record_batch import HEADER, HEADER_BYTES
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.metadata import Topic
    from broker.cluster.nodes import Nodes
    from broker.coordinator.result import Context
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.coordinator.transactions.gate import Refused
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from broker.turn.durability import FlushState
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests

LEADER_SINCE: Final = 10
TOPIC_IDS_SINCE: Final = 13
ADMIN_CLIENT: Final = "__admin_client"  # the one client id that may write to internal topics

# refused before the partition is looked up: Kafka answers these without a log start offset
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
    def metadata_flush(self) -> FlushState: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def parked(self) -> ParkedRequests: ...
    @property
    def turn(self) -> Turn: ...


def produce(broker: View, ctx: Context, request: ProduceRequest) -> ProduceResponse | _Parked | None:
    """Append or refuse each batch, partition by partition. None: no reply (acks=0).

    Errors:  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: transactional records without a transactional id, the whole request.
             INVALID_PRODUCER_ID_MAPPING: transactional records of two producers, the whole request.
             a partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUIRED_ACKS, INVALID_TOPIC_EXCEPTION
             (internal), NOT_LEADER_OR_FOLLOWER, those of transactions/gate.py and Partition.append.
    Source:  Kafka's KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend.
    """
    producer = None
    if request.transactional_id is None:
        _refuse_anonymous_transactions(ctx, request)
    else:
        producer = _producer_of(request)
    return _Appending(broker, ctx, request, producer).run()


class _Appending:
    """One Produce request."""

    __slots__ = (
        "_appended",
        "_broker",
        "_ctx",
        "_endpoints",
        "_failed",
        "_gated",
        "_producer",
        "_request",
        "_response",
    )

    def __init__(self, broker: View, ctx: Context, request: ProduceRequest, producer: tuple[int, int] | None) -> None:
        self._broker = broker
        self._ctx = ctx
        self._request = request
        self._producer = producer  # id and epoch of the transactional records, if any
        self._appended: list[tuple[FlushState, PartitionProduceResponse]] = []
        self._endpoints: dict[int, ProduceResponseNodeEndpoint] = {}
        self._failed = False
        self._gated: list[tuple[TopicProduceData, PartitionProduceData, PartitionProduceResponse]] = []
        self._response = ProduceResponse(responses=[])

    def run(self) -> ProduceResponse | _Parked | None:
        """Append what may be appended now; the rest after the gate."""
        for topic_data in self._request.topic_data:
            row = TopicProduceResponse(name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=[])
            self._response.responses.append(row)
            for data in topic_data.partition_data:
                answer = PartitionProduceResponse(index=data.index)
                row.partition_responses.append(answer)
                self._append(topic_data, data, answer, gate=self._producer)
        if self._gated:
            assert self._producer is not None
            assert self._request.transactional_id is not None
            names = [(self._topic_name(topic_data), data.index) for topic_data, data, _ in self._gated]
            refused = self._broker.transactions.before_produce(
                self._ctx,
                self._request.transactional_id,
                *self._producer,
                names,
                self._later,
            )
            if refused is None:
                for flush_state, answer in self._appended:
                    flush_state.then(partial(self._lost, answer))
                return PARKED
            self._pass_gate(refused)
        return self._done()

    def _append(
        self,
        topic_data: TopicProduceData,
        data: PartitionProduceData,
        answer: PartitionProduceResponse,
        *,
        gate: tuple[int, int] | None,
    ) -> None:
        """Append one batch and fill in its answer, or keep it for the gate."""
        broker, ctx = self._broker, self._ctx
        topic = find_topic(broker, ctx.api_version, topic_data.name, topic_data.topic_id)
        partition: Partition | None = None
        try:
            partition = _writable(broker, ctx, self._request.acks, topic, data.index)
            if data.records is None:
                raise KafkaError(ErrorCode.INVALID_RECORD, "There are no records")
            if gate is not None and is_transactional(data.records) and not partition.has_open_transaction(*gate):
                partition.check_epoch(*gate)
                self._gated.append((topic_data, data, answer))
                return
            answer.base_offset, answer.log_append_time_ms = partition.append(
                data.records,
                broker.turn.now_ms,
                zstd_allowed=ctx.api_version >= ZSTD_SINCE,
                begins_at_zero=ctx.api_version >= PRODUCE_ADDS_SINCE,
            )
        except (KafkaError, StorageError) as refused:
            error = refused if isinstance(refused, KafkaError) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
            self._refuse(answer, error, partition)
            if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and ctx.api_version >= LEADER_SINCE and topic:
                _name_leader(broker, ctx, answer, topic, self._endpoints)
            return
        answer.log_start_offset = partition.log.log_start_offset
        flush_state = partition.flush_state
        if not flush_state.queued:
            broker.turn.touch(flush_state)
        self._appended.append((flush_state, answer))

    def _refuse(self, answer: PartitionProduceResponse, error: KafkaError, partition: Partition | None) -> None:
        self._failed = True
        answer.error_code = error.code
        answer.error_message = error.message
        answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
        if isinstance(error, RecordsRefusedError):
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
                for at, message in error.errors
            ]
        told = error.code not in _NO_START_OFFSET and not isinstance(error, NotOneBatchError)
        if partition is not None and told:
            answer.log_start_offset = partition.log.log_start_offset

    def _lost(self, answer: PartitionProduceResponse, durable: bool) -> None:
        """Batches that did not wait for the gate are durable, or could not be written."""
        if not durable:
            self._refuse(answer, KafkaError(lost_code(ApiKey.PRODUCE)), None)

    # ---------------------------------------------------------------- the gate

    def _topic_name(self, topic_data: TopicProduceData) -> str:
        topic = find_topic(self._broker, self._ctx.api_version, topic_data.name, topic_data.topic_id)
        assert not isinstance(topic, KafkaError)
        return topic.name

    def _pass_gate(self, refused: Refused) -> None:
        gated, self._gated = self._gated, []
        for topic_data, data, answer in gated:
            topic = find_topic(self._broker, self._ctx.api_version, topic_data.name, topic_data.topic_id)
            code = ErrorCode.NONE if isinstance(topic, KafkaError) else refused.get((topic.name, data.index))
            if code:
                self._refuse_at_gate(topic, data, answer, code)
            else:
                self._append(topic_data, data, answer, gate=None)

    def _refuse_at_gate(
        self, topic: Any, data: PartitionProduceData, answer: PartitionProduceResponse, code: ErrorCode
    ) -> None:
        message = None
        if code == ErrorCode.INVALID_TXN_STATE:
            message = "The partition is not part of the transaction"
        elif code == ErrorCode.NOT_ENOUGH_REPLICAS:
            message = "Cannot verify now whether the partition is part of the transaction"
        error = KafkaError(code, message)
        self._refuse(answer, error, None)
        try:
            self._broker.partitions.get(topic, data.index).refused(data.records, error)
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
        if response is not None:
            broker.parked.answer(token, response)
            for flush_state in (*self._ctx.flush_states, broker.metadata_flush):
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
            self._ctx.close_connection = self._failed
            return None
        self._ctx.flush_states = [flush_state for flush_state, _ in self._appended]
        self._response.node_endpoints = list(self._endpoints.values())
        return self._response


def _producer_of(request: ProduceRequest) -> tuple[int, int] | None:
    """Producer id and epoch of the transactional records of a request."""
    found: tuple[int, int] | None = None
    for topic_data in request.topic_data:
        for data in topic_data.partition_data:
            if data.records is not None and len(data.records) >= HEADER_BYTES and is_transactional(data.records):
                producer_id, producer_epoch = HEADER.unpack_from(data.records)[9:11]
                if producer_id < 0:
                    continue
                if found is not None and found != (producer_id, producer_epoch):
                    raise KafkaError(
                        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                        "Transactional records contained more than one producer ID",
                    )
                found = producer_id, producer_epoch
    return found


def find_topic(broker: View, api_version: int, name: str, topic_id: bytes) -> Topic | KafkaError:
    """The topic by name, or by id where the version has ids, or the error to answer."""
    topic: Topic | None
    if api_version >= TOPIC_IDS_SINCE:
        topic = broker.partitions.metadata.topics_by_id.get(topic_id)
        return topic or KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    topic = broker.partitions.metadata.topics.get(name)
    return topic or KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _writable(broker: View, ctx: Context, acks: int, topic: Topic | KafkaError, index: int) -> Partition:
    """The partition, if this client may write to it here."""
    if isinstance(topic, KafkaError):
        raise topic
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not -1 <= acks <= 1:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic.internal and ctx.client_id != ADMIN_CLIENT:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}")
    if topic.partitions[index].leader != ctx.node_id:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    partition = broker.partitions.get(topic, index)
    if partition.metadata_version != broker.partitions.metadata.version or partition.topic is not topic:
        partition.configure(topic, broker.partitions.metadata)
    return partition


def _refuse_anonymous_transactions(ctx: Context, request: ProduceRequest) -> None:
    for topic_data in request.topic_data:
        for data in topic_data.partition_data:
            if data.records is not None and is_transactional(data.records):
                if request.acks == 0:
                    ctx.close_connection = True
                raise KafkaError(
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    "Transactional records came without a transactional id",
                )


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
