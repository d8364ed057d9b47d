"""SUPPORTED.md says what the routing table says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_supported_is_fresh():
    made = subprocess.check_output([sys.executable, "-m", "broker.supported"], text=True, cwd=REPOSITORY)
    assert (REPOSITORY / "SUPPORTED.md").read_text() == made, "run: python -m broker.supported > SUPPORTED.md"
