"""The version and the names of a release are those of pyproject.toml everywhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def test_npm_is_asked_for_no_name_of_ours() -> None:
    """Anybody may publish a name there that begins with the kit's: our packages are taken from files alone."""
    files = [*REPOSITORY.glob("clients/*/package*.json"), *REPOSITORY.glob("clients/*/*/package*.json")]
    assert REPOSITORY / "clients/node/orders/package-lock.json" in files
    asked = {
        f"{file.relative_to(REPOSITORY)}: {name}@{version}"
        for file in files
        for name, version in dependencies(json.loads(file.read_text(encoding="utf-8")))
        if name.startswith(names.read().npm_package) and not version.startswith("file:")
    }
    assert asked == set()


def dependencies(manifest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and version of each dependency of a package.json, or of each package in a package-lock.json."""
    for package in (manifest, *manifest.get("packages", {}).values()):
        for kind in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"):
            yield from package.get(kind, {}).items()
