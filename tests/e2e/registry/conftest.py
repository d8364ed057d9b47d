"""A broker with a registry for each file, and a client of it that finds it empty."""

from __future__ import annotations

import pytest
from registry_client import RegistryClient

from momus import Broker


@pytest.fixture(scope="module")
def broker():
    with Broker(registry=True, journal_mb=1) as broker:
        yield broker


@pytest.fixture
def registry(broker):
    broker.reset()
    return RegistryClient(broker.registry_url)
