"""What the tests of the billing service begin with: a cluster with 12 invoices, made once and forked for each test."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from billing import Billing
from invoice_samples import INVOICES


@pytest.fixture(scope="session")
def kafka_broker_template(make_kafka_broker):
    broker = make_kafka_broker(config={"offsets.topic.num.partitions": 2})
    broker.create_topic("invoices", 1)
    broker.produce("invoices", *INVOICES)
    return broker


@pytest.fixture
def broker(kafka_broker_fork):
    return kafka_broker_fork


@pytest.fixture
def make_service(broker, tmp_path):
    """Makes workers; all share one database, as after a restart."""
    with ExitStack() as ends:

        def make(**settings) -> Billing:
            service = Billing(broker.client_config("confluent"), str(tmp_path / "sums.db"), **settings)
            ends.callback(service.close)
            return service

        yield make
