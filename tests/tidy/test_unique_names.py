"""Files of tests have names of their own: pytest refuses to collect two of one name that are in no package."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_no_two_files_of_tests_have_one_name():
    names = Counter(path.name for path in TESTS.rglob("test_*.py") if "build" not in path.parts)
    assert [name for name, times in names.items() if times > 1] == []
