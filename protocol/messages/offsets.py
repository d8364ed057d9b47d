"""Messages that commit, fetch and delete a group's offsets."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int16, Int32, Int64, String, Uuid


@nested
class OffsetCommitRequestPartition(Message):
    partition_index: int = field(Int32)
    committed_offset: int = field(Int64)
    committed_leader_epoch: int = field(Int32, "6+", default=-1)
    commit_timestamp: int = field(Int64, "1", default=-1)
    committed_metadata: str | None = field(String, nullable="0+")


@nested
class OffsetCommitRequestTopic(Message):
    name: str = field(String, "0-9")
    topic_id: bytes = field(Uuid, "10+")
    partitions: list[OffsetCommitRequestPartition] = field(Array(OffsetCommitRequestPartition))


@message(api_key=8, versions="0-10", flexible="8+")
class OffsetCommitRequest(Message):
    """Commit offsets of one group.

    Apache Kafka 4 begins with 2; 0 and 1 are served as an extension. 0 has no member; 1 adds member,
    generation and a time for each partition; 2-4 retention time instead; 6 leader epoch; 7 instance id; 9
    KIP-848; 10 topic ids.
    """

    group_id: str = field(String)
    generation_id_or_member_epoch: int = field(Int32, "1+", default=-1)
    member_id: str = field(String, "1+")
    group_instance_id: str | None = field(String, "7+", nullable="7+", default=None)
    retention_time_ms: int = field(Int64, "2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = field(Array(OffsetCommitRequestTopic))


@nested
class OffsetCommitResponsePartition(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@nested
class OffsetCommitResponseTopic(Message):
    name: str = field(String, "0-9")
    topic_id: bytes = field(Uuid, "10+")
    partitions: list[OffsetCommitResponsePartition] = field(Array(OffsetCommitResponsePartition))


@message(api_key=8, versions="0-10", flexible="8+")
class OffsetCommitResponse(Message):
    """An error code for each partition.

    3 throttle time; 10 topic ids.
    """

    throttle_time_ms: int = field(Int32, "3+")
    topics: list[OffsetCommitResponseTopic] = field(Array(OffsetCommitResponseTopic))


@nested
class OffsetFetchRequestTopic(Message):
    name: str = field(String, "0-7")
    partition_indexes: list[int] = field(Array(Int32), "0-7")


@nested
class OffsetFetchRequestTopics(Message):
    name: str = field(String, "8-9")
    topic_id: bytes = field(Uuid, "10+")
    partition_indexes: list[int] = field(Array(Int32), "8+")


@nested
class OffsetFetchRequestGroup(Message):
    group_id: str = field(String, "8+")
    member_id: str | None = field(String, "9+", nullable="9+", default=None)
    member_epoch: int = field(Int32, "9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = field(Array(OffsetFetchRequestTopics), "8+", nullable="8+")


@message(api_key=9, versions="0-10", flexible="6+")
class OffsetFetchRequest(Message):
    """Ask for committed offsets.

    Apache Kafka 4 begins with 1; 0 is served as an extension. 2 null topics means all; 7 only stable
    offsets (KIP-447); 8 several groups (KIP-709); 9 member and epoch (KIP-848); 10 topic ids.
    """

    group_id: str = field(String, "0-7")
    topics: list[OffsetFetchRequestTopic] | None = field(Array(OffsetFetchRequestTopic), "0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field(Array(OffsetFetchRequestGroup), "8+")
    require_stable: bool = field(Bool, "7+")


@nested
class OffsetFetchResponsePartition(Message):
    partition_index: int = field(Int32, "0-7")
    committed_offset: int = field(Int64, "0-7")
    committed_leader_epoch: int = field(Int32, "5-7", default=-1)
    metadata: str | None = field(String, "0-7", nullable="0-7")
    error_code: int = field(Int16, "0-7")


@nested
class OffsetFetchResponseTopic(Message):
    name: str = field(String, "0-7")
    partitions: list[OffsetFetchResponsePartition] = field(Array(OffsetFetchResponsePartition), "0-7")


@nested
class OffsetFetchResponsePartitions(Message):
    partition_index: int = field(Int32, "8+")
    committed_offset: int = field(Int64, "8+")
    committed_leader_epoch: int = field(Int32, "8+", default=-1)
    metadata: str | None = field(String, "8+", nullable="8+")
    error_code: int = field(Int16, "8+")


@nested
class OffsetFetchResponseTopics(Message):
    name: str = field(String, "8-9")
    topic_id: bytes = field(Uuid, "10+")
    partitions: list[OffsetFetchResponsePartitions] = field(Array(OffsetFetchResponsePartitions), "8+")


@nested
class OffsetFetchResponseGroup(Message):
    group_id: str = field(String, "8+")
    topics: list[OffsetFetchResponseTopics] = field(Array(OffsetFetchResponseTopics), "8+")
    error_code: int = field(Int16, "8+")


@message(api_key=9, versions="0-10", flexible="6+")
class OffsetFetchResponse(Message):
    """Committed offsets: up to 7 of one group, from 8 of several.

    2 top-level error; 5 leader epoch; 10 topic ids.
    """

    throttle_time_ms: int = field(Int32, "3+")
    topics: list[OffsetFetchResponseTopic] = field(Array(OffsetFetchResponseTopic), "0-7")
    error_code: int = field(Int16, "2-7")
    groups: list[OffsetFetchResponseGroup] = field(Array(OffsetFetchResponseGroup), "8+")


@nested
class OffsetDeleteRequestPartition(Message):
    partition_index: int = field(Int32)


@nested
class OffsetDeleteRequestTopic(Message):
    name: str = field(String)
    partitions: list[OffsetDeleteRequestPartition] = field(Array(OffsetDeleteRequestPartition))


@message(api_key=47, versions="0")
class OffsetDeleteRequest(Message):
    """Delete committed offsets of a group (KIP-496)."""

    group_id: str = field(String)
    topics: list[OffsetDeleteRequestTopic] = field(Array(OffsetDeleteRequestTopic))


@nested
class OffsetDeleteResponsePartition(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@nested
class OffsetDeleteResponseTopic(Message):
    name: str = field(String)
    partitions: list[OffsetDeleteResponsePartition] = field(Array(OffsetDeleteResponsePartition))


@message(api_key=47, versions="0")
class OffsetDeleteResponse(Message):
    """An error code for each partition."""

    error_code: int = field(Int16)
    throttle_time_ms: int = field(Int32)
    topics: list[OffsetDeleteResponseTopic] = field(Array(OffsetDeleteResponseTopic))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case OffsetCommitRequest():
            return OffsetCommitResponse(
                topics=[
                    OffsetCommitResponseTopic(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partitions=[
                            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        case OffsetFetchRequest():
            return _refused_fetch(request, api_version, code)
        case OffsetDeleteRequest():
            return OffsetDeleteResponse(error_code=code)
    raise TypeError(f"not a request of this family: {request!r}")


def _refused_fetch(request: OffsetFetchRequest, api_version: int, code: ErrorCode) -> OffsetFetchResponse:
    """The code on each partition before version 2, at the top before 8, on each group from there on."""
    if api_version >= 8:
        groups = [OffsetFetchResponseGroup(group_id=group.group_id, error_code=code) for group in request.groups]
        return OffsetFetchResponse(groups=groups)
    if api_version >= 2:
        return OffsetFetchResponse(error_code=code)
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, metadata="", error_code=code)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    return OffsetFetchResponse(topics=topics)
