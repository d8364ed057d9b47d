"""What the tests of the balances begin with: a cluster with four payments and their schema, forked for each test."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from payments import Balances, Payer

PAYMENTS = [("a", 500), ("b", 20), ("a", -100), ("b", 1)]
SUMS = {"a": 400, "b": 21}


@pytest.fixture(scope="session")
def kafka_broker_template(make_kafka_broker):
    broker = make_kafka_broker(config={"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2})
    broker.create_topic("payments", 1, config={"retention.ms": -1})  # kept for longer than offsets are
    broker.create_topic("payments-refused", 1)
    payer = Payer(broker.client_config("confluent"), broker.client_config("confluent-registry"))
    for number, (account, cents) in enumerate(PAYMENTS):
        payer.pay(id=f"payment-{number}", account=account, cents=cents)
    return broker


@pytest.fixture
def broker(kafka_broker_fork):
    return kafka_broker_fork


@pytest.fixture
def make_payer():
    def make(cluster, **schema) -> Payer:
        return Payer(cluster.client_config("confluent"), cluster.client_config("confluent-registry"), **schema)

    return make


@pytest.fixture
def make_balances(tmp_path):
    """Makes workers; all share one database, as after a restart."""
    with ExitStack() as ends:

        def make(cluster) -> Balances:
            registry = cluster.client_config("confluent-registry")
            worker = Balances(cluster.client_config("confluent"), registry, str(tmp_path / "balances.db"))
            ends.callback(worker.close)
            return worker

        yield make
