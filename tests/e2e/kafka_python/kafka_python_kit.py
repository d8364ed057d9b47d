"""kafka-python's way of doing the work of clientwork.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from clientwork import Member, seen_by, until
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from momus import Broker


@contextmanager
def admin_of(broker: Broker) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        yield admin
    finally:
        admin.close()


@contextmanager
def producer_of(broker: Broker, **settings: Any) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **settings)
    try:
        yield producer
    finally:
        producer.close(5)


@contextmanager
def consumer_of(broker: Broker, **settings: Any) -> Iterator[KafkaConsumer]:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False} | settings
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, **settings)
    try:
        yield consumer
    finally:
        consumer.close(timeout_ms=5000)


def create(broker: Broker, topic: str, partitions: int = 1, **configs: str) -> None:
    with admin_of(broker) as admin:
        admin.create_topics({topic: {"num_partitions": partitions, "configs": configs}})


def read(consumer: KafkaConsumer, count: int) -> list[Any]:
    """The next `count` records of whatever the consumer reads."""
    records: list[Any] = []

    def enough() -> bool:
        for batch in consumer.poll(200).values():
            records.extend(batch)
        return len(records) >= count

    until(enough, f"{count} records")
    assert len(records) == count
    return records


class KafkaPythonMember(Member, ConsumerRebalanceListener):
    """Commits what it processed after each poll."""

    def __init__(self, broker: Broker, topic: str, group: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.broker, self.topic, self.group = broker, topic, group
        self.member_id = ""
        self.revoked: list[int] = []

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self.revoked += [partition.partition for partition in revoked]

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        pass

    def consume(self) -> None:
        settings = {"group_id": self.group, "heartbeat_interval_ms": 100, "session_timeout_ms": 30_000}
        with consumer_of(self.broker, **(settings | self.settings)) as consumer:
            consumer.subscribe([self.topic], listener=self)
            seen_by(consumer, self.topic)
            while not self.stopping.is_set():
                batches = consumer.poll(50)
                self.assigned = frozenset(partition.partition for partition in consumer.assignment())
                self.member_id = consumer.group_metadata().member_id
                if batches:
                    consumer.commit()
                    for batch in batches.values():
                        self.received += [record.value for record in batch]
        self.assigned = frozenset()


def committed_offsets(broker: Broker, group: str, topic: str) -> dict[int, int]:
    with admin_of(broker) as admin:
        found = admin.list_group_offsets(group)[group]
    return {partition.partition: at.offset for partition, at in found.items() if partition.topic == topic}


@contextmanager
def committer_of(broker: Broker, group: str, topic: str) -> Iterator[Callable[[dict[int, int]], None]]:
    """A consumer outside any generation, which commits what it is told."""
    with consumer_of(broker, group_id=group, request_timeout_ms=5000) as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        def commit(offsets: dict[int, int]) -> None:
            told = {TopicPartition(topic, p): OffsetAndMetadata(at, str(at), -1) for p, at in offsets.items()}
            consumer.commit(told, timeout_ms=5000)

        yield commit
