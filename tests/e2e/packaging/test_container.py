"""The compose file, read by Docker itself where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def compose() -> list[str]:
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode != 0:
        pytest.skip("docker has no compose plugin")
    return ["docker", "compose", "-f", str(REPOSITORY / "docker-compose.yml")]


@pytest.mark.docker
def test_compose_file_is_valid_and_offers_both_listeners(compose):
    done = subprocess.run([*compose, "config", "--format", "json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    broker = json.loads(done.stdout)["services"]["broker"]
    advertised = broker["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert advertised == "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092"
    assert broker["healthcheck"]["test"][:3] == ["CMD", "momus", "health"]


def test_image_takes_every_package_that_the_wheel_needs():
    ignored = (REPOSITORY / ".dockerignore").read_text().split()
    for name in ("LICENSE", "README.md", "pyproject.toml", "broker", "momus", "protocol", "storage"):
        assert f"!{name}" in ignored
        assert (REPOSITORY / name).exists()


def test_image_holds_the_versions_that_these_tests_run_with():
    constraints = REPOSITORY / "tools" / "constraints.txt"
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", constraints.read_text(), re.MULTILINE))
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        core = [re.match(r"[\w-]+", each)[0] for each in tomllib.load(file)["project"]["dependencies"]]
    assert pinned == {name: version(name) for name in core}
    assert "-c /src/tools/constraints.txt" in (REPOSITORY / "Dockerfile").read_text()
    assert "!tools/constraints.txt" in (REPOSITORY / ".dockerignore").read_text().split()
