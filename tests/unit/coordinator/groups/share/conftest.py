"""The broker with topics that share groups subscribe to."""

from __future__ import annotations

import pytest
from unit.coordinator.share.kit import ShareWorld


@pytest.fixture
def world():
    with ShareWorld({"t": 4, "u": 2}) as made:
        yield made
