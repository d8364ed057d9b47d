"""A process for the module, and a cluster of it for each test."""

from __future__ import annotations

import pytest

from momus import Broker


@pytest.fixture(scope="module")
def process():
    with Broker(seed=5) as broker:
        yield broker
        assert broker.stop() == 0


@pytest.fixture
def cluster(process):
    with process.create_cluster(brokers=3, config={"group.min.session.timeout.ms": 1000}) as cluster:
        yield cluster
    assert cluster.log == ""
