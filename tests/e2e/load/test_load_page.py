"""The examples of docs/load.md do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from momus import Broker

REPOSITORY = Path(__file__).parents[3]
FENCE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the page."""
    for name, text in FENCE.findall((REPOSITORY / "docs" / "load.md").read_text()):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    for name in ("MOMUS_ADDRESS", "MOMUS_FLUSH", "MOMUS_SEED", "MOMUS_LOAD"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_examples_are_loaded_and_tested(folder):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    with Broker(load="orders.yaml", flush="memory") as broker:
        values = [record.value for record in broker.consume("orders")]
        assert sorted(values) == [
            b"\0\1\2\3",
            b"two teas",
            b'{"item":"one coffee","price":3.5}',
            b'{"item":"three cakes"}',
        ]


def test_what_is_wrong_is_said_as_the_page_has_it(folder):
    command = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", "--load", "wrong.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (2, (folder / "wrong.txt").read_text())


def test_schema_of_the_page_and_the_wheel_is_the_declared_one():
    import json

    from broker.load.fields import json_schema

    wanted = json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
    for place in ("docs", "momus"):
        assert (REPOSITORY / place / "load.schema.json").read_text() == wanted, place
