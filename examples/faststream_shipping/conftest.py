"""What the tests of the shipping service begin with: a cluster with six orders, made once and forked for each test."""

from __future__ import annotations

import json

import pytest
from order_samples import ORDERS
from shipping import Shipping


@pytest.fixture(scope="session")
def kafka_broker_template(make_kafka_broker):
    broker = make_kafka_broker(config={"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2})
    for topic in ("orders", "shipments", "orders-refused"):
        broker.create_topic(topic, 1, config={"retention.ms": -1})  # kept for longer than offsets are
    for order in ORDERS:
        broker.produce("orders", json.dumps(order), partition=0)
    return broker


@pytest.fixture
def broker(kafka_broker_fork):
    """Its calls to await, so that the service's event loop goes on."""
    return kafka_broker_fork.aio


@pytest.fixture
async def make_service(tmp_path):
    """Makes workers; all share one database, as after a restart."""
    made = []

    async def make(cluster, **settings) -> Shipping:
        service = Shipping(cluster.bootstrap_servers, str(tmp_path / "shipped.db"), **settings)
        made.append(service)
        await service.start()
        return service

    yield make
    for service in made:
        await service.stop()
