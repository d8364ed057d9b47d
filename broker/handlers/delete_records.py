"""DeleteRecords: move the log start offset of partitions up. Readers lose the records before it at once.

DeleteRecords  Offset -1 means the high watermark (KIP-107).

Differs: DeleteRecords answers the new low watermark, the log's start offset, when it is durable. Kafka writes it down
         once a minute.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from broker.handlers.list_offsets import NO_EPOCH, readable
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.topics import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.metadata import ClusterMetadata
    from broker.partitions.table import Partitions

logger = logging.getLogger("momus.delete_records")


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def directory(self) -> DataDirectory: ...
    @property
    def partitions(self) -> Partitions: ...


def delete_records(broker: View, ctx: Context, request: DeleteRecordsRequest) -> Decision:
    """Delete records of each partition; each succeeds or fails alone.

    Shape:   a partition that is named twice is answered once, and the last offset counts; so are topics.
    Errors:  UNKNOWN_TOPIC_OR_PARTITION; INVALID_TOPIC_EXCEPTION: an internal topic; NOT_LEADER_OR_FOLLOWER;
             POLICY_VIOLATION, OFFSET_OUT_OF_RANGE: see TopicRules.check_deletion.
    Source:  Kafka's ReplicaManager.deleteRecordsOnLocalLog, Partition.deleteRecordsOnLeader.
    """
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for p in topic.partitions:
            wanted.setdefault(topic.name, {})[p.partition_index] = p.offset
    topics, moved = [], []
    for name, offsets in wanted.items():
        answers = []
        for index, offset in offsets.items():
            answer = DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1)
            try:
                known = broker.metadata.topics.get(name)
                if known is not None and known.internal and 0 <= index < len(known.partitions):
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
                partition = readable(broker, ctx, name, index, NO_EPOCH)
                answer.low_watermark = partition.delete_records(offset)
                broker.directory.log_start_moved(name, index, answer.low_watermark)
                moved.append(answer)
            except KafkaError as error:
                answer.error_code = error.code
            except (StorageError, OSError):
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            answers.append(answer)
        topics.append(DeleteRecordsTopicResult(name=name, partitions=answers))
    try:
        broker.directory.write_checkpoints()
    except OSError as error:
        logger.error("cannot write the new log start offsets: %s", error)
        for answer in moved:
            answer.error_code, answer.low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, -1
    return Decision(DeleteRecordsResponse(topics=topics))
