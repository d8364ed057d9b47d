"""Heartbeat and description of share groups (KIP-932). Fetching: share_fetch.py; offsets: share_offsets.py."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int16, Int32, String, Uuid


@message(api_key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest(Message):
    """A member of a share group is alive, and says what changed (KIP-932). Null stands for unchanged."""

    group_id: str = field(String)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    rack_id: str | None = field(String, nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = field(Array(String), nullable="0+", default=None)


@nested
class ShareGroupHeartbeatResponseTopicPartitions(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@nested
class ShareGroupHeartbeatResponseAssignment(Message):
    topic_partitions: list[ShareGroupHeartbeatResponseTopicPartitions] = field(
        Array(ShareGroupHeartbeatResponseTopicPartitions)
    )


@message(api_key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse(Message):
    """Member epoch and, when it changed, the assignment."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    member_id: str | None = field(String, nullable="0+", default=None)
    member_epoch: int = field(Int32)
    heartbeat_interval_ms: int = field(Int32)
    assignment: ShareGroupHeartbeatResponseAssignment | None = field(
        ShareGroupHeartbeatResponseAssignment, nullable="0+", default=None
    )


@message(api_key=77, versions="1", flexible="0+")
class ShareGroupDescribeRequest(Message):
    """Ask for the state and members of share groups (KIP-932)."""

    group_ids: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Bool)


@nested
class ShareGroupDescribeResponseTopicPartitions(Message):
    topic_id: bytes = field(Uuid)
    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class ShareGroupDescribeResponseAssignment(Message):
    topic_partitions: list[ShareGroupDescribeResponseTopicPartitions] = field(
        Array(ShareGroupDescribeResponseTopicPartitions)
    )


@nested
class ShareGroupDescribeResponseMember(Message):
    member_id: str = field(String)
    rack_id: str | None = field(String, nullable="0+", default=None)
    member_epoch: int = field(Int32)
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))
    assignment: ShareGroupDescribeResponseAssignment = field(ShareGroupDescribeResponseAssignment)


@nested
class ShareGroupDescribeResponseDescribedGroup(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    group_epoch: int = field(Int32)
    assignment_epoch: int = field(Int32)
    assignor_name: str = field(String)
    members: list[ShareGroupDescribeResponseMember] = field(Array(ShareGroupDescribeResponseMember))
    authorized_operations: int = field(Int32, default=-2147483648)


@message(api_key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse(Message):
    """State, epochs and members of each group."""

    throttle_time_ms: int = field(Int32)
    groups: list[ShareGroupDescribeResponseDescribedGroup] = field(Array(ShareGroupDescribeResponseDescribedGroup))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    if isinstance(request, ShareGroupHeartbeatRequest):
        return ShareGroupHeartbeatResponse(error_code=code, error_message=message)
    assert isinstance(request, ShareGroupDescribeRequest)
    groups = [
        ShareGroupDescribeResponseDescribedGroup(group_id=group_id, error_code=code, error_message=message)
        for group_id in request.group_ids
    ]
    return ShareGroupDescribeResponse(groups=groups)
