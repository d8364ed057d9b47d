"""kafka-python leaves the sockets of refused connections to the garbage collector; that is not our warning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from garbage import collect


@pytest.fixture(autouse=True)
def sockets_swept() -> Iterator[None]:
    """Collect them here, not in the middle of somebody else's test."""
    yield
    collect()
