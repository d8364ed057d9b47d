"""What tests of handlers begin with; a module with other needs has its own."""

from __future__ import annotations

import pytest
from admin_broker import AdminBroker
from core_broker import Client, World, make_topic
from unit.coordinator.harness import ShardHarness

from broker.handlers.topics import create_topics
from protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
)


@pytest.fixture
def h():
    with ShardHarness() as harness:
        yield harness


@pytest.fixture
def broker():
    broker = AdminBroker()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    broker.call(create_topics, CreateTopicsRequest(topics=[topic]))
    yield broker
    broker.check_reload()


@pytest.fixture
def client() -> Client:
    client = Client(World("os"))
    make_topic(client, partitions=2)
    return client
