"""The version and the names of a release are those of pyproject.toml everywhere."""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

import names  # noqa: E402  # of tools/


def test_each_place_says_what_pyproject_says() -> None:
    assert names.wrong() == []


def test_no_other_file_states_the_version() -> None:
    """One that is forgotten here would keep the old one."""
    version = names.read().version
    places = {follower.file for follower in names.FOLLOWERS} | {"pyproject.toml", "CHANGELOG.md"}
    files = [*REPOSITORY.glob("*.*"), *(REPOSITORY / "clients").rglob("*.*"), *(REPOSITORY / "momus").rglob("*.py")]
    texts = {".md", ".toml", ".xml", ".mod", ".py", ".yml", ".go", ".java"}
    stating = {
        str(file.relative_to(REPOSITORY))
        for file in files
        if file.suffix in texts
        and not {"target", "node_modules", "dist", "build"} & {*file.parts}
        and f"{version}" in file.read_text(encoding="utf-8")
    }
    assert stating <= places | {"README.md"}, "add it to FOLLOWERS in tools/names.py"
