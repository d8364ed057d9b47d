"""What the tests of the orders service begin with: a cluster with 20 orders, made once and forked for each test."""

from __future__ import annotations

import pytest
from order_samples import ORDERS
from orders import Orders


@pytest.fixture(scope="session")
def kafka_broker_config():
    return {"num.partitions": 2, "transaction.state.log.num.partitions": 2, "offsets.topic.num.partitions": 2}


@pytest.fixture(scope="session")
def kafka_broker_template(make_kafka_broker):
    broker = make_kafka_broker(seed=2026)
    broker.create_topic("orders", 2)
    broker.create_topic("invoices", 1)
    for number, order in enumerate(ORDERS):
        broker.produce("orders", order, partition=number % 2)
    return broker


@pytest.fixture
def broker(kafka_broker_fork):
    return kafka_broker_fork


@pytest.fixture
async def service(broker):
    """A worker that has joined its group."""
    orders = Orders(broker.client_config("aiokafka"))
    await orders.start()
    yield orders
    await orders.stop()
