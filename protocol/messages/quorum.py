"""Messages that describe the quorum of controllers that holds the cluster's metadata (KIP-595)."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Int16, Int32, Int64, String, UInt16, Uuid


@nested
class DescribeQuorumRequestPartitionData(Message):
    partition_index: int = field(Int32)


@nested
class DescribeQuorumRequestTopicData(Message):
    topic_name: str = field(String)
    partitions: list[DescribeQuorumRequestPartitionData] = field(Array(DescribeQuorumRequestPartitionData))


@message(api_key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest(Message):
    """Ask who votes on `__cluster_metadata`, and how far each is."""

    topics: list[DescribeQuorumRequestTopicData] = field(Array(DescribeQuorumRequestTopicData))


@nested
class ReplicaState(Message):
    replica_id: int = field(Int32)
    replica_directory_id: bytes = field(Uuid, "2+")
    log_end_offset: int = field(Int64)
    last_fetch_timestamp: int = field(Int64, "1+", default=-1)
    last_caught_up_timestamp: int = field(Int64, "1+", default=-1)


@nested
class DescribeQuorumResponsePartitionData(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, "2+", nullable="2+")
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32)
    high_watermark: int = field(Int64)
    current_voters: list[ReplicaState] = field(Array(ReplicaState))
    observers: list[ReplicaState] = field(Array(ReplicaState))


@nested
class DescribeQuorumResponseTopicData(Message):
    topic_name: str = field(String)
    partitions: list[DescribeQuorumResponsePartitionData] = field(Array(DescribeQuorumResponsePartitionData))


@nested
class DescribeQuorumResponseListener(Message):
    name: str = field(String, "2+")
    host: str = field(String, "2+")
    port: int = field(UInt16, "2+")


@nested
class DescribeQuorumResponseNode(Message):
    node_id: int = field(Int32, "2+")
    listeners: list[DescribeQuorumResponseListener] = field(Array(DescribeQuorumResponseListener), "2+")


@message(api_key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse(Message):
    """Leader, voters and observers.

    1 timestamps (KIP-836); 2 messages, directory ids and nodes (KIP-853).
    """

    error_code: int = field(Int16)
    error_message: str | None = field(String, "2+", nullable="2+")
    topics: list[DescribeQuorumResponseTopicData] = field(Array(DescribeQuorumResponseTopicData))
    nodes: list[DescribeQuorumResponseNode] = field(Array(DescribeQuorumResponseNode), "2+")


@message(api_key=94, versions="0", flexible="0+")
class UnregisterControllerRequest(Message):
    """Take a controller that has gone out of the cluster's metadata (KIP-1312)."""

    controller_id: int = field(Int32)


@message(api_key=94, versions="0", flexible="0+")
class UnregisterControllerResponse(Message):
    """One error code."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    if isinstance(request, UnregisterControllerRequest):
        return UnregisterControllerResponse(error_code=code, error_message=message)
    assert isinstance(request, DescribeQuorumRequest)
    return DescribeQuorumResponse(error_code=code, error_message=message)
