"""The broker that tests of faults begin with."""

from __future__ import annotations

import pytest
from faults_kit import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
