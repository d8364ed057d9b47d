"""Java producers over cut connections, and Java processes that copy records and are killed: nothing twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fault_proxy import FaultProxy
from java_checks import JVM
from read_back import read_back

sys.path.insert(0, str(Path(__file__).parents[1] / "exactly_once"))

from copy_run import WORKERS, copy  # beside the processes of the other clients

pytestmark = pytest.mark.xdist_group("java")

RECORDS = 20_000


@pytest.mark.parametrize("state", ["lookup", "latest", "batches"])
def test_idempotent_producer_over_cut_connections_writes_each_record_once(copying_classes, serve, name, state):
    limits = {"least_bytes": 100_000, "most_bytes": 400_000, "reply_bytes": (1_200, 2_500), "withheld_s": 0.2}
    with FaultProxy(11, **limits) as proxy:
        host, port = proxy.address
        proxy.target = serve(f"{host}:{port}", producer_state=state)
        command = [*JVM, "-cp", copying_classes, "Sequence", f"{host}:{port}", name, str(RECORDS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
        told = done.stdout.split()
        assert told[:1] == ["ok"], done.stdout + done.stderr
        cuts = proxy.cuts
        proxy.calm()
        values, end = read_back(f"{host}:{port}", name, RECORDS)
    assert cuts > 5
    if state == "lookup":
        assert told == ["ok", "0"]  # of its offsets were wrong
    assert values == [b"%0100d" % number for number in range(RECORDS)]
    assert end == RECORDS


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_copies_of_killed_processes_and_a_killed_broker_are_there_once_and_in_order(copying_classes, protocol):
    client = [*JVM, "-cp", copying_classes, "Copy"]
    figures = copy(client, protocol=protocol, records=3000, kills=1, broker_kills=1, zombies=1, seed=6)
    assert (figures.killed, figures.broker_killed, figures.zombies) == ([1] * WORKERS, 1, 1)
    assert figures.gave_up >= 1
