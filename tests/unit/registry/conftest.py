"""The registry of a test, which a replay of its records must make again."""

import pytest
from registry_kit import RegistryKit


@pytest.fixture
def registry():
    kit = RegistryKit()
    yield kit
    assert kit.replayed().facts() == kit.state.facts()
