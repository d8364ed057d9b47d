"""Messages of idempotent and transactional producers."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, String, Uuid


@message(api_key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest(Message):
    """Ask for a producer id and fence older producers.

    3 resume with id and epoch; 4 knows PRODUCER_FENCED; 5 TRANSACTION_ABORTABLE; 6 two-phase commit
    (KIP-939).
    """

    transactional_id: str | None = field(String, nullable="0+")
    transaction_timeout_ms: int = field(Int32)
    producer_id: int = field(Int64, "3+", default=-1)
    producer_epoch: int = field(Int16, "3+", default=-1)
    enable_2pc: bool = field(Bool, "6+")
    keep_prepared_txn: bool = field(Bool, "6+")


@message(api_key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse(Message):
    """Producer id and epoch.

    6 the prepared transaction.
    """

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    producer_id: int = field(Int64, default=-1)
    producer_epoch: int = field(Int16)
    ongoing_txn_producer_id: int = field(Int64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = field(Int16, "6+", default=-1)


@nested
class AddPartitionsToTxnTopic(Message):
    name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class AddPartitionsToTxnTransaction(Message):
    transactional_id: str = field(String, "4+")
    producer_id: int = field(Int64, "4+")
    producer_epoch: int = field(Int16, "4+")
    verify_only: bool = field(Bool, "4+")
    topics: list[AddPartitionsToTxnTopic] = field(Array(AddPartitionsToTxnTopic), "4+")


@message(api_key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Message):
    """Add partitions to a transaction.

    Up to 3 from clients; from 4 between brokers, for several transactions, perhaps only to verify.
    """

    transactions: list[AddPartitionsToTxnTransaction] = field(Array(AddPartitionsToTxnTransaction), "4+")
    v3_and_below_transactional_id: str = field(String, "0-3")
    v3_and_below_producer_id: int = field(Int64, "0-3")
    v3_and_below_producer_epoch: int = field(Int16, "0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(Array(AddPartitionsToTxnTopic), "0-3")


@nested
class AddPartitionsToTxnPartitionResult(Message):
    partition_index: int = field(Int32)
    partition_error_code: int = field(Int16)


@nested
class AddPartitionsToTxnTopicResult(Message):
    name: str = field(String)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(Array(AddPartitionsToTxnPartitionResult))


@nested
class AddPartitionsToTxnResult(Message):
    transactional_id: str = field(String, "4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = field(Array(AddPartitionsToTxnTopicResult), "4+")


@message(api_key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Message):
    """An error code for each partition."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, "4+")
    results_by_transaction: list[AddPartitionsToTxnResult] = field(Array(AddPartitionsToTxnResult), "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        Array(AddPartitionsToTxnTopicResult), "0-3"
    )


@message(api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Message):
    """Add a group's offsets to a transaction."""

    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    group_id: str = field(String)


@message(api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Message):
    """Whether they were added."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)


@message(api_key=26, versions="0-5", flexible="3+")
class EndTxnRequest(Message):
    """Commit or abort a transaction.

    5 the epoch rises with every transaction (KIP-890).
    """

    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    committed: bool = field(Bool)


@message(api_key=26, versions="0-5", flexible="3+")
class EndTxnResponse(Message):
    """Whether it ends.

    5 the next producer id and epoch.
    """

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    producer_id: int = field(Int64, "5+", default=-1)
    producer_epoch: int = field(Int16, "5+", default=-1)


@nested
class WritableTxnMarkerTopic(Message):
    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@nested
class WritableTxnMarker(Message):
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    transaction_result: bool = field(Bool)
    topics: list[WritableTxnMarkerTopic] = field(Array(WritableTxnMarkerTopic))
    coordinator_epoch: int = field(Int32)
    transaction_version: int = field(Int8, "2+")


@message(api_key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersRequest(Message):
    """The transaction coordinator has markers written.

    2 transaction version (KIP-1228).
    """

    markers: list[WritableTxnMarker] = field(Array(WritableTxnMarker))


@nested
class WritableTxnMarkerPartitionResult(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@nested
class WritableTxnMarkerTopicResult(Message):
    name: str = field(String)
    partitions: list[WritableTxnMarkerPartitionResult] = field(Array(WritableTxnMarkerPartitionResult))


@nested
class WritableTxnMarkerResult(Message):
    producer_id: int = field(Int64)
    topics: list[WritableTxnMarkerTopicResult] = field(Array(WritableTxnMarkerTopicResult))


@message(api_key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse(Message):
    """An error code for each partition."""

    markers: list[WritableTxnMarkerResult] = field(Array(WritableTxnMarkerResult))


@nested
class TxnOffsetCommitRequestPartition(Message):
    partition_index: int = field(Int32)
    committed_offset: int = field(Int64)
    committed_leader_epoch: int = field(Int32, "2+", default=-1)
    committed_metadata: str | None = field(String, nullable="0+")


@nested
class TxnOffsetCommitRequestTopic(Message):
    name: str = field(String, "0-5")
    topic_id: bytes = field(Uuid, "6+")
    partitions: list[TxnOffsetCommitRequestPartition] = field(Array(TxnOffsetCommitRequestPartition))


@message(api_key=28, versions="0-6", flexible="3+")
class TxnOffsetCommitRequest(Message):
    """Commit offsets within a transaction.

    2 leader epoch; 3 member, generation, instance (KIP-447); 5 adds the group to the transaction by
    itself (KIP-890); 6 topic ids (KIP-1319).
    """

    transactional_id: str = field(String)
    group_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    generation_id_or_member_epoch: int = field(Int32, "3+", default=-1)
    member_id: str = field(String, "3+")
    group_instance_id: str | None = field(String, "3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field(Array(TxnOffsetCommitRequestTopic))


@nested
class TxnOffsetCommitResponsePartition(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@nested
class TxnOffsetCommitResponseTopic(Message):
    name: str = field(String, "0-5")
    topic_id: bytes = field(Uuid, "6+")
    partitions: list[TxnOffsetCommitResponsePartition] = field(Array(TxnOffsetCommitResponsePartition))


@message(api_key=28, versions="0-6", flexible="3+")
class TxnOffsetCommitResponse(Message):
    """An error code for each partition."""

    throttle_time_ms: int = field(Int32)
    topics: list[TxnOffsetCommitResponseTopic] = field(Array(TxnOffsetCommitResponseTopic))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case InitProducerIdRequest():
            return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
        case AddPartitionsToTxnRequest():
            if api_version >= 4:
                return AddPartitionsToTxnResponse(error_code=code)
            refused = [
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                        for index in topic.partitions
                    ],
                )
                for topic in request.v3_and_below_topics
            ]
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=refused)
        case AddOffsetsToTxnRequest():
            return AddOffsetsToTxnResponse(error_code=code)
        case EndTxnRequest():
            return EndTxnResponse(error_code=code)
        case WriteTxnMarkersRequest():
            return WriteTxnMarkersResponse(markers=[_refused_marker(each, code) for each in request.markers])
        case TxnOffsetCommitRequest():
            return TxnOffsetCommitResponse(
                topics=[
                    TxnOffsetCommitResponseTopic(
                        name=each.name,
                        topic_id=each.topic_id,
                        partitions=[
                            TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                            for partition in each.partitions
                        ],
                    )
                    for each in request.topics
                ]
            )
    raise TypeError(f"not a request of this family: {request!r}")


def _refused_marker(marker: WritableTxnMarker, code: ErrorCode) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
