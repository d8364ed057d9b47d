"""The log that the cleaner works on."""

from __future__ import annotations

import pytest
from compaction_kit import CONFIG
from log_kit import DIRECTORY

from storage.files.sim_env import sim_env
from storage.log.log import Log


@pytest.fixture
def log():
    return Log.open(sim_env(), DIRECTORY, CONFIG)
