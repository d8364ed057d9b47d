"""confluent-kafka members of a consumer group (KIP-848), each in a thread of its own."""

from __future__ import annotations

from typing import Any

from clientwork import LIMIT_S, Member
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from momus import Broker

# Heartbeats every 100 ms instead of every 5 s: the members' part of a rebalance takes no longer than the broker's.
# Their sessions last as long as Kafka's, so that nobody is expelled because the machine is busy.
PROMPT_GROUPS = {"group.consumer.heartbeat.interval.ms": 100}


def create(broker: Broker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(LIMIT_S)


def consumer_of(broker: Broker, group: str, **settings: Any) -> Consumer:
    basics = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "group.protocol": "consumer",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    return Consumer(basics | {key.replace("_", "."): value for key, value in settings.items()})


def begin_at_zero(broker: Broker, topic: str, group: str, partitions: int) -> None:
    """Commit offset 0 everywhere, as an administrator would."""
    consumer = consumer_of(broker, group)
    consumer.commit(offsets=[TopicPartition(topic, p, 0) for p in range(partitions)], asynchronous=False)
    consumer.close()


class CommittingMember(Member):
    """Commits every record as soon as it has it."""

    def __init__(self, broker: Broker, topic: str, group: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.broker, self.topic, self.group = broker, topic, group

    def consume(self) -> None:
        consumer = consumer_of(self.broker, self.group, **self.settings)
        try:
            # with a callback partitions are given back inside poll, so never between a record and its commit
            consumer.subscribe([self.topic], on_revoke=lambda consumer, partitions: None)
            while not self.stopping.is_set():
                message = consumer.poll(0.05)
                self.assigned = frozenset(p.partition for p in consumer.assignment())
                if message is None:
                    continue
                if message.error() is not None:
                    raise KafkaException(message.error())
                consumer.commit(message, asynchronous=False)
                self.received.append(message.value())
        finally:
            consumer.close()
        self.assigned = frozenset()


class TransactionalMember(Member):
    """Commits the offsets of all it owns in a transaction of its own, over and over; `refused` says how often not."""

    def __init__(self, broker: Broker, topic: str, group: str, name: str, pause_s: float = 0.01) -> None:
        super().__init__()
        self.broker, self.topic, self.group, self.name_, self.pause_s = broker, topic, group, name, pause_s
        self.committed = 0
        self.refused = 0

    def consume(self) -> None:
        consumer = consumer_of(self.broker, self.group)
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "transactional.id": self.name_,
                "log_level": 0,
            }
        )
        producer.init_transactions(LIMIT_S)
        try:
            consumer.subscribe([self.topic])
            while not self.stopping.is_set():
                consumer.poll(self.pause_s)
                owned = consumer.assignment()
                self.assigned = frozenset(p.partition for p in owned)
                if owned:
                    self._commit(consumer, producer, [TopicPartition(self.topic, p.partition, 1) for p in owned])
        finally:
            consumer.close()
        self.assigned = frozenset()

    def _commit(self, consumer: Consumer, producer: Producer, offsets: list[TopicPartition]) -> None:
        producer.begin_transaction()
        try:
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), LIMIT_S)
            producer.commit_transaction(LIMIT_S)
            self.committed += 1
        except KafkaException as error:
            if error.args[0].code() != KafkaError.ILLEGAL_GENERATION:
                raise
            self.refused += 1
            producer.abort_transaction(LIMIT_S)
