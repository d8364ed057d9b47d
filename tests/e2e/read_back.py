"""Reads a partition back by librdkafka, to see what came of it over a bad connection."""

from __future__ import annotations

from clientwork import LIMIT_S
from confluent_kafka import Consumer, TopicPartition


def read_back(address: str, topic: str, count: int) -> tuple[list[bytes], int]:
    """The first `count` values of partition 0 at least, and its end."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": topic, "check.crcs": True, "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while len(values) < count:
        values += [message.value() for message in consumer.consume(1000, 1.0) if not message.error()]
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), LIMIT_S)
    consumer.close()
    return values, end
