"""README tells the truth: its Python runs, its commands and its links exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from momus import Broker
from momus.cli.main import cli

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
PYTHON = [text for language, text in BLOCKS if language in ("python", "py")]
SHELL = [
    line.split("  #")[0].removeprefix("$ ").strip()
    for language, text in BLOCKS
    if language in ("sh", "bash", "console", "shell")
    for line in text.replace("\\\n", " ").splitlines()
]
MAKEFILE_TARGETS = set(re.findall(r"^([\w-]+(?: [\w-]+)*):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.e2e
@pytest.mark.parametrize("text", PYTHON, ids=[f"block {n}" for n in range(len(PYTHON))])
def test_python_in_readme_runs(text, tmp_path):
    with Broker() as broker:
        # A snippet that points at `make serve` finds a broker of this test there.
        text = re.sub(r"(127\.0\.0\.1|localhost):9092", broker.bootstrap_servers, text)
        is_test = re.search(r"^(async )?def test_", text, re.MULTILINE)
        script = tmp_path / ("test_readme.py" if is_test else "readme.py")
        script.write_text(text)
        command = [sys.executable, "-W", "ignore", *(["-m", "pytest", "-q"] if is_test else []), str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("line", [line for line in SHELL if line.startswith("momus ")])
def test_momus_commands_in_readme_exist(line):
    words = shlex.split(line, comments=True)[1:]
    result = CliRunner().invoke(cli, [*words, "--help"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("line", [line for line in SHELL if line.startswith("make ")])
def test_make_targets_in_readme_exist(line):
    target = shlex.split(line, comments=True)[1]
    assert target in " ".join(MAKEFILE_TARGETS).split()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:|#)([^)#]+)", README))) or ["README.md"])
def test_links_in_readme_lead_somewhere(link):
    assert (REPOSITORY / link).exists()
