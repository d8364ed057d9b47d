"""Public compose files with their own healthchecks: `docker compose up --wait` ends, and their tools work.

compose/ has one short file for each: what matters of it, and where its form is from. Intervals are shorter than there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from docker_engine import run
from image_kit import IMAGE, Container

FILES = sorted((Path(__file__).parent / "compose").glob("*.yml"))
TEN = [str(number) for number in range(1, 11)]
Start = Callable[..., Container]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_public_compose_file_is_healthy_and_its_tools_work(compose: list[str], file: Path) -> None:
    command = [*compose, "-p", f"momus-{file.stem.replace('_', '-')}", "-f", str(file)]
    environment = {**os.environ, "IMAGE": IMAGE}
    try:
        run(*command, "up", "--wait", env=environment)
        if "once" in yaml.safe_load(file.read_text())["services"]:
            printed = run(*command, "run", "--rm", "-T", "once", env=environment).stdout.splitlines()
            assert printed[0].startswith("Created topic ")
            assert sorted(printed[1:], key=int) == TEN
    finally:
        run(*command, "--profile", "once", "down", "--volumes", env=environment)


def test_there_are_ten_with_a_healthcheck_of_their_own() -> None:
    assert sum("healthcheck" in yaml.safe_load(file.read_text())["services"]["kafka"] for file in FILES) >= 10
