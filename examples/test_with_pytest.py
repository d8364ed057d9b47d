"""Tests with clusters of their own, for where momus, aiokafka and confluent-kafka are installed.

Run them: pytest examples/test_with_pytest.py
Needs pytest-asyncio for the `async` test, as any asynchronous test does; the fixture itself does not.
"""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


@pytest.fixture(scope="session")
def kafka_broker_config():
    return {"num.partitions": 2}


@pytest.mark.asyncio
async def test_a_message_comes_back(kafka_broker):
    config = kafka_broker.client_config("aiokafka")
    async with AIOKafkaProducer(**config) as producer:
        await producer.send_and_wait("greetings", b"hello")
    async with AIOKafkaConsumer("greetings", **config, auto_offset_reset="earliest") as consumer:
        assert (await consumer.getone()).value == b"hello"


def test_a_member_that_is_silent_is_expelled_after_its_45_seconds(kafka_broker):
    from confluent_kafka import Consumer

    kafka_broker.create_topic("orders")
    config = {**kafka_broker.client_config("confluent"), "group.id": "billing", "group.instance.id": "one"}
    consumer = Consumer({**config, "session.timeout.ms": 45_000})
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.close()  # a static member does not leave
    kafka_broker.clock.advance(seconds=44)
    kafka_broker.wait_for_group("billing", "stable", members=1)
    kafka_broker.clock.advance(seconds=2)
    kafka_broker.wait_for_group("billing", "empty", members=0)
