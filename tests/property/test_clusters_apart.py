"""Two clusters in one process: nothing of one is seen in the other, and one seed gives one history.

Random cases of make differ are played to a whole broker. What is compared is every byte that it answers and every byte
in its files: alone, and beside another cluster with requests in turn; in this process, and in one whose strings hash
differently.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from differential.brokers import WorldPeer
from differential.generate.profiles import make_case
from differential.links import LinkError
from differential.route import Router
from differential.side import Sent, Side

CASES = 40
HASHED_CASES = 30


class Cluster:
    """One broker with a case that is played to it step by step."""

    def __init__(self, seed: int) -> None:
        self.peer = WorldPeer()
        self.side = Side(self.peer, Router(self.peer), f"p{seed}-", "w-", {})
        self.steps: list[dict[str, Any]] = list(make_case("default", seed)[1])
        self.said: list[bytes] = []
        self._next = 0

    def step(self) -> bool:
        """One step of the case. Answers whether there was one."""
        if self._next == len(self.steps):
            return False
        step = self.steps[self._next]
        self._next += 1
        if step.get("do") == "restart":
            self.side.cut()
            self.peer.restart()
        elif "do" in step:
            self.peer.pass_time(step.get("ms", 0))
        else:
            self._keep(self.side.send(self._next, step))
        for sent in list(self.side.parked):
            self.side.parked.remove(sent)
            self._keep(sent)
        return True

    def _keep(self, sent: Sent) -> None:
        data = sent.link.take()
        if data is None:
            self.side.parked.append(sent)
            return
        self.said.append(b"%d %s" % (sent.number, data))
        self.side.read(sent, data)

    def history(self) -> tuple[list[bytes], dict[str, bytes]]:
        """All that it answered, and what its files hold."""
        files = self.peer.world.files
        held = {
            f"{folder}/{name}": files.read_file(f"{folder}/{name}")
            for folder, names in files._names.items()
            for name, inode in names.items()
            if inode is not None
        }
        return self.said, held


def alone(seed: int) -> tuple[list[bytes], dict[str, bytes]]:
    cluster = Cluster(seed)
    while cluster.step():
        pass
    return cluster.history()


def digest(seeds: range) -> str:
    """Of the histories of some cases."""
    found = hashlib.sha256()
    for seed in seeds:
        try:
            said, held = alone(seed)
        except LinkError as error:
            said, held = [str(error).encode()], {}
        found.update(repr((said, sorted(held.items()))).encode())
    return found.hexdigest()


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The broker's own log tells of every connection that it closes: dozens here, on purpose."""
    caplog.set_level("ERROR", "momus.connection")


@pytest.mark.heavy
def test_cluster_beside_another_answers_and_writes_what_it_does_alone() -> None:
    answers = 0
    for seed in range(0, 2 * CASES, 2):
        apart = alone(seed), alone(seed + 1)
        pair, order = (Cluster(seed), Cluster(seed + 1)), random.Random(seed)
        while sum(cluster.step() for cluster in order.sample(pair, order.choice((1, 2)))):
            pass
        for cluster, expected in zip(pair, apart, strict=True):
            while cluster.step():
                pass
            assert cluster.history() == expected, seed
            answers += len(cluster.said)
    assert answers > 10 * CASES


@pytest.mark.heavy
def test_history_does_not_depend_on_how_strings_hash() -> None:
    code = (
        "import logging; logging.disable();"
        f"from test_clusters_apart import digest; print(digest(range({HASHED_CASES})))"
    )
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    digests = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(folders)}
        command = [sys.executable, "-c", code]
        digests.add(subprocess.check_output(command, env=environment, text=True, timeout=500).strip())
    assert len(digests) == 1
