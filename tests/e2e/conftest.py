"""The brokers that real clients meet: one each module, one of three nodes, and the factory for whoever kills."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from momus import Broker

# Kafka waits three seconds for more members before a new group's first rebalance, and six for a silent one.
PROMPT = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000}


@pytest.fixture(scope="module")
def shared_broker() -> Iterator[Broker]:
    """A broker for a whole module, whose tests name their topics and groups apart."""
    with Broker(config=PROMPT) as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


@pytest.fixture(scope="module")
def trio() -> Iterator[Broker]:
    """Three virtual brokers for a whole module."""
    with Broker(brokers=3, config=PROMPT) as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for the topic and the group of this test alone."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
