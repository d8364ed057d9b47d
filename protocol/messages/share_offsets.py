"""Messages that describe, alter and delete the offsets of share groups (KIP-932)."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Int16, Int32, Int64, String, Uuid


@nested
class DescribeShareGroupOffsetsRequestTopic(Message):
    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class DescribeShareGroupOffsetsRequestGroup(Message):
    group_id: str = field(String)
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(
        Array(DescribeShareGroupOffsetsRequestTopic), nullable="0+"
    )


@message(api_key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest(Message):
    """Ask for the start offsets of share groups; null topics stand for all of a group's."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(Array(DescribeShareGroupOffsetsRequestGroup))


@nested
class DescribeShareGroupOffsetsResponsePartition(Message):
    partition_index: int = field(Int32)
    start_offset: int = field(Int64)
    leader_epoch: int = field(Int32)
    lag: int = field(Int64, "1+", default=-1)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)


@nested
class DescribeShareGroupOffsetsResponseTopic(Message):
    topic_name: str = field(String)
    topic_id: bytes = field(Uuid)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(
        Array(DescribeShareGroupOffsetsResponsePartition)
    )


@nested
class DescribeShareGroupOffsetsResponseGroup(Message):
    group_id: str = field(String)
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(Array(DescribeShareGroupOffsetsResponseTopic))
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)


@message(api_key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse(Message):
    """The start offset of each share partition. 1 lag (KIP-1226)."""

    throttle_time_ms: int = field(Int32)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(Array(DescribeShareGroupOffsetsResponseGroup))


@nested
class AlterShareGroupOffsetsRequestPartition(Message):
    partition_index: int = field(Int32)
    start_offset: int = field(Int64)


@nested
class AlterShareGroupOffsetsRequestTopic(Message):
    topic_name: str = field(String)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(Array(AlterShareGroupOffsetsRequestPartition))


@message(api_key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest(Message):
    """Set the start offsets of a share group without members."""

    group_id: str = field(String)
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(Array(AlterShareGroupOffsetsRequestTopic))


@nested
class AlterShareGroupOffsetsResponsePartition(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)


@nested
class AlterShareGroupOffsetsResponseTopic(Message):
    topic_name: str = field(String)
    topic_id: bytes = field(Uuid)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(Array(AlterShareGroupOffsetsResponsePartition))


@message(api_key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse(Message):
    """Which of the start offsets were set."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(Array(AlterShareGroupOffsetsResponseTopic))


@nested
class DeleteShareGroupOffsetsRequestTopic(Message):
    topic_name: str = field(String)


@message(api_key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest(Message):
    """Delete what a share group without members has stored for topics."""

    group_id: str = field(String)
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(Array(DeleteShareGroupOffsetsRequestTopic))


@nested
class DeleteShareGroupOffsetsResponseTopic(Message):
    topic_name: str = field(String)
    topic_id: bytes = field(Uuid)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)


@message(api_key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse(Message):
    """Which topics were deleted from the group."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(Array(DeleteShareGroupOffsetsResponseTopic))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    if isinstance(request, AlterShareGroupOffsetsRequest):
        return AlterShareGroupOffsetsResponse(error_code=code, error_message=message)
    if isinstance(request, DeleteShareGroupOffsetsRequest):
        return DeleteShareGroupOffsetsResponse(error_code=code, error_message=message)
    assert isinstance(request, DescribeShareGroupOffsetsRequest)
    groups = [
        DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, error_code=code, error_message=message)
        for group in request.groups
    ]
    return DescribeShareGroupOffsetsResponse(groups=groups)
