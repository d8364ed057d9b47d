"""Requests of tools: list and describe transactions, and end one that hangs (KIP-664).

ListTransactions      v1: by age (KIP-994). v2: by a pattern of the transactional id (KIP-1152).
DescribeTransactions  State, timeout and partitions of transactions.
WriteTxnMarkers       Between brokers in Kafka, and from `kafka-transactions.sh abort`. v2: transaction version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.patterns import STEPS_A_SLICE, PatternError, compiled
from broker.coordinator.transactions.transaction import STATE_NAMES, Transaction
from broker.turn.decision import LATER, Decision, _Later
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
    TopicData,
)
from protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.record_batch import NO_PRODUCER_ID
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.topics import Topic
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests

_NAMES: Final = frozenset(STATE_NAMES.values())
NO_EPOCH: Final = -1


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def parked(self) -> ParkedRequests: ...
    @property
    def turn(self) -> Turn: ...


def list_transactions(broker: View, ctx: Context, request: ListTransactionsRequest) -> Decision:
    """Answer the transactions that this node coordinates and that pass all filters, as they are now.

    Errors:  COORDINATOR_LOAD_IN_PROGRESS, INVALID_REGULAR_EXPRESSION; the response names unknown states.
    Source:  Kafka's TransactionStateManager.listTransactionStates.
    """
    states = set(request.state_filters)

    def passes(transaction: Transaction) -> bool:
        return (
            (not request.producer_id_filters or transaction.producer_id in request.producer_id_filters)
            and (not states or STATE_NAMES[transaction.state] in states)
            and not 0 <= request.duration_filter >= ctx.now_ms - transaction.start_ms
        )

    response = ListTransactionsResponse(
        unknown_state_filters=list(dict.fromkeys([state for state in request.state_filters if state not in _NAMES])),
        transaction_states=[
            ListTransactionsResponseTransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=STATE_NAMES[transaction.state],
            )
            for shard in broker.transactions.own_shards(ctx)
            for transaction in shard.machine
            if passes(transaction)
        ],
    )
    return Decision(_matching(broker, ctx, request.transactional_id_pattern, response))


def _matching(
    broker: View, ctx: Context, expression: str | None, response: ListTransactionsResponse
) -> ListTransactionsResponse | _Later:
    """Keep the transactions whose ids match. LATER: there are many, and the rest is matched between turns.

    Errors:  INVALID_REGULAR_EXPRESSION.
    """
    if not expression:
        return response
    try:
        pattern = compiled(expression)
    except PatternError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"Transaction ID pattern `{expression}` is not a valid regular expression: {error}.",
        ) from None
    found, response.transaction_states = response.transaction_states, []

    def match() -> Iterator[None]:
        steps = 0
        for transaction in found:
            steps += pattern.steps(transaction.transactional_id)
            if steps > STEPS_A_SLICE:
                steps = pattern.steps(transaction.transactional_id)
                yield
            if pattern.matches(transaction.transactional_id):
                response.transaction_states.append(transaction)

    matching = match()
    try:
        next(matching)
    except StopIteration:
        return response

    def rest() -> Iterator[None]:
        for _ in matching:
            yield
            if ctx.token not in broker.parked:
                return  # the client has left
        broker.parked.answer(ctx.token, response)

    broker.turn.jobs.add(rest())
    return LATER


def describe_transactions(broker: View, ctx: Context, request: DescribeTransactionsRequest) -> Decision:
    """Answer the state of each id. Errors, of an id: INVALID_REQUEST, NOT_COORDINATOR, TRANSACTIONAL_ID_NOT_FOUND."""
    return Decision(
        DescribeTransactionsResponse(
            transaction_states=[_describe(broker, ctx, name) for name in request.transactional_ids]
        )
    )


def _describe(broker: View, ctx: Context, name: str) -> DescribeTransactionsResponseTransactionState:
    answer = DescribeTransactionsResponseTransactionState(transactional_id=name)
    try:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        transaction: Transaction | None = broker.transactions.shard(name, ctx).machine.transactions.get(name)
        if transaction is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    answer.transaction_state = STATE_NAMES[transaction.state]
    answer.transaction_timeout_ms = transaction.timeout_ms
    answer.transaction_start_time_ms = transaction.start_ms
    answer.producer_id = transaction.producer_id
    answer.producer_epoch = transaction.producer_epoch
    answer.topics = [
        TopicData(topic=topic, partitions=list(indexes)) for topic, indexes in transaction.partitions.items()
    ]
    return answer


def write_txn_markers(broker: View, ctx: Context, request: WriteTxnMarkersRequest) -> Decision:
    """Append markers regardless of the coordinator's state. The reply waits for all their logs.

    Shape:   topics without partitions, and markers without topics, are left out of the response.

    Errors:  a partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH,
             TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR, UNKNOWN_SERVER_ERROR (no producer id or epoch).
    Source:  Kafka's KafkaApis.handleWriteTxnMarkersRequest.
    """
    flush_states: list[Any] = []
    response = WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=_mark(broker, ctx, marker, topic.name, index, flush_states),
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                    if topic.partition_indexes
                ],
            )
            for marker in request.markers
            if any(topic.partition_indexes for topic in marker.topics)
        ]
    )
    return Decision(response, reads=tuple(flush_states))


def _mark(
    broker: View, ctx: Context, marker: WritableTxnMarker, name: str, index: int, flush_states: list[Any]
) -> ErrorCode:
    topic = broker.metadata.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    info = topic.partitions[index]
    if ctx.node_id not in (info.leader, *info.replicas):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # as in Kafka: this node has no copy of it
    if info.leader != ctx.node_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if marker.producer_id == NO_PRODUCER_ID or marker.producer_epoch == NO_EPOCH:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # as in Kafka, where no batch can be made of such a marker
    if marker.transaction_version == -1:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # as in Kafka, which takes any version above 2 for 2, below 0 for 0
    try:
        if name == OFFSETS_TOPIC:
            _check_offsets_marker(broker, topic, index, marker)
        flush_state = broker.transactions.write_marker(
            name,
            index,
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            commit=marker.transaction_result,
            transaction_version=marker.transaction_version,
        )
    except KafkaError as error:
        loading = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if loading else error.code
    except (OSError, StorageError):
        return ErrorCode.KAFKA_STORAGE_ERROR
    assert flush_state is not None
    broker.turn.touch(flush_state)
    flush_states.append(flush_state)
    return ErrorCode.NONE


def _check_offsets_marker(broker: View, topic: Topic, index: int, marker: WritableTxnMarker) -> None:
    """Check a marker for a log of groups. Pending offsets have no epoch of their producer, but the log's batches do.

    Errors:  INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR; OSError, StorageError.
    """
    partition = broker.partitions.get(topic, index)
    broker.turn.durability.settle_now(partition.flush_state)  # the partition reads what is durable
    partition.known_producers()  # reads the log up to there
    partition.producers.check_marker(
        marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_version
    )
