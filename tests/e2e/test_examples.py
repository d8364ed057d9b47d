"""What examples/ promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_example_consumer_goes_on_where_it_was_after_kill_9():
    printed = run("-W", "ignore", str(EXAMPLES / "consume_and_restart.py"))
    assert printed.splitlines() == ["before: [0, 1, 2, 3]", "after:  [4, 5, 6, 7, 8, 9]"]


def test_example_tests_pass():
    assert "2 passed" in run("-m", "pytest", "-p", "no:cacheprovider", str(EXAMPLES / "test_with_pytest.py"))
