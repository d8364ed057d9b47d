"""Messages that read and acknowledge records of share groups (KIP-932)."""

from __future__ import annotations

from typing import Any

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, Records, String, Uuid


@nested
class ShareFetchRequestAcknowledgementBatch(Message):
    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    acknowledge_types: list[int] = field(Array(Int8))


@nested
class ShareFetchRequestFetchPartition(Message):
    partition_index: int = field(Int32)
    acknowledgement_batches: list[ShareFetchRequestAcknowledgementBatch] = field(
        Array(ShareFetchRequestAcknowledgementBatch)
    )


@nested
class ShareFetchRequestFetchTopic(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[ShareFetchRequestFetchPartition] = field(Array(ShareFetchRequestFetchPartition))


@nested
class ShareFetchRequestForgottenTopic(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(api_key=78, versions="1-2", flexible="0+")
class ShareFetchRequest(Message):
    """Read records for a share group, and acknowledge earlier ones.

    2 acquire mode (KIP-1206) and renewal of locks (KIP-1222).
    """

    group_id: str | None = field(String, nullable="0+", default=None)
    member_id: str | None = field(String, nullable="0+")
    share_session_epoch: int = field(Int32)
    max_wait_ms: int = field(Int32)
    min_bytes: int = field(Int32)
    max_bytes: int = field(Int32, default=0x7FFFFFFF)
    max_records: int = field(Int32)
    batch_size: int = field(Int32)
    share_acquire_mode: int = field(Int8, "2+")
    is_renew_ack: bool = field(Bool, "2+")
    topics: list[ShareFetchRequestFetchTopic] = field(Array(ShareFetchRequestFetchTopic))
    forgotten_topics_data: list[ShareFetchRequestForgottenTopic] = field(Array(ShareFetchRequestForgottenTopic))


@nested
class ShareFetchResponseLeaderIdAndEpoch(Message):
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32)


@nested
class ShareFetchResponseAcquiredRecords(Message):
    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    delivery_count: int = field(Int16)


@nested
class ShareFetchResponsePartitionData(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    acknowledge_error_code: int = field(Int16)
    acknowledge_error_message: str | None = field(String, nullable="0+", default=None)
    current_leader: ShareFetchResponseLeaderIdAndEpoch = field(ShareFetchResponseLeaderIdAndEpoch)
    records: Any = field(Records)
    acquired_records: list[ShareFetchResponseAcquiredRecords] = field(Array(ShareFetchResponseAcquiredRecords))


@nested
class ShareFetchableTopicResponse(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[ShareFetchResponsePartitionData] = field(Array(ShareFetchResponsePartitionData))


@nested
class ShareFetchResponseNodeEndpoint(Message):
    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(String, nullable="0+", default=None)


@message(api_key=78, versions="1-2", flexible="0+")
class ShareFetchResponse(Message):
    """Record batches of each partition, and which of their records the member has acquired."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = field(Int32)
    responses: list[ShareFetchableTopicResponse] = field(Array(ShareFetchableTopicResponse))
    node_endpoints: list[ShareFetchResponseNodeEndpoint] = field(Array(ShareFetchResponseNodeEndpoint))


@nested
class ShareAcknowledgeRequestAcknowledgementBatch(Message):
    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    acknowledge_types: list[int] = field(Array(Int8))


@nested
class ShareAcknowledgeRequestAcknowledgePartition(Message):
    partition_index: int = field(Int32)
    acknowledgement_batches: list[ShareAcknowledgeRequestAcknowledgementBatch] = field(
        Array(ShareAcknowledgeRequestAcknowledgementBatch)
    )


@nested
class ShareAcknowledgeRequestAcknowledgeTopic(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[ShareAcknowledgeRequestAcknowledgePartition] = field(
        Array(ShareAcknowledgeRequestAcknowledgePartition)
    )


@message(api_key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest(Message):
    """Acknowledge records of a share group without reading more. 2 renewal of locks (KIP-1222)."""

    group_id: str | None = field(String, nullable="0+", default=None)
    member_id: str | None = field(String, nullable="0+")
    share_session_epoch: int = field(Int32)
    is_renew_ack: bool = field(Bool, "2+")
    topics: list[ShareAcknowledgeRequestAcknowledgeTopic] = field(Array(ShareAcknowledgeRequestAcknowledgeTopic))


@nested
class ShareAcknowledgeResponseLeaderIdAndEpoch(Message):
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32)


@nested
class ShareAcknowledgeResponsePartitionData(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    current_leader: ShareAcknowledgeResponseLeaderIdAndEpoch = field(ShareAcknowledgeResponseLeaderIdAndEpoch)


@nested
class ShareAcknowledgeTopicResponse(Message):
    topic_id: bytes = field(Uuid)
    partitions: list[ShareAcknowledgeResponsePartitionData] = field(Array(ShareAcknowledgeResponsePartitionData))


@nested
class ShareAcknowledgeResponseNodeEndpoint(Message):
    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(String, nullable="0+", default=None)


@message(api_key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse(Message):
    """Whether each partition's acknowledgements were taken. 2 the lock's duration."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = field(Int32, "2+")
    responses: list[ShareAcknowledgeTopicResponse] = field(Array(ShareAcknowledgeTopicResponse))
    node_endpoints: list[ShareAcknowledgeResponseNodeEndpoint] = field(Array(ShareAcknowledgeResponseNodeEndpoint))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request: the code stands at the top, and no partition is named."""
    if isinstance(request, ShareFetchRequest):
        return ShareFetchResponse(error_code=code, error_message=message)
    assert isinstance(request, ShareAcknowledgeRequest)
    return ShareAcknowledgeResponse(error_code=code, error_message=message)
