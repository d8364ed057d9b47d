"""A producer whose replies are withheld and lost, and a broker that is killed: each record is there once, in order."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from fault_proxy import FaultProxy
from read_back import read_back

SEEDS = 6
RECORDS = 300_000
SMALL = b"%016d"
BATCHES = {"defaults": 16_384, "32-kB": 32_768}  # Java's default, and what holds some 1,200 small records


class KilledBroker:
    """A broker behind a proxy, killed with -9 at random times and started again on the same data."""

    def __init__(self, proxy: FaultProxy, folder: Path, seed: int) -> None:
        self._proxy = proxy
        self._folder = folder
        self._rng = Random(seed)
        self._over = threading.Event()
        self._start()
        self.kills = 0
        self._killer = threading.Thread(target=self._kill)
        self._killer.start()

    def _start(self) -> None:
        host, port = self._proxy.address
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "advertised.listeners": f"PLAINTEXT://{host}:{port}",
            "log.segment.bytes": "1048576",
        }
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        command = [sys.executable, "-m", "momus", "serve", "-d", str(self._folder), *words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        self._proxy.target = self._process.stdout.readline().split()[2]

    def _kill(self) -> None:
        while not self._over.wait(self._rng.uniform(0.5, 2.5)):
            self._process.kill()
            self._process.communicate()
            self.kills += 1
            self._start()

    def spare(self) -> None:
        """Kill it no more."""
        self._over.set()
        self._killer.join()

    def stop(self) -> None:
        """Stop it for good."""
        self.spare()
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=60)


def write_each_record_once(
    write: Callable[[str], None], topic: str, seed: int, folder: Path, records: int, reply_bytes: tuple[int, int]
) -> None:
    """Let `write(address)` write SMALL % 0, 1, 2 … to a topic that makes itself; check what is there in the end."""
    with FaultProxy(seed, least_bytes=100_000, most_bytes=4_000_000, reply_bytes=reply_bytes, withheld_s=0.4) as proxy:
        broker = KilledBroker(proxy, folder, seed)
        try:
            address = "{}:{}".format(*proxy.address)
            write(address)
            cuts = proxy.cuts
            proxy.calm()
            broker.spare()
            values, end = read_back(address, topic, records)
        finally:
            broker.stop()
    assert cuts > 0
    assert cuts + broker.kills > 2  # on a busy machine kills come before cuts
    assert end == records, f"{end - records} records too many (seed {seed}, {cuts} cuts, {broker.kills} kills)"
    assert values == [SMALL % number for number in range(records)]
