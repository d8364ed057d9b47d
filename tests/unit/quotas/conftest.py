"""The client that quotas are for."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic


@pytest.fixture
def client() -> Client:
    made = Client(World("memory"))
    make_topic(made)
    return made
