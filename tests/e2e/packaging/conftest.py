"""What the tests of an inner run tell."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def told(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """What the tests of an inner run have told, a dict a line."""
    place = pytester.path / "told"
    place.touch()
    monkeypatch.setenv("TOLD", str(place))
    for name in ("MOMUS_ADDRESS", "MOMUS_FLUSH", "MOMUS_SEED"):
        monkeypatch.delenv(name, raising=False)
    return lambda: [json.loads(line) for line in place.read_text().splitlines()]
