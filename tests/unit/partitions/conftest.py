"""The data path that tests of partitions begin with; a module with other needs has its own."""

from __future__ import annotations

import pytest
from unit.partitions.data_path import DataPath


@pytest.fixture
def path() -> DataPath:
    return DataPath()


@pytest.fixture
def latest() -> DataPath:
    """One that shows what is known of producers without the log."""
    return DataPath(producer_state="latest")
