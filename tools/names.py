"""Version and names of what a release publishes. pyproject.toml states them; the other files that name them follow.

    python tools/names.py           writes them into those files, after pyproject.toml has changed

`FOLLOWERS` has each place. tests/tidy/test_names.py holds the places to it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Names:
    """What pyproject.toml says: [project] has package and version, [tool.momus.names] the others."""

    version: str
    package: str  # of PyPI
    image: str
    go_module: str
    maven_group: str
    maven_artifact: str
    npm_package: str


class Follower(NamedTuple):
    """A place that repeats one of them: a file, and a pattern whose one group is the text."""

    file: str
    pattern: str
    field: str


FOLLOWERS = (
    Follower("momus/__init__.py", r'^__version__ = "(.+)"$', "version"),
    Follower("broker/shell/control/version.py", r'^VERSION: Final = "(.+)"$', "version"),
    Follower("clients/node/package.json", r'^  "name": "(.+)",$', "npm_package"),
    Follower("clients/node/package.json", r'^  "version": "(.+)",$', "version"),
    Follower("clients/node/src/find.ts", r"^export const platformPackage = `([^$]+)-\$", "npm_package"),
    Follower("clients/node/src/version.ts", r'^export const VERSION = "(.+)";$', "version"),
    Follower("clients/junit/orders/pom.xml", r"^    <momus.version>(.+)</momus.version>$", "version"),
    Follower("Dockerfile", r"org\.opencontainers\.image\.version=(\S+)", "version"),
    Follower("Dockerfile", r"org\.opencontainers\.image\.title=(\S+)", "image"),
    Follower("clients/go/go.mod", r"^module (\S+)$", "go_module"),
    Follower("clients/go/find.go", r'^const modulePath = "(.+)"', "go_module"),
    Follower("clients/go/process.go", r'^const Version = "(.+)"$', "version"),
    Follower("clients/junit/src/main/java/test/momus/Momus.java", r'String VERSION = "(.+)";$', "version"),
    Follower("clients/junit/pom.xml", r"^  <groupId>(.+)</groupId>$", "maven_group"),
    Follower("clients/junit/pom.xml", r"^  <artifactId>(.+)</artifactId>$", "maven_artifact"),
    Follower("clients/junit/pom.xml", r"^  <version>(.+)</version>$", "version"),
)


def read() -> Names:
    """The names in pyproject.toml."""
    file = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    project, names = file["project"], file["tool"]["momus"]["names"]
    return Names(project["version"], project["name"], **{key.replace("-", "_"): value for key, value in names.items()})


def found(follower: Follower) -> re.Match[str]:
    """The place in its file. Errors: SystemExit: it is not there once."""
    text = (REPOSITORY / follower.file).read_text(encoding="utf-8")
    matches = list(re.finditer(follower.pattern, text, re.MULTILINE))
    if len(matches) != 1:
        sys.exit(f"{follower.file}: {len(matches)} places match {follower.pattern}, wanted is one")
    return matches[0]


def wrong() -> list[str]:
    """A line for each place that says something else than pyproject.toml."""
    names = read()
    lines = []
    for follower in FOLLOWERS:
        text, wanted = found(follower)[1], getattr(names, follower.field)
        if text != wanted:
            lines.append(f"{follower.file} says {text}, pyproject.toml {wanted}: python tools/names.py")
    return lines


def main() -> None:
    """Write the names into each place."""
    names = read()
    for follower in FOLLOWERS:
        match = found(follower)
        text = match.string[: match.start(1)] + getattr(names, follower.field) + match.string[match.end(1) :]
        (REPOSITORY / follower.file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
