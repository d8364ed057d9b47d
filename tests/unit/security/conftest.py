"""A broker with a SASL listener, and a client that has not authenticated."""

from __future__ import annotations

import pytest
from core_broker import World
from unit.security.security_kit import SaslClient, sasl_world


@pytest.fixture
def world() -> World:
    return sasl_world()


@pytest.fixture
def client(world: World) -> SaslClient:
    return SaslClient(world)
