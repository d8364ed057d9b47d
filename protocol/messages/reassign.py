"""Messages that elect leaders and move replicas, between brokers or between the log directories of one."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int8, Int16, Int32, String


@nested
class ElectLeadersRequestTopicPartitions(Message):
    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(api_key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest(Message):
    """Elect leaders of partitions; null means all.

    1 kind of election (KIP-460).
    """

    election_type: int = field(Int8, "1+")
    topic_partitions: list[ElectLeadersRequestTopicPartitions] | None = field(
        Array(ElectLeadersRequestTopicPartitions), nullable="0+"
    )
    timeout_ms: int = field(Int32, default=60000)


@nested
class PartitionResult(Message):
    partition_id: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")


@nested
class ReplicaElectionResult(Message):
    topic: str = field(String)
    partition_result: list[PartitionResult] = field(Array(PartitionResult))


@message(api_key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse(Message):
    """A result for each partition.

    1 top-level error.
    """

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, "1+")
    replica_election_results: list[ReplicaElectionResult] = field(Array(ReplicaElectionResult))


@nested
class ReassignablePartition(Message):
    partition_index: int = field(Int32)
    replicas: list[int] | None = field(Array(Int32), nullable="0+", default=None)


@nested
class ReassignableTopic(Message):
    name: str = field(String)
    partitions: list[ReassignablePartition] = field(Array(ReassignablePartition))


@message(api_key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Message):
    """Move replicas (KIP-455).

    1 whether the replication factor may change.
    """

    timeout_ms: int = field(Int32, default=60000)
    allow_replication_factor_change: bool = field(Bool, "1+", default=True)
    topics: list[ReassignableTopic] = field(Array(ReassignableTopic))


@nested
class ReassignablePartitionResponse(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")


@nested
class ReassignableTopicResponse(Message):
    name: str = field(String)
    partitions: list[ReassignablePartitionResponse] = field(Array(ReassignablePartitionResponse))


@message(api_key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Message):
    """A result for each partition."""

    throttle_time_ms: int = field(Int32)
    allow_replication_factor_change: bool = field(Bool, "1+", default=True)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    responses: list[ReassignableTopicResponse] = field(Array(ReassignableTopicResponse))


@nested
class ListPartitionReassignmentsTopics(Message):
    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@message(api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest(Message):
    """Ask for moves under way; null means all (KIP-455)."""

    timeout_ms: int = field(Int32, default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        Array(ListPartitionReassignmentsTopics), nullable="0+", default=None
    )


@nested
class OngoingPartitionReassignment(Message):
    partition_index: int = field(Int32)
    replicas: list[int] = field(Array(Int32))
    adding_replicas: list[int] = field(Array(Int32))
    removing_replicas: list[int] = field(Array(Int32))


@nested
class OngoingTopicReassignment(Message):
    name: str = field(String)
    partitions: list[OngoingPartitionReassignment] = field(Array(OngoingPartitionReassignment))


@message(api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(Message):
    """Moves under way."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    topics: list[OngoingTopicReassignment] = field(Array(OngoingTopicReassignment))


@nested
class AlterReplicaLogDirTopic(Message):
    name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class AlterReplicaLogDir(Message):
    path: str = field(String)
    topics: list[AlterReplicaLogDirTopic] = field(Array(AlterReplicaLogDirTopic))


@message(api_key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest(Message):
    """Move replicas to log directories of the broker that is asked (KIP-113)."""

    dirs: list[AlterReplicaLogDir] = field(Array(AlterReplicaLogDir))


@nested
class AlterReplicaLogDirPartitionResult(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@nested
class AlterReplicaLogDirTopicResult(Message):
    topic_name: str = field(String)
    partitions: list[AlterReplicaLogDirPartitionResult] = field(Array(AlterReplicaLogDirPartitionResult))


@message(api_key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse(Message):
    """A result for each partition."""

    throttle_time_ms: int = field(Int32)
    results: list[AlterReplicaLogDirTopicResult] = field(Array(AlterReplicaLogDirTopicResult))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case ElectLeadersRequest():
            results = [
                ReplicaElectionResult(
                    topic=topic.topic,
                    partition_result=[
                        PartitionResult(partition_id=index, error_code=code, error_message=message)
                        for index in topic.partitions
                    ],
                )
                for topic in request.topic_partitions or ()
            ]
            return ElectLeadersResponse(error_code=code, replica_election_results=results)
        case AlterPartitionReassignmentsRequest():
            responses = [
                ReassignableTopicResponse(
                    name=each.name,
                    partitions=[
                        ReassignablePartitionResponse(
                            partition_index=partition.partition_index, error_code=code, error_message=message
                        )
                        for partition in each.partitions
                    ],
                )
                for each in request.topics
            ]
            return AlterPartitionReassignmentsResponse(error_code=code, error_message=message, responses=responses)
        case ListPartitionReassignmentsRequest():
            topics = [
                OngoingTopicReassignment(
                    name=asked.name,
                    partitions=[OngoingPartitionReassignment(partition_index=i) for i in asked.partition_indexes],
                )
                for asked in request.topics or ()
            ]
            return ListPartitionReassignmentsResponse(error_code=code, error_message=message, topics=topics)
        case AlterReplicaLogDirsRequest():
            moves = [
                AlterReplicaLogDirTopicResult(
                    topic_name=topic.name,
                    partitions=[
                        AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                        for index in topic.partitions
                    ],
                )
                for directory in request.dirs
                for topic in directory.topics
            ]
            return AlterReplicaLogDirsResponse(results=moves)
    raise TypeError(f"not a request of this family: {request!r}")
