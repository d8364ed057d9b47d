"""DescribeProducers: the producer state of partitions (KIP-664).

DescribeProducers  For `kafka-transactions.sh describe-producers` and `find-hanging` (KIP-664).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.cluster.topic_names import name_fault
from broker.handlers.list_offsets import NO_EPOCH, readable
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata
    from broker.partitions.table import Partitions


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def partitions(self) -> Partitions: ...


def describe_producers(broker: View, ctx: Context, request: DescribeProducersRequest) -> Decision:
    """Answer the producers of each partition, by rising id.

    Errors:  a partition: INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
             KAFKA_STORAGE_ERROR.
    Source:  Kafka's KafkaApis.handleDescribeProducersRequest, UnifiedLog.activeProducers.
    """
    return Decision(
        DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    partitions=[_describe(broker, ctx, topic.name, index) for index in topic.partition_indexes],
                )
                for topic in request.topics
            ]
        )
    )


def _describe(broker: View, ctx: Context, name: str, index: int) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index)
    fault = name_fault(name)
    try:
        if fault:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        producers = readable(broker, ctx, name, index, NO_EPOCH).known_producers()
    except KafkaError as error:
        answer.error_code = error.code
        answer.error_message = error.message
    except (StorageError, OSError):
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    else:
        answer.active_producers = [
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.timestamp_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_first_offset,
            )
            for producer in producers
        ]
    return answer
