"""SUPPORTED.md says what the routing table says."""

from __future__ import annotations

from pathlib import Path

from broker.supported import supported

REPOSITORY = Path(__file__).parents[2]


def test_supported_is_fresh():
    assert (REPOSITORY / "SUPPORTED.md").read_text() == supported(), "run: python -m broker.supported > SUPPORTED.md"
