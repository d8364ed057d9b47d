"""Real clients against brokers that read every request and write every response by construct.

The short form: `make test-construct` runs all of tests/e2e so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from clientwork import seen_by
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition as KafkaPythonPartition

from momus import Broker

LIMIT_S = 30


@pytest.fixture
def construct_broker(broker_factory: Callable[..., Broker]) -> Broker:
    return broker_factory(codec="construct")


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # of kafka-python's refused connections
def test_kafka_python_produces_and_consumes_as_a_group(construct_broker):
    servers = construct_broker.bootstrap_servers
    producer = KafkaProducer(bootstrap_servers=servers)
    for n in range(10):
        producer.send("t", b"value %d" % n)
    producer.close()
    consumer = KafkaConsumer("t", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
    seen_by(consumer, "t")
    values: list[bytes] = []
    while len(values) < 10:
        for records in consumer.poll(1000).values():
            values += [record.value for record in records]
    consumer.commit()
    assert values == [b"value %d" % n for n in range(10)]
    assert consumer.committed(KafkaPythonPartition("t", 0)) == 10
    consumer.close()


def test_aiokafka_commits_and_aborts_transactions(construct_broker):
    servers = construct_broker.bootstrap_servers

    async def run() -> tuple[list[bytes], int | None]:
        producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="tx")
        await producer.start()
        for number in range(3):
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"value %d" % number)
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): number}, "g")
            await (producer.abort_transaction() if number == 1 else producer.commit_transaction())
        await producer.stop()
        consumer = AIOKafkaConsumer(
            "t", bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        await consumer.start()
        values = [(await consumer.getone()).value for _ in range(2)]
        await consumer.stop()
        reader = AIOKafkaConsumer(bootstrap_servers=servers, group_id="g")
        await reader.start()
        committed = await reader.committed(TopicPartition("t", 0))
        await reader.stop()
        return values, committed

    assert asyncio.run(asyncio.wait_for(run(), LIMIT_S)) == ([b"value 0", b"value 2"], 2)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_administers_produces_and_consumes(construct_broker, protocol):
    servers = {"bootstrap.servers": construct_broker.bootstrap_servers, "log_level": 0}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic("t", 2, 1, config={"retention.ms": "1000"})])["t"].result(LIMIT_S)
    resource = ConfigResource("topic", "t")
    assert admin.describe_configs([resource])[resource].result(LIMIT_S)["retention.ms"].value == "1000"
    producer = Producer(servers)
    for n in range(10):
        producer.produce("t", b"value %d" % n, partition=n % 2)
    assert producer.flush(LIMIT_S) == 0
    group = {"group.id": "g", "group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(servers | group)
    consumer.subscribe(["t"])
    values = {consumer.consume(1, LIMIT_S)[0].value() for _ in range(10)}
    consumer.commit(asynchronous=False)
    assert values == {b"value %d" % n for n in range(10)}
    assert [each.offset for each in consumer.committed([Position("t", 0), Position("t", 1)])] == [5, 5]
    consumer.close()
    admin.delete_topics(["t"])["t"].result(LIMIT_S)
