"""What the broker itself writes to a dead-letter queue, in the journal: as the Produce that it is in Apache Kafka.

Such entries have the client id OWN_CLIENT, and no address: no connection carried them. A recording leaves them out:
when it is played again, the broker writes them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.api import ApiKey
from protocol.codegen import codec
from protocol.header import encode_request_header, encode_response_header
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from broker.coordinator.share.dead_letters.sending import QueuePartition
    from broker.journal.ring import Ring
    from protocol.errors import KafkaError

OWN_CLIENT: Final = "momus-dead-letters"
VERSION: Final = 12  # the last one that names the topic
TIMEOUT_MS: Final = 30_000  # as Kafka's


def keep_produce(ring: Ring, place: QueuePartition, batch: bytes, first: int, error: KafkaError | None) -> None:
    """Keep a batch that was written to a queue, from an offset on, or refused."""
    written = PartitionProduceData(index=place.partition, records=batch)
    topics = [TopicProduceData(name=place.topic, partition_data=[written])]
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=TIMEOUT_MS, topic_data=topics)
    answer = PartitionProduceResponse(index=place.partition, error_code=0, base_offset=first)
    if error is not None:
        answer.error_code, answer.error_message = error.code, error.message
    reply = ProduceResponse(responses=[TopicProduceResponse(name=place.topic, partition_responses=[answer])])
    number = ring.own_writes
    asked = encode_request_header(ApiKey.PRODUCE, VERSION, number, OWN_CLIENT)
    asked += codec(ProduceRequest, VERSION).encode(request)
    told = encode_response_header(ApiKey.PRODUCE, VERSION, number) + codec(ProduceResponse, VERSION).encode(reply)
    ring.wrote(place.leader, _framed(asked), _framed(told), None if error is None else error.message)


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
