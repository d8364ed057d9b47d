"""What of the kit a run has called: kept while it runs, asked for by the last check."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

import pytest

CALLED: set[CodeType] = set()


def _see(frame: FrameType, event: str, told: object) -> None:
    if event == "call":
        CALLED.add(frame.f_code)


def pytest_runtest_call(item: pytest.Item) -> None:
    """From now on; pytest itself sets no profile."""
    sys.setprofile(_see)


@pytest.fixture(scope="session")
def called() -> set[CodeType]:
    """The code of each function that was called in a check before."""
    return CALLED


@pytest.fixture(scope="session")
def kafka_broker_template(make_kafka_broker):
    """What kafka_broker_fork forks."""
    broker = make_kafka_broker()
    broker.create_topic("kept")
    return broker
