"""Three brokers of momus, and a proxy before them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from momus import Broker

PROMPT = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Broker]:
    """The cluster that the proxy stands before."""
    with Broker(brokers=3, config=PROMPT) as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


@pytest.fixture(scope="module")
def proxy(upstream: Broker) -> Iterator[Broker]:
    """The proxy."""
    with Broker(upstream=upstream.bootstrap_servers, journal_mb=4) as broker:
        yield broker
        assert broker.stop() == 0
