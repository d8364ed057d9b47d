"""Java's default producer while replies are withheld and lost and the broker is killed: nothing twice."""

from __future__ import annotations

import subprocess

import pytest
from budget import short_and_slow
from java_checks import JVM
from lost_replies import BATCHES, RECORDS, SEEDS, write_each_record_once

pytestmark = pytest.mark.xdist_group("java")


@pytest.mark.parametrize("batch_bytes", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("seed", short_and_slow(range(SEEDS), 1))
def test_each_record_is_there_once_and_in_order(copying_classes, tmp_path, name, seed, batch_bytes):
    settings = [] if batch_bytes == BATCHES["defaults"] else [f"batch.size={batch_bytes}"]

    def write(address):
        command = [*JVM, "-cp", copying_classes, "Flood", address, name, str(RECORDS)]
        command += [*settings, "delivery.timeout.ms=300000"]  # kills take longer than the default of two minutes
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
        assert done.stdout.strip() == "ok", done.stdout + done.stderr

    write_each_record_once(write, name, seed, tmp_path / "data", RECORDS, reply_bytes=(1_500, 9_000))
