"""What a Produce request is made of, before anything is appended: topics, batches, and the producer that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.partitions.record_rules import is_transactional, next_batch
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceResponse, ProduceRequest, TopicProduceData
from protocol.record_batch import HEADER, HEADER_BYTES

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata, Topic
    from broker.partitions.incoming_batch import Buffer

TOPIC_IDS_SINCE: Final = 13


class Entry(NamedTuple):
    """One partition's batch."""

    topic_data: TopicProduceData
    partition: int
    records: Buffer
    answer: PartitionProduceResponse


def check_first_batches(request: ProduceRequest) -> None:
    """Look at the first batch of each partition, up to the first transactional one.

    Errors:  CORRUPT_MESSAGE, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
    Source:  Kafka's RequestUtils.hasTransactionalRecords.
    """
    for topic_data in request.topic_data:
        for data in topic_data.partition_data:
            if data.records is not None and next_batch(data.records) and is_transactional(data.records):
                if request.transactional_id is None:
                    raise KafkaError(
                        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                        "Transactional records came without a transactional id",
                    )
                return


def has_producer(records: Buffer) -> bool:
    """Whether a batch is transactional and has a producer id."""
    return len(records) >= HEADER_BYTES and is_transactional(records) and HEADER.unpack_from(records)[9] >= 0


def producer_of(entries: list[Entry]) -> tuple[int, int] | None:
    """Producer id and epoch of the transactional records of a request."""
    found = {HEADER.unpack_from(entry.records)[9:11] for entry in entries if has_producer(entry.records)}
    if len(found) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    return found.pop() if found else None


def find_topic(metadata: ClusterMetadata, api_version: int, name: str, topic_id: bytes) -> Topic | KafkaError:
    """The topic by name, or by id where the version has ids, or the error to answer."""
    topic: Topic | None
    if api_version >= TOPIC_IDS_SINCE:
        topic = metadata.topics_by_id.get(topic_id)
        return topic or KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    topic = metadata.topics.get(name)
    return topic or KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
