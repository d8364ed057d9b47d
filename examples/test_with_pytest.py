"""A test with a broker of its own; run it where momus and aiokafka are installed: pytest examples/test_with_pytest.py

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
