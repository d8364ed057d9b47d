"""The loop run by hand and the handshakes on it."""

from __future__ import annotations

import pytest
from tls_kit import Loop

from broker.shell.tls.handshakes import Handshakes, Steps


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def handshakes(loop) -> Handshakes:
    return Handshakes(loop, Steps())
