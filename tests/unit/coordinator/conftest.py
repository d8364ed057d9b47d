"""The shard that tests of the runtime begin with."""

from __future__ import annotations

import pytest
from shard_kit import Bench


@pytest.fixture
def bench():
    bench = Bench()
    bench.shard.require()
    return bench
