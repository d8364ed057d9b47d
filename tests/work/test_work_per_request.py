"""Usual requests take as many calls, instructions and blocks of memory as when their counts were kept.

It guards speed where a clock cannot: the counts are the same on a busy machine. To find what is new, compare what
`PYTHONPATH=.:tests PYTHONHASHSEED=0 python -m work --calls "Heartbeat v4"` prints, the functions that are called, with
what it prints without your change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from momus import launch
from work.counts import differences, kept_file, message
from work.meters import ROUNDS

REPOSITORY = Path(__file__).parents[2]
KEPT = {"Heartbeat": {"calls": 1000, "blocks": 5}, "Metadata": {"calls": 0}}


@pytest.mark.heavy
def test_work_of_usual_requests_is_as_kept() -> None:
    if launch.build() != "pure Python":
        pytest.skip("compiled functions have neither calls nor instructions to count")
    if not kept_file().exists():
        pytest.skip(f"{kept_file().name} is not there: counts are kept for the Python of the image, 3.11")
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(REPOSITORY), "tests")), "PYTHONHASHSEED": "0"}
    done = subprocess.run([sys.executable, "-m", "work"], cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, check=True)
    found = differences(json.loads(kept_file().read_text()), json.loads(done.stdout), ROUNDS)
    assert not found, message(found)


def test_counts_within_the_tolerance_are_no_difference() -> None:
    found = {"Heartbeat": {"calls": 1020, "blocks": 45}, "Metadata": {"calls": 0}}
    assert differences(KEPT, found, 40) == []


def test_counts_that_rose_and_fell_are_told_apart() -> None:
    found = {"Heartbeat": {"calls": 1021, "blocks": -36}, "Metadata": {"calls": 40}}
    assert differences(KEPT, found, 40) == [
        "Heartbeat: fewer blocks, -0.9, before 0.1",
        "Heartbeat: more calls, 25.5, before 25.0",
        "Metadata: more calls, 1.0, before 0.0",
    ]


def test_counts_of_requests_that_only_one_side_has_are_a_difference() -> None:
    assert differences(KEPT, {"Metadata": {"calls": 0}, "Fetch": {"calls": 1}}, 40) == [
        "Fetch: was counted and is not kept",
        "Heartbeat: is kept and was not counted",
    ]


def test_counts_of_the_image_are_kept() -> None:
    """Else the guard would be skipped everywhere."""
    assert kept_file((3, 11)).exists()
