"""The image's start script, without a container: what it hands to `momus serve` of the folder that fills the broker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "docker" / "bin" / "serve"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the script with its folder elsewhere, and a `momus` that tells its variables, or is the real one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "serve"
    text = SCRIPT.read_text()
    assert "/etc/momus/load" in text
    script.write_text(text.replace("/etc/momus/load", f"{tmp_path}/load").replace("/var/lib/momus", f"{tmp_path}/data"))
    script.chmod(0o755)
    for name in [name for name in os.environ if name.startswith(("MOMUS_", "KAFKA_"))]:
        monkeypatch.delenv(name)

    def run(*words: str, momus: str = 'echo "load=$MOMUS_LOAD $*"', **given: str) -> subprocess.CompletedProcess[str]:
        (programs / "momus").write_text(f"#!/bin/sh\n{momus}\n")
        (programs / "momus").chmod(0o755)
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", **given}
        return subprocess.run(
            [str(script), *words], env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_folder_that_is_absent_or_empty_is_nothing(run, tmp_path):
    assert run().stdout == "load= serve\n"
    (tmp_path / "load").mkdir()
    assert run().stdout == "load= serve\n"


def test_folder_with_files_is_loaded_unless_a_variable_names_another(run, tmp_path):
    (tmp_path / "load").mkdir()
    (tmp_path / "load" / "a.json").write_text("{}")
    assert run().stdout == f"load={tmp_path}/load serve\n"
    assert run(MOMUS_LOAD="/elsewhere").stdout == "load=/elsewhere serve\n"


def test_topics_of_the_variable_are_made_by_a_start_of_the_script(run, tmp_path):
    """The real broker is stopped by the script's own words: an address that it cannot have ends it after the load."""
    shutil.rmtree(tmp_path / "data", ignore_errors=True)
    real = f'exec {sys.executable} -m momus "$@"'
    given = {"KAFKA_CREATE_TOPICS": "orders:3:1", "MOMUS_LISTEN": "203.0.113.1:9", "MOMUS_LOG_LEVEL": "info"}
    done = run(momus=real, **given)
    assert done.returncode == 1
    assert "KAFKA_CREATE_TOPICS: made topics: 1" in done.stderr
    assert (tmp_path / "data" / "meta.properties").exists()
