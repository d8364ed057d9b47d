"""A broker for each module of Spark's tests as a client, whose tests name their topics apart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from momus import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker
        assert broker.log == ""


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic's name for this test alone."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
