"""Messages of the consumer group protocol (KIP-848)."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int8, Int16, Int32, String, Uuid


@nested
class ConsumerGroupHeartbeatRequestTopicPartitions(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Message):
    """A member of a consumer group is alive, and says what changed (KIP-848).

    Null stands for unchanged since the last heartbeat. 1 regular expression, member ids made by clients
    (KIP-1082).
    """

    group_id: str = field(String)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    instance_id: str | None = field(String, nullable="0+", default=None)
    rack_id: str | None = field(String, nullable="0+", default=None)
    rebalance_timeout_ms: int = field(Int32, default=-1)
    subscribed_topic_names: list[str] | None = field(Array(String), nullable="0+", default=None)
    subscribed_topic_regex: str | None = field(String, "1+", nullable="1+", default=None)
    server_assignor: str | None = field(String, nullable="0+", default=None)
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = field(
        Array(ConsumerGroupHeartbeatRequestTopicPartitions), nullable="0+", default=None
    )


@nested
class ConsumerGroupHeartbeatResponseTopicPartitions(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@nested
class ConsumerGroupHeartbeatResponseAssignment(Message):
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = field(
        Array(ConsumerGroupHeartbeatResponseTopicPartitions)
    )


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Message):
    """Member epoch and, when it changed, the assignment."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    member_id: str | None = field(String, nullable="0+", default=None)
    member_epoch: int = field(Int32)
    heartbeat_interval_ms: int = field(Int32)
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = field(
        ConsumerGroupHeartbeatResponseAssignment, nullable="0+", default=None
    )


@message(api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest(Message):
    """Ask for the state and members of consumer groups (KIP-848)."""

    group_ids: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Bool)


@nested
class ConsumerGroupDescribeResponseTopicPartitions(Message):
    topic_id: bytes = field(Uuid)
    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@nested
class ConsumerGroupDescribeResponseAssignment(Message):
    topic_partitions: list[ConsumerGroupDescribeResponseTopicPartitions] = field(
        Array(ConsumerGroupDescribeResponseTopicPartitions)
    )


@nested
class ConsumerGroupDescribeResponseMember(Message):
    member_id: str = field(String)
    instance_id: str | None = field(String, nullable="0+", default=None)
    rack_id: str | None = field(String, nullable="0+", default=None)
    member_epoch: int = field(Int32)
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))
    subscribed_topic_regex: str | None = field(String, nullable="0+", default=None)
    assignment: ConsumerGroupDescribeResponseAssignment = field(ConsumerGroupDescribeResponseAssignment)
    target_assignment: ConsumerGroupDescribeResponseAssignment = field(ConsumerGroupDescribeResponseAssignment)
    member_type: int = field(Int8, "1+", default=-1)


@nested
class ConsumerGroupDescribeResponseDescribedGroup(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    group_epoch: int = field(Int32)
    assignment_epoch: int = field(Int32)
    assignor_name: str = field(String)
    members: list[ConsumerGroupDescribeResponseMember] = field(Array(ConsumerGroupDescribeResponseMember))
    authorized_operations: int = field(Int32, default=-2147483648)


@message(api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Message):
    """State, epochs and members of each group.

    1 member type (KIP-1099).
    """

    throttle_time_ms: int = field(Int32)
    groups: list[ConsumerGroupDescribeResponseDescribedGroup] = field(
        Array(ConsumerGroupDescribeResponseDescribedGroup)
    )


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)
    assert isinstance(request, ConsumerGroupDescribeRequest)
    groups = [
        ConsumerGroupDescribeResponseDescribedGroup(group_id=group_id, error_code=code, error_message=message)
        for group_id in request.group_ids
    ]
    return ConsumerGroupDescribeResponse(groups=groups)
