"""What the mutation tests name is there: a pattern without files would test nothing, and say nothing about it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PATTERN = re.compile(r'"((?:broker|protocol|storage|tests)/[^"]+)"')


def absent(text: str) -> list[str]:
    """The patterns in a text that no file matches."""
    return [pattern for pattern in PATTERN.findall(text) if not any(REPOSITORY.glob(pattern))]


def test_mutation_tests_name_files_that_are_there():
    text = (REPOSITORY / "tools/mutants_targets.py").read_text(encoding="utf-8")
    assert len(PATTERN.findall(text)) > 50
    assert absent(text) == []


def test_survivors_are_of_files_that_are_there():
    known = tomllib.loads((REPOSITORY / "tests/mutants_survivors.toml").read_text(encoding="utf-8"))["survivor"]
    assert absent(" ".join(f'"{each["file"]}"' for each in known)) == []


def test_file_that_is_not_there_is_found():
    assert absent('"broker/turn/turn.py" "broker/no_such_room/*.py"') == ["broker/no_such_room/*.py"]
