"""Messages that describe and list transactions and producers (KIP-664)."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Int16, Int32, Int64, String


@message(api_key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest(Message):
    """Ask for the state of transactions (KIP-664)."""

    transactional_ids: list[str] = field(Array(String))


@nested
class TopicData(Message):
    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class DescribeTransactionsResponseTransactionState(Message):
    error_code: int = field(Int16)
    transactional_id: str = field(String)
    transaction_state: str = field(String)
    transaction_timeout_ms: int = field(Int32)
    transaction_start_time_ms: int = field(Int64)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    topics: list[TopicData] = field(Array(TopicData))


@message(api_key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse(Message):
    """State of each transactional id."""

    throttle_time_ms: int = field(Int32)
    transaction_states: list[DescribeTransactionsResponseTransactionState] = field(
        Array(DescribeTransactionsResponseTransactionState)
    )


@message(api_key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest(Message):
    """Ask for all transactions (KIP-664).

    1 by age (KIP-994); 2 by pattern (KIP-1152).
    """

    state_filters: list[str] = field(Array(String))
    producer_id_filters: list[int] = field(Array(Int64))
    duration_filter: int = field(Int64, "1+", default=-1)
    transactional_id_pattern: str | None = field(String, "2+", nullable="2+", default=None)


@nested
class ListTransactionsResponseTransactionState(Message):
    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    transaction_state: str = field(String)


@message(api_key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse(Message):
    """Transactional ids with producer id and state."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    unknown_state_filters: list[str] = field(Array(String))
    transaction_states: list[ListTransactionsResponseTransactionState] = field(
        Array(ListTransactionsResponseTransactionState)
    )


@nested
class DescribeProducersRequestTopicRequest(Message):
    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@message(api_key=61, versions="0", flexible="0+")
class DescribeProducersRequest(Message):
    """Ask which producers write to partitions (KIP-664)."""

    topics: list[DescribeProducersRequestTopicRequest] = field(Array(DescribeProducersRequestTopicRequest))


@nested
class ProducerState(Message):
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int32)
    last_sequence: int = field(Int32, default=-1)
    last_timestamp: int = field(Int64, default=-1)
    coordinator_epoch: int = field(Int32)
    current_txn_start_offset: int = field(Int64, default=-1)


@nested
class PartitionResponse(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    active_producers: list[ProducerState] = field(Array(ProducerState))


@nested
class TopicResponse(Message):
    name: str = field(String)
    partitions: list[PartitionResponse] = field(Array(PartitionResponse))


@message(api_key=61, versions="0", flexible="0+")
class DescribeProducersResponse(Message):
    """Active producers of each partition."""

    throttle_time_ms: int = field(Int32)
    topics: list[TopicResponse] = field(Array(TopicResponse))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case DescribeTransactionsRequest():
            return DescribeTransactionsResponse(
                transaction_states=[
                    DescribeTransactionsResponseTransactionState(transactional_id=each, error_code=code)
                    for each in request.transactional_ids
                ]
            )
        case ListTransactionsRequest():
            return ListTransactionsResponse(error_code=code)
        case DescribeProducersRequest():
            return DescribeProducersResponse(
                topics=[
                    TopicResponse(
                        name=each.name,
                        partitions=[
                            PartitionResponse(partition_index=index, error_code=code, error_message=message)
                            for index in each.partition_indexes
                        ],
                    )
                    for each in request.topics
                ]
            )
    raise TypeError(f"not a request of this family: {request!r}")
