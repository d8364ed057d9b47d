"""The groups that tests begin with; a module with other needs has its own."""

from __future__ import annotations

import pytest
from consumer_kit import Groups


@pytest.fixture
def g():
    with Groups({"t": 4}) as groups:
        yield groups
