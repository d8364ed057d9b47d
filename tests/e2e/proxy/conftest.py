"""Three brokers of momus, and a proxy before them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from momus import Broker

sys.path.insert(0, str(Path(__file__).parents[1] / "java"))
from java_checks import compiled  # of the folder beside
from tools_twice import Twice, tools_twice

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


@pytest.fixture(scope="session")
def twice(kafka_libs: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twice]:
    """Console tools, run directly and through a proxy, on one node."""
    with tools_twice(kafka_libs, compiled(kafka_libs, "Tools"), tmp_path_factory.mktemp("twice")) as made:
        yield made
