"""Messages that append records."""

from __future__ import annotations

from typing import Any

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Int16, Int32, Int64, Records, String, Uuid


@nested
class PartitionProduceData(Message):
    index: int = field(Int32)
    records: Any = field(Records, nullable="0+")


@nested
class TopicProduceData(Message):
    name: str = field(String, "0-12")
    topic_id: bytes = field(Uuid, "13+")
    partition_data: list[PartitionProduceData] = field(Array(PartitionProduceData))


@message(api_key=0, versions="0-13", flexible="9+")
class ProduceRequest(Message):
    """Append record batches to partitions.

    0 to 2 have message sets (message_set.py); brokers without as.version advertise them for librdkafka's sake and
    refuse them (KAFKA-18659). 3 record batches, transactional id; 7 zstd; 11 knows TRANSACTION_ABORTABLE;
    12 adds the partition to the transaction by itself (KIP-890); 13 topic ids (KIP-516).
    """

    transactional_id: str | None = field(String, "3+", nullable="3+", default=None)
    acks: int = field(Int16)
    timeout_ms: int = field(Int32)
    topic_data: list[TopicProduceData] = field(Array(TopicProduceData))


@nested
class BatchIndexAndErrorMessage(Message):
    batch_index: int = field(Int32, "8+")
    batch_index_error_message: str | None = field(String, "8+", nullable="8+", default=None)


@nested
class ProduceResponseLeaderIdAndEpoch(Message):
    leader_id: int = field(Int32, "10+", default=-1)
    leader_epoch: int = field(Int32, "10+", default=-1)


@nested
class PartitionProduceResponse(Message):
    index: int = field(Int32)
    error_code: int = field(Int16)
    base_offset: int = field(Int64)
    log_append_time_ms: int = field(Int64, "2+", default=-1)
    log_start_offset: int = field(Int64, "5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = field(Array(BatchIndexAndErrorMessage), "8+")
    error_message: str | None = field(String, "8+", nullable="8+", default=None)
    current_leader: ProduceResponseLeaderIdAndEpoch | None = field(
        ProduceResponseLeaderIdAndEpoch, "10+", tag=0, tagged="10+"
    )


@nested
class TopicProduceResponse(Message):
    name: str = field(String, "0-12")
    topic_id: bytes = field(Uuid, "13+")
    partition_responses: list[PartitionProduceResponse] = field(Array(PartitionProduceResponse))


@nested
class ProduceResponseNodeEndpoint(Message):
    node_id: int = field(Int32, "10+")
    host: str = field(String, "10+")
    port: int = field(Int32, "10+")
    rack: str | None = field(String, "10+", nullable="10+", default=None)


@message(api_key=0, versions="0-13", flexible="9+")
class ProduceResponse(Message):
    """The base offset of each batch; not sent for acks=0.

    2 append time; 5 log start offset; 8 errors of single records (KIP-467); 10 current leader (KIP-951);
    13 topic ids.
    """

    responses: list[TopicProduceResponse] = field(Array(TopicProduceResponse))
    throttle_time_ms: int = field(Int32, "1+")
    node_endpoints: list[ProduceResponseNodeEndpoint] = field(
        Array(ProduceResponseNodeEndpoint), "10+", tag=0, tagged="10+"
    )


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it: once for each partition."""
    assert isinstance(request, ProduceRequest)
    partitions: dict[tuple[str, bytes], dict[int, None]] = {}
    for topic in request.topic_data:
        named = partitions.setdefault((topic.name, topic.topic_id), {})
        named.update((partition.index, None) for partition in topic.partition_data)
    responses = [
        TopicProduceResponse(
            name=name,
            topic_id=topic_id,
            partition_responses=[
                PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=message)
                for index in named
            ],
        )
        for (name, topic_id), named in partitions.items()
    ]
    return ProduceResponse(responses=responses)
