"""The benchmarks that docs/figures.md names run to their end and print figures, with as little load as they take.

Those of the pipeline need Spark's packages: tests/pipeline/source/test_decode_benchmark.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from momus import Broker

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
COMMANDS = [
    "clusters --clusters 2",
    "growth --most 1 --seconds 0.2 connections offsets",
    "hostile --connections 2 --seconds 0.2",
    "kits --rounds 1 --peer",
    "offsets memory replay pause mixed --entries 2000 --seconds 0.2",
    "producers --producers 200",
    "share --peer . --pairs 1 --seconds 0.2",
    "snapshots --rounds 1 --flush memory",
    "tls --seconds 0.2 --rounds 1",
]


def run(*words: str) -> str:
    """What a benchmark prints."""
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_benchmark_prints_figures(command: str) -> None:
    shown = run(*f"benchmarks.{command}".split())
    assert any(character.isdigit() for character in shown)
    assert "nan" not in shown.split()


@pytest.mark.parametrize("flow", ["v1", "v2"])
def test_transactions_are_made(flow: str) -> None:
    with Broker() as broker:
        found = json.loads(run("benchmarks.transactions", flow, broker.bootstrap_servers, "--seconds", "0.2"))
    assert found["ops_per_s"] > 0
    assert found["errors"] == 0


@pytest.mark.parametrize("words", ["commit", "fetchoff", "fetchmoved", "produce", "consume", "conns"])
def test_load_is_made(words: str) -> None:
    with Broker() as broker:
        found = json.loads(run("benchmarks.load", words, broker.bootstrap_servers, "--seconds", "0.2"))
    assert found["ops_per_s"] > 0
    assert found["errors"] == 0
