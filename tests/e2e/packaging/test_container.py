"""The files that the image is built from name what it needs. tests/e2e/image runs it."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]


def test_image_takes_every_package_that_the_wheel_needs():
    ignored = (REPOSITORY / ".dockerignore").read_text().split()
    for name in ("LICENSE", "README.md", "pyproject.toml", "broker", "momus", "protocol", "storage"):
        assert f"!{name}" in ignored
        assert (REPOSITORY / name).exists()


def test_image_holds_the_versions_that_these_tests_run_with():
    constraints = REPOSITORY / "tools" / "constraints.txt"
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", constraints.read_text(), re.MULTILINE))
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    more = project["optional-dependencies"]
    wanted = [*project["dependencies"], *more["security"], *more["otel"], *more["registry"], *more["yaml"]]
    assert pinned.keys() >= {re.match(r"[\w-]+", each)[0] for each in wanted}
    assert pinned == {name: version(name) for name in pinned}
    ignored = (REPOSITORY / ".dockerignore").read_text().split()
    assert {"!tools/lock.txt", "!tools/build-lock.txt"} <= set(ignored)
