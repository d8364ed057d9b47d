"""librdkafka's way, through confluent-kafka, of doing the work of clientwork.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from clientwork import LIMIT_S, Member
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from momus import Broker

# What librdkafka waits for by itself, shortened where it would only make the tests longer
PROMPT = {
    "topic.metadata.refresh.interval.ms": 500,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "log_level": 0,
}


def admin_of(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


def producer_of(broker: Broker, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap_servers} | PROMPT | dotted(settings))


def dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in settings.items()}


@contextmanager
def consumer_of(broker: Broker, **settings: Any) -> Iterator[Consumer]:
    basics = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "nobody", "enable.auto.commit": False}
    consumer = Consumer(basics | {"auto.offset.reset": "earliest"} | PROMPT | dotted(settings))
    try:
        yield consumer
    finally:
        consumer.close()


def create(broker: Broker, topic: str, partitions: int = 1, **configs: str) -> None:
    admin = admin_of(broker)  # held by name: its requests die with it
    settled(admin.create_topics([NewTopic(topic, partitions, 1, config=configs)]))


def settled(futures: dict[Any, Any]) -> dict[Any, Any]:
    """What an admin call's futures came to."""
    return {key: future.result(LIMIT_S) for key, future in futures.items()}


def deliver(producer: Producer, records: list[dict[str, Any]]) -> list[Message]:
    """Produce the records and wait for every report; the first failure is raised."""
    reports: list[tuple[Any, Message]] = []
    for record in records:
        producer.produce(**record, on_delivery=lambda error, message: reports.append((error, message)))
    assert producer.flush(LIMIT_S) == 0
    for error, _ in reports:
        if error is not None:
            raise KafkaException(error)
    return [message for _, message in reports]


def read(consumer: Consumer, count: int) -> list[Message]:
    """The next `count` records of whatever the consumer reads."""
    records: list[Message] = []
    end = time.monotonic() + LIMIT_S
    while len(records) < count:
        assert time.monotonic() < end, f"{len(records)} of {count} records"
        for message in consumer.consume(count - len(records), 0.2):
            if message.error() is not None:
                raise KafkaException(message.error())
            records.append(message)
    return records


class LibrdkafkaMember(Member):
    """Commits each record it processed, and before it gives a partition up there is nothing left to commit.

    A Fetch that waits while its partition goes to another member is answered by the next record. librdkafka may keep
    that record and hand it out when the partition comes back to it, before what it then fetches: against Apache Kafka
    too (seen once in 54 plays of the group).
    """

    repeats = True

    def __init__(self, broker: Broker, topic: str, group: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.broker, self.topic, self.group = broker, topic, group
        self.revoked: list[int] = []

    def consume(self) -> None:
        settings = {"group_id": self.group, "heartbeat_interval_ms": 100, "session_timeout_ms": 30_000}
        with consumer_of(self.broker, **(settings | self.settings)) as consumer:
            consumer.subscribe([self.topic], on_revoke=self._on_revoke)
            while not self.stopping.is_set():
                message = consumer.poll(0.05)
                self.assigned = frozenset(partition.partition for partition in consumer.assignment())
                if message is None:
                    continue
                if message.error() is not None:
                    raise KafkaException(message.error())
                consumer.commit(message, asynchronous=False)
                self.received.append(message.value())
        self.assigned = frozenset()

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.revoked += [partition.partition for partition in partitions]


def committed_offsets(broker: Broker, group: str, topic: str) -> dict[int, int]:
    admin = admin_of(broker)
    found = settled(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))[group].topic_partitions
    return {partition.partition: partition.offset for partition in found if partition.topic == topic}


@contextmanager
def committer_of(broker: Broker, group: str, topic: str) -> Iterator[Callable[[dict[int, int]], None]]:
    """A consumer outside any generation, which commits what it is told."""
    with consumer_of(broker, group_id=group, socket_timeout_ms=2000) as consumer:

        def commit(offsets: dict[int, int]) -> None:
            told = [TopicPartition(topic, partition, at) for partition, at in offsets.items()]
            for done in consumer.commit(offsets=told, asynchronous=False):
                if done.error is not None:
                    raise KafkaException(done.error)

        yield commit
