"""The requests that stand for a class find what all find, on programs drawn by seed (make explore-classes: 200)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[2] / "explored" / "generated.py"


def test_requests_that_stand_for_a_class_find_each_bug_that_all_find():
    command = [sys.executable, str(PROGRAMS), "--programs", "10", "--seed", "301", "--buggy-only"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = re.search(r"(\d+) programs: (\d+) found, 0 missed", ran.stdout)
    assert found, ran.stdout
    assert int(found[2]) >= 4, ran.stdout  # else it says nothing
