"""The pytest fixtures: `kafka_broker` gives every test its own broker.

Nothing is autouse: a project that has momus installed and asks for no fixture pays one light import. A
project changes what it gets by overriding the two session fixtures in its conftest.py:

    @pytest.fixture(scope="session")
    def kafka_broker_config():
        return {"num.partitions": 4}
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus import Broker


@pytest.fixture(scope="session")
def kafka_broker_config() -> Mapping[str, object]:
    """Kafka broker settings for `kafka_broker`; override it."""
    return {}


@pytest.fixture(scope="session")
def kafka_listen_address() -> tuple[str, int]:
    """Host and port that `kafka_broker` binds; port 0 lets the system choose, which is what parallel runs
    need."""
    return ("127.0.0.1", 0)


@pytest.fixture
def kafka_broker(kafka_broker_config: Mapping[str, object], kafka_listen_address: tuple[str, int]) -> Iterator[Broker]:
    """A running broker with nothing in it; `kafka_broker.bootstrap_servers` is its address."""
    from momus import Broker

    host, port = kafka_listen_address
    with Broker(config=kafka_broker_config, listen=f"{host}:{port}") as broker:
        yield broker
        # pytest shows captured output of failed tests only, which is when the broker's log matters.
        sys.stderr.write(broker.log)
