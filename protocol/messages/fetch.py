"""Messages that read records and look offsets up."""

from __future__ import annotations

from typing import Any

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Int8, Int16, Int32, Int64, Records, String, Uuid


@nested
class ReplicaState(Message):
    replica_id: int = field(Int32, "15+", default=-1)
    replica_epoch: int = field(Int64, "15+", default=-1)


@nested
class FetchPartition(Message):
    partition: int = field(Int32)
    current_leader_epoch: int = field(Int32, "9+", default=-1)
    fetch_offset: int = field(Int64)
    last_fetched_epoch: int = field(Int32, "12+", default=-1)
    log_start_offset: int = field(Int64, "5+", default=-1)
    partition_max_bytes: int = field(Int32)
    replica_directory_id: bytes = field(Uuid, "17+", tag=0, tagged="17+")
    high_watermark: int = field(Int64, "18+", tag=1, tagged="18+", default=0x7FFFFFFFFFFFFFFF)


@nested
class FetchTopic(Message):
    topic: str = field(String, "0-12")
    topic_id: bytes = field(Uuid, "13+")
    partitions: list[FetchPartition] = field(Array(FetchPartition))


@nested
class ForgottenTopic(Message):
    topic: str = field(String, "7-12")
    topic_id: bytes = field(Uuid, "13+")
    partitions: list[int] = field(Array(Int32), "7+")


@message(api_key=1, versions="0-18", flexible="12+")
class FetchRequest(Message):
    """Read record batches; before 4 message sets (message_set.py): in 0 and 1 of magic 0, in 2 and 3 of magic 1.

    3 bytes of all partitions; 4 isolation level; 5 log start offset; 7 sessions (KIP-227); 9 leader epoch
    (KIP-320); 11 rack; 12 last fetched epoch; 13 topic ids; 15 replica state as a tag (KIP-903); 17 directory
    ids (KIP-853); 18 high watermark (KIP-1166).
    """

    cluster_id: str | None = field(String, "12+", nullable="12+", tag=0, tagged="12+", default=None)
    replica_id: int = field(Int32, "0-14", default=-1)
    replica_state: ReplicaState | None = field(ReplicaState, "15+", tag=1, tagged="15+")
    max_wait_ms: int = field(Int32)
    min_bytes: int = field(Int32)
    max_bytes: int = field(Int32, "3+", default=0x7FFFFFFF)
    isolation_level: int = field(Int8, "4+")
    session_id: int = field(Int32, "7+")
    session_epoch: int = field(Int32, "7+", default=-1)
    topics: list[FetchTopic] = field(Array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(Array(ForgottenTopic), "7+")
    rack_id: str = field(String, "11+")


@nested
class FetchResponseEpochEndOffset(Message):
    epoch: int = field(Int32, "12+", default=-1)
    end_offset: int = field(Int64, "12+", default=-1)


@nested
class FetchResponseLeaderIdAndEpoch(Message):
    leader_id: int = field(Int32, "12+", default=-1)
    leader_epoch: int = field(Int32, "12+", default=-1)


@nested
class SnapshotId(Message):
    end_offset: int = field(Int64, default=-1)
    epoch: int = field(Int32, default=-1)


@nested
class AbortedTransaction(Message):
    producer_id: int = field(Int64, "4+")
    first_offset: int = field(Int64, "4+")


@nested
class PartitionData(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    high_watermark: int = field(Int64)
    last_stable_offset: int = field(Int64, "4+", default=-1)
    log_start_offset: int = field(Int64, "5+", default=-1)
    diverging_epoch: FetchResponseEpochEndOffset | None = field(FetchResponseEpochEndOffset, "12+", tag=0, tagged="12+")
    current_leader: FetchResponseLeaderIdAndEpoch | None = field(
        FetchResponseLeaderIdAndEpoch, "12+", tag=1, tagged="12+"
    )
    snapshot_id: SnapshotId | None = field(SnapshotId, "12+", tag=2, tagged="12+")
    aborted_transactions: list[AbortedTransaction] | None = field(Array(AbortedTransaction), "4+", nullable="4+")
    preferred_read_replica: int = field(Int32, "11+", default=-1)
    records: Any = field(Records, nullable="0+")


@nested
class FetchableTopicResponse(Message):
    topic: str = field(String, "0-12")
    topic_id: bytes = field(Uuid, "13+")
    partitions: list[PartitionData] = field(Array(PartitionData))


@nested
class FetchResponseNodeEndpoint(Message):
    node_id: int = field(Int32, "16+")
    host: str = field(String, "16+")
    port: int = field(Int32, "16+")
    rack: str | None = field(String, "16+", nullable="16+", default=None)


@message(api_key=1, versions="0-18", flexible="12+")
class FetchResponse(Message):
    """Record batches of each partition, before 4 message sets.

    7 sessions; 11 preferred replica; 12 divergence and current leader as tags; 13 topic ids; 16 node
    endpoints.
    """

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16, "7+")
    session_id: int = field(Int32, "7+")
    responses: list[FetchableTopicResponse] = field(Array(FetchableTopicResponse))
    node_endpoints: list[FetchResponseNodeEndpoint] = field(
        Array(FetchResponseNodeEndpoint), "16+", tag=0, tagged="16+"
    )


@nested
class ListOffsetsPartition(Message):
    partition_index: int = field(Int32)
    current_leader_epoch: int = field(Int32, "4+", default=-1)
    timestamp: int = field(Int64)
    max_num_offsets: int = field(Int32, "0", default=1)


@nested
class ListOffsetsTopic(Message):
    name: str = field(String)
    partitions: list[ListOffsetsPartition] = field(Array(ListOffsetsPartition))


@message(api_key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest(Message):
    """Look offsets up by timestamp; negative timestamps are special offsets. 0 asks for several, of segments."""

    replica_id: int = field(Int32)
    isolation_level: int = field(Int8, "2+")
    topics: list[ListOffsetsTopic] = field(Array(ListOffsetsTopic))
    timeout_ms: int = field(Int32, "10+")


@nested
class ListOffsetsPartitionResponse(Message):
    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    old_style_offsets: list[int] = field(Array(Int64), "0")
    timestamp: int = field(Int64, "1+", default=-1)
    offset: int = field(Int64, "1+", default=-1)
    leader_epoch: int = field(Int32, "4+", default=-1)


@nested
class ListOffsetsTopicResponse(Message):
    name: str = field(String)
    partitions: list[ListOffsetsPartitionResponse] = field(Array(ListOffsetsPartitionResponse))


@message(api_key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse(Message):
    """Offset and timestamp for each partition; in 0 a list of offsets."""

    throttle_time_ms: int = field(Int32, "2+")
    topics: list[ListOffsetsTopicResponse] = field(Array(ListOffsetsTopicResponse))


@nested
class OffsetForLeaderPartition(Message):
    partition: int = field(Int32)
    current_leader_epoch: int = field(Int32, "2+", default=-1)
    leader_epoch: int = field(Int32)


@nested
class OffsetForLeaderTopic(Message):
    topic: str = field(String)
    partitions: list[OffsetForLeaderPartition] = field(Array(OffsetForLeaderPartition))


@message(api_key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest(Message):
    """Ask where leader epochs end (KIP-320)."""

    replica_id: int = field(Int32, "3+", default=-2)
    topics: list[OffsetForLeaderTopic] = field(Array(OffsetForLeaderTopic))


@nested
class OffsetForLeaderEpochResponseEpochEndOffset(Message):
    error_code: int = field(Int16)
    partition: int = field(Int32)
    leader_epoch: int = field(Int32, "1+", default=-1)
    end_offset: int = field(Int64, default=-1)


@nested
class OffsetForLeaderTopicResult(Message):
    topic: str = field(String)
    partitions: list[OffsetForLeaderEpochResponseEpochEndOffset] = field(
        Array(OffsetForLeaderEpochResponseEpochEndOffset)
    )


@message(api_key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse(Message):
    """The largest epoch up to the asked one, and its end offset."""

    throttle_time_ms: int = field(Int32, "2+")
    topics: list[OffsetForLeaderTopicResult] = field(Array(OffsetForLeaderTopicResult))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case FetchRequest():
            responses = []
            if api_version < 13:  # later ones look at the error at the top alone
                responses = [
                    FetchableTopicResponse(
                        topic=topic.topic,
                        partitions=[
                            PartitionData(
                                partition_index=each.partition,
                                error_code=code,
                                high_watermark=-1,
                                records=b"",
                            )
                            for each in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            return FetchResponse(error_code=code, session_id=request.session_id, responses=responses)
        case ListOffsetsRequest():
            return ListOffsetsResponse(
                topics=[
                    ListOffsetsTopicResponse(
                        name=asked.name,
                        partitions=[
                            ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=code)
                            for partition in asked.partitions
                        ],
                    )
                    for asked in request.topics
                ]
            )
        case OffsetForLeaderEpochRequest():
            return OffsetForLeaderEpochResponse(
                topics=[
                    OffsetForLeaderTopicResult(
                        topic=wanted.topic,
                        partitions=[
                            OffsetForLeaderEpochResponseEpochEndOffset(partition=one.partition, error_code=code)
                            for one in wanted.partitions
                        ],
                    )
                    for wanted in request.topics
                ]
            )
    raise TypeError(f"not a request of this family: {request!r}")
