"""franz-go's idempotent producer over connections that are cut: it is told the offset that each record has."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from budget import short_and_slow
from clientwork import LIMIT_S
from confluent_kafka.admin import AdminClient, NewTopic
from fault_proxy import FaultProxy
from read_back import read_back

HERE = Path(__file__).parent
RECORDS = 5_000


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    folder = tmp_path_factory.mktemp("go")
    shutil.copytree(HERE / "told_offsets", folder, dirs_exist_ok=True)
    built = subprocess.run(
        ["go", "build", "-o", "told", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=10 * LIMIT_S,
        env={**os.environ, "GOFLAGS": "-mod=mod"},
    )
    assert built.returncode == 0, built.stderr
    return folder / "told"


@pytest.mark.parametrize("seed", short_and_slow(range(5), 1))
def test_offsets_told_over_cut_connections_are_those_in_the_log(program, serve, name, seed):
    limits = {"least_bytes": 100_000, "most_bytes": 400_000, "reply_bytes": (1_200, 2_500), "withheld_s": 0.2}
    with FaultProxy(seed, **limits) as proxy:
        host, port = proxy.address
        proxy.target = serve(f"{host}:{port}")
        admin = AdminClient({"bootstrap.servers": f"{host}:{port}", "log_level": 0})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT_S)
        command = [program, f"{host}:{port}", name, str(RECORDS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
        assert done.stdout.strip() == "failed 0 wrong 0", done.stdout + done.stderr
        cuts = proxy.cuts
        proxy.calm()
        values, end = read_back(f"{host}:{port}", name, RECORDS)
    assert cuts > 5
    assert values == [b"%0100d" % number for number in range(RECORDS)]
    assert end == RECORDS
