"""Data directories, snapshots and kept runs that earlier versions wrote are opened, and hold what they held.

Each version that was released has a folder here, which its release wrote (make_samples.py) and nothing changes later.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sample_state import SETTINGS, state_of

from momus import Broker

SAMPLES = sorted(each.parent for each in Path(__file__).parent.glob("*/expected.json"))
pytestmark = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)


def test_there_is_a_sample(sample: Path) -> None:
    assert {each.name for each in sample.iterdir()} == {"data.zip", "run.momus", "expected.json"}


def test_data_directory_is_opened_and_its_snapshot_restored(sample: Path, tmp_path: Path) -> None:
    expected = json.loads((sample / "expected.json").read_text())
    shutil.unpack_archive(sample / "data.zip", tmp_path / "data")
    with Broker(data_dir=tmp_path / "data", config=SETTINGS) as broker:
        assert state_of(broker) == expected["now"]
        assert broker.produce("orders", "by the next version", partition=0)
        broker.restore("before")
        broker.clock.advance(days=1000)  # this test is run for years
        assert state_of(broker) == expected["snapshot"]
        assert broker.log == ""


def test_kept_run_is_played_with_the_same_answers(sample: Path) -> None:
    played = subprocess.run(
        [sys.executable, "-m", "momus", "replay", str(sample / "run.momus")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr
