"""ListOffsets and OffsetForLeaderEpoch: a partition's first and last offset, and offsets by time or leader epoch.

ListOffsets           v0 (only with as.version below 4): a list of offsets. v2: isolation level. v4: leader epochs
                      (KIP-320). v7: timestamp -3 (KIP-734). v8: -4 (KIP-405). v9: -5 (KIP-1005). v11: -6 (KIP-1023).
OffsetForLeaderEpoch  Where a leader epoch ends (KIP-320).

Behaviour: timestamps below zero name a place: -1 the end that the isolation level may read, -2 the log's start, -3 the
           record with the greatest timestamp, -4 the local log's start (the log's start: nothing is tiered), -5 and -6
           ends of the tiered log (offset -1). A version that does not know one of them gets UNSUPPORTED_VERSION. Any
           other timestamp is looked up: the first record at or after it. v0 answers where segments begin that were
           written up to the timestamp, the latest first, before them the log's end if it is that of now or later.
Differs:   ListOffsets by time goes on in the next segment where the log begins after the records of a segment
           (DeleteRecords). Kafka answers that there is no such record, and a consumer that seeks by time skips
           the rest. v0 takes the latest timestamp of a segment's records for the time when it was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from broker.partitions.fetch_read import READ_COMMITTED, check_isolation_level
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderTopicResult,
)
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_SINCE: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
NO_EPOCH: Final = -1
_LEADER_EPOCH_SINCE: Final = 4
_CONSUMER: Final = -1  # the replica id of those that are no replica
_DEBUGGING_REPLICA: Final = -2  # may read from any node


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def partitions(self) -> Partitions: ...


def list_offsets(broker: View, ctx: Context, request: ListOffsetsRequest) -> Decision:
    """Answer one offset for each partition.

    Errors:  INVALID_REQUEST: the isolation level is unknown (Kafka: UNKNOWN_SERVER_ERROR), or the partition is named
             twice. UNSUPPORTED_VERSION: a special timestamp of a later version.
             UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
    Source:  Kafka's ReplicaManager.fetchOffset, Partition.fetchOffsetForTimestamp.
    """
    check_isolation_level(request.isolation_level)
    named: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in request.topics:
        for p in topic.partitions:
            key = (topic.name, p.partition_index)
            (twice if key in named else named).add(key)
    isolation_level = request.isolation_level if request.replica_id == _CONSUMER else 0  # as in Kafka
    topics = []
    for topic in request.topics:
        answers = []
        for p in topic.partitions:
            key = (topic.name, p.partition_index)
            if key not in named:
                continue  # answered at its first place
            try:
                if key in twice:
                    named.discard(key)
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                if p.timestamp < 0 and ctx.api_version < _SINCE.get(p.timestamp, 1 << 15):
                    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
                partition = readable(
                    broker,
                    ctx,
                    topic.name,
                    p.partition_index,
                    p.current_leader_epoch,
                    any_node=request.replica_id == _DEBUGGING_REPLICA,
                )
                if ctx.api_version == 0:
                    answers.append(
                        ListOffsetsPartitionResponse(
                            partition_index=p.partition_index,
                            old_style_offsets=_offsets_before(partition, p.timestamp, p.max_num_offsets, ctx.now_ms),
                        )
                    )
                else:
                    answers.append(_offset_at(partition, p, isolation_level, ctx.api_version))
            except KafkaError as error:
                answers.append(ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=error.code))
            except (StorageError, OSError):
                answers.append(
                    ListOffsetsPartitionResponse(
                        partition_index=p.partition_index, error_code=ErrorCode.KAFKA_STORAGE_ERROR
                    )
                )
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return Decision(ListOffsetsResponse(topics=topics))


def readable(
    broker: View, ctx: Context, name: str, index: int, current_leader_epoch: int, *, any_node: bool = False
) -> Partition:
    """The partition, if this node leads it and the client's leader epoch (unless -1) is the present one."""
    topic = broker.metadata.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    info = topic.partitions[index]
    if info.leader != ctx.node_id and not any_node:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if current_leader_epoch not in (NO_EPOCH, info.leader_epoch):
        fenced = current_leader_epoch < info.leader_epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if fenced else ErrorCode.UNKNOWN_LEADER_EPOCH)
    return broker.partitions.get(topic, index)


def _offset_at(
    partition: Partition, asked: ListOffsetsPartition, isolation_level: int, api_version: int
) -> ListOffsetsPartitionResponse:
    log = partition.log
    limit = partition.last_stable_offset if isolation_level == READ_COMMITTED else partition.high_watermark
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    epoch = NO_EPOCH
    if asked.timestamp == LATEST:
        answer.offset = limit
        epoch = partition.info.leader_epoch
    elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = log.log_start_offset
        epoch = log.epochs.epoch_of(log.log_start_offset)
    elif asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP:
        place = log.max_timestamp() if asked.timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(asked.timestamp)
        if place is not None and place[1] < limit:
            answer.timestamp, answer.offset, epoch = place
    if api_version >= _LEADER_EPOCH_SINCE:
        answer.leader_epoch = epoch
    return answer


def _offsets_before(partition: Partition, timestamp: int, most: int, now_ms: int) -> list[int]:
    """Up to `most` offsets where segments that were written up to a timestamp begin, and the log's end; latest first.

    Source:  Kafka's UnifiedLog.legacyFetchOffsetsBefore, ReplicaManager.legacyFetchOffsetsForTimestamp.
    """
    log, limit = partition.log, partition.high_watermark
    places = [(max(each.base_offset, log.log_start_offset), each.largest_timestamp) for each in log.segments]
    if not places or log.segments[-1].file.size:
        places.append((log.end_offset, now_ms))
    if timestamp == EARLIEST:
        del places[1:]
    elif timestamp != LATEST:
        while places and places[-1][1] > timestamp:
            places.pop()
    offsets = [offset for offset, _ in reversed(places)][: max(most, 0)]
    if any(offset > limit for offset in offsets):
        offsets = [limit, *(offset for offset in offsets if offset <= limit)]
    return offsets


def offset_for_leader_epoch(broker: View, ctx: Context, request: OffsetForLeaderEpochRequest) -> Decision:
    """The end of a leader epoch (or of the one before it), which shows a consumer that the log was truncated.

    Errors:  as ListOffsets for the partition; an epoch above all known ones answers -1, -1 without an error.
    Source:  Kafka's ReplicaManager.lastOffsetForLeaderEpoch.
    """
    topics = []
    for topic in request.topics:
        answers = []
        for p in topic.partitions:
            answer = OffsetForLeaderEpochResponseEpochEndOffset(partition=p.partition)
            try:
                partition = readable(broker, ctx, topic.topic, p.partition, p.current_leader_epoch)
                answer.leader_epoch, end_offset = partition.log.epoch_end_offset(p.leader_epoch)
                answer.end_offset = min(end_offset, partition.high_watermark)  # later records may still be lost
            except KafkaError as error:
                answer.error_code = error.code
            except StorageError:
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            answers.append(answer)
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return Decision(OffsetForLeaderEpochResponse(topics=topics))
