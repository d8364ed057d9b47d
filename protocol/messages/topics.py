"""Messages that create, grow and delete topics and records."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, String, Uuid


@nested
class CreatableReplicaAssignment(Message):
    partition_index: int = field(Int32)
    broker_ids: list[int] = field(Array(Int32))


@nested
class CreatableTopicConfig(Message):
    name: str = field(String)
    value: str | None = field(String, nullable="0+")


@nested
class CreatableTopic(Message):
    name: str = field(String)
    num_partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    assignments: list[CreatableReplicaAssignment] = field(Array(CreatableReplicaAssignment))
    configs: list[CreatableTopicConfig] = field(Array(CreatableTopicConfig))


@message(api_key=19, versions="2-7", flexible="5+")
class CreateTopicsRequest(Message):
    """Create topics.

    4 partitions and replication factor may be -1, the broker's default (KIP-464).
    """

    topics: list[CreatableTopic] = field(Array(CreatableTopic))
    timeout_ms: int = field(Int32, default=60000)
    validate_only: bool = field(Bool, "1+")


@nested
class CreatableTopicConfigs(Message):
    name: str = field(String, "5+")
    value: str | None = field(String, "5+", nullable="5+")
    read_only: bool = field(Bool, "5+")
    config_source: int = field(Int8, "5+", default=-1)
    is_sensitive: bool = field(Bool, "5+")


@nested
class CreatableTopicResult(Message):
    name: str = field(String)
    topic_id: bytes = field(Uuid, "7+")
    error_code: int = field(Int16)
    error_message: str | None = field(String, "1+", nullable="0+")
    topic_config_error_code: int = field(Int16, "5+", tag=0, tagged="5+")
    num_partitions: int = field(Int32, "5+", default=-1)
    replication_factor: int = field(Int16, "5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = field(Array(CreatableTopicConfigs), "5+", nullable="5+")


@message(api_key=19, versions="2-7", flexible="5+")
class CreateTopicsResponse(Message):
    """A result for each topic.

    5 configs (KIP-525); 7 topic ids.
    """

    throttle_time_ms: int = field(Int32, "2+")
    topics: list[CreatableTopicResult] = field(Array(CreatableTopicResult))


@nested
class DeleteTopicState(Message):
    name: str | None = field(String, "6+", nullable="6+", default=None)
    topic_id: bytes = field(Uuid, "6+")


@message(api_key=20, versions="1-6", flexible="4+")
class DeleteTopicsRequest(Message):
    """Delete topics.

    6 by name or id.
    """

    topics: list[DeleteTopicState] = field(Array(DeleteTopicState), "6+")
    topic_names: list[str] = field(Array(String), "0-5")
    timeout_ms: int = field(Int32)


@nested
class DeletableTopicResult(Message):
    name: str | None = field(String, nullable="6+")
    topic_id: bytes = field(Uuid, "6+")
    error_code: int = field(Int16)
    error_message: str | None = field(String, "5+", nullable="5+", default=None)


@message(api_key=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse(Message):
    """A result for each topic.

    5 error message (KIP-599); 6 topic ids.
    """

    throttle_time_ms: int = field(Int32, "1+")
    responses: list[DeletableTopicResult] = field(Array(DeletableTopicResult))


@nested
class CreatePartitionsAssignment(Message):
    broker_ids: list[int] = field(Array(Int32))


@nested
class CreatePartitionsTopic(Message):
    name: str = field(String)
    count: int = field(Int32)
    assignments: list[CreatePartitionsAssignment] | None = field(Array(CreatePartitionsAssignment), nullable="0+")


@message(api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest(Message):
    """Raise the number of partitions of topics."""

    topics: list[CreatePartitionsTopic] = field(Array(CreatePartitionsTopic))
    timeout_ms: int = field(Int32)
    validate_only: bool = field(Bool)


@nested
class CreatePartitionsTopicResult(Message):
    name: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)


@message(api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse(Message):
    """A result for each topic."""

    throttle_time_ms: int = field(Int32)
    results: list[CreatePartitionsTopicResult] = field(Array(CreatePartitionsTopicResult))


@nested
class DeleteRecordsPartition(Message):
    partition_index: int = field(Int32)
    offset: int = field(Int64)


@nested
class DeleteRecordsTopic(Message):
    name: str = field(String)
    partitions: list[DeleteRecordsPartition] = field(Array(DeleteRecordsPartition))


@message(api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest(Message):
    """Move the start of logs forward."""

    topics: list[DeleteRecordsTopic] = field(Array(DeleteRecordsTopic))
    timeout_ms: int = field(Int32)


@nested
class DeleteRecordsPartitionResult(Message):
    partition_index: int = field(Int32)
    low_watermark: int = field(Int64)
    error_code: int = field(Int16)


@nested
class DeleteRecordsTopicResult(Message):
    name: str = field(String)
    partitions: list[DeleteRecordsPartitionResult] = field(Array(DeleteRecordsPartitionResult))


@message(api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse(Message):
    """The new start of each log."""

    throttle_time_ms: int = field(Int32)
    topics: list[DeleteRecordsTopicResult] = field(Array(DeleteRecordsTopicResult))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case CreateTopicsRequest():
            return CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(name=topic.name, error_code=code, error_message=message)
                    for topic in request.topics
                ]
            )
        case DeleteTopicsRequest():
            states = request.topics
            if api_version < 6:
                states = [DeleteTopicState(name=name) for name in request.topic_names]
            return DeleteTopicsResponse(
                responses=[
                    DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=code) for state in states
                ]
            )
        case CreatePartitionsRequest():
            return CreatePartitionsResponse(
                results=[
                    CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
                    for topic in request.topics
                ]
            )
        case DeleteRecordsRequest():
            return DeleteRecordsResponse(
                topics=[
                    DeleteRecordsTopicResult(
                        name=topic.name,
                        partitions=[
                            DeleteRecordsPartitionResult(
                                partition_index=partition.partition_index, low_watermark=-1, error_code=code
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
    raise TypeError(f"not a request of this family: {request!r}")
