"""The world of tests of transactions: a broker at each durability, and a client of it that has made a topic."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic


@pytest.fixture(params=["memory", "os", "fsync"])
def world(request: pytest.FixtureRequest) -> World:
    """A module with other needs has its own."""
    return World(request.param)


@pytest.fixture
def client(world: World) -> Client:
    """One that has made topic t with three partitions."""
    made = Client(world)
    make_topic(made, "t", 3)
    return made
