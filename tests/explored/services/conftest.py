"""What the services begin with: six orders in a topic, another topic for what becomes of them, and a supervisor."""

from __future__ import annotations

import pytest

COUNT = 6


@pytest.fixture
def cluster(kafka_broker):
    kafka_broker.create_topics({"orders": 1, "bills": 1})
    kafka_broker.produce("orders", *(f"order {number}" for number in range(COUNT)))
    return kafka_broker
