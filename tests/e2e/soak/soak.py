"""The soak: 80 minutes of mixed clients, with kill -9 and moved clocks, after which nothing may have grown.

    python tests/e2e/soak/soak.py --minutes 60 --kill-every 300 --steady 20 --seed 1

Two processes copy records in transactions. Others produce, join and leave groups of two protocols, make and delete
topics and groups, and cut connections whose Fetch is parked. Every `--kill-every` seconds the broker is killed by
kill -9 and started again; in between its clock is moved on by seconds. After `--minutes` the broker lives `--steady`
minutes more, under the same loads, without being killed.

Growth is the slope of a straight line through samples, of three kinds:
in the last life  memory and descriptors, from STEADY_S after the broker's start: until then its logs and tables grow to
                  the size at which retention and expiry hold them, and a growth of lives of minutes says nothing of an
                  hour
within a life     threads, timers and parked requests, from WARM_S after the broker's start until it is killed; the
                  median over all lives counts
over lives        the bytes on disk of the broker's own logs, at the end of each life

The exit code is 1 if a slope is above its limit, or a copied record is lost, doubled or out of order.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "exactly_once")]

from confluent_kafka.admin import AdminClient, NewTopic
from copy_records import GROUP, PARTITIONS, SOURCE, TARGET, Records
from copy_run import PROMPT, Worker, python_client
from loads import LOADS, STEADY, STEADY_PARTITIONS

from momus import Broker

WARM_S = 60
STEADY_S = 300
SAMPLE_S = 5
COPIERS = 2
SETTINGS = {
    **PROMPT,
    # Logs of a steady size, and few of what is kept up to a number (fetch sessions of clients that have gone, shards of
    # groups), so that what grows is a leak.
    "max.incremental.fetch.session.cache.slots": 50,
    "offsets.topic.num.partitions": 4,
    "log.segment.bytes": 1 << 20,
    "log.retention.ms": 120_000,
    "offsets.topic.segment.bytes": 1 << 20,
    "transaction.state.log.segment.bytes": 1 << 20,
    "log.cleaner.backoff.ms": 2000,
    "log.cleaner.delete.retention.ms": 60_000,
    "offsets.retention.check.interval.ms": 10_000,
    "producer.id.expiration.ms": 120_000,
}
# What a slope may be, per hour.
LIMITS = {"memory MB": 12.0, "descriptors": 20.0, "threads": 0.5, "timers": 100.0, "parked": 20.0, "own logs MB": 2.0}


IN_LAST_LIFE = ("memory MB", "descriptors")


def slope_per_hour(samples: Sequence[tuple[float, float]]) -> float:
    """The slope of a straight line through (seconds, value), by Theil and Sen: the median over all pairs."""
    slopes = [(w - v) / (t - s) for i, (s, v) in enumerate(samples) for t, w in samples[i + 1 :] if t > s]
    return 3600 * statistics.median(slopes) if slopes else 0.0


class Gauges:
    """The broker's own figures, as it sends them by DogStatsD."""

    NAMES = re.compile(rb"^(momus_timers|momus_parked_requests):([0-9.]+)\|g", re.MULTILINE)

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.last: dict[str, float] = {}

    def read(self) -> None:
        while True:
            try:
                data = self.socket.recv(65536)
            except BlockingIOError:
                return
            for name, value in self.NAMES.findall(data):
                self.last[name.decode()] = float(value)


@dataclass
class Life:
    """The samples of one life of the broker: figure -> (seconds since its start, value)."""

    samples: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, figure: str, age_s: float, value: float) -> None:
        self.samples.setdefault(figure, []).append((age_s, value))


class Soak:
    """The broker, its loads, and what is measured of them."""

    def __init__(self, broker: Broker, gauges: Gauges, seed: int, log: IO[bytes]) -> None:
        self.broker, self.gauges = broker, gauges
        self.rng = Random(seed)
        self.lives: list[Life] = []
        self.disk: list[tuple[float, float]] = []
        self.clock_moves = 0
        self.log = log
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(STEADY, STEADY_PARTITIONS, 1)])[STEADY].result(30)
        self.records = Records(broker.bootstrap_servers, self.rng)
        told = [broker.bootstrap_servers, SOURCE, TARGET, GROUP]
        self.copiers = [
            Worker([*python_client("confluent"), *told, *map(str, (n, COPIERS, PARTITIONS)), "consumer"], self.log)
            for n in range(COPIERS)
        ]
        self.loads = [
            subprocess.Popen([sys.executable, str(HERE / "loads.py"), name, broker.bootstrap_servers, str(seed)])
            for name in LOADS
        ]

    def run(self, minutes: float, kill_every_s: float, steady_minutes: float) -> None:
        """All lives; AssertionError if a copied record is wrong or a load has ended."""
        end_s = time.monotonic() + 60 * minutes
        try:
            while time.monotonic() < end_s:
                self._live(min(kill_every_s, end_s - time.monotonic()))
                self.disk.append((time.monotonic(), own_log_bytes(self.broker) / 1e6))
                self.broker.kill()
                self.broker.start()
            self._live(60 * steady_minutes)
            self._settle()
        finally:
            for process in [copier.process for copier in self.copiers] + self.loads:
                process.kill()
                process.wait()

    def _live(self, seconds: float) -> None:
        life, start_s = Life(), time.monotonic()
        self.lives.append(life)
        sampled_s = moved_s = start_s
        while (now_s := time.monotonic()) < start_s + seconds:
            self._copy()
            if now_s - moved_s > 20:
                moved_s = now_s
                self.broker.clock.advance(seconds=self.rng.uniform(0.1, 5))
                self.clock_moves += 1
            if now_s - sampled_s > SAMPLE_S:
                sampled_s = now_s
                self._sample(life, now_s - start_s)
        for load in self.loads:
            assert load.poll() is None, f"{load.args} has ended"

    def _copy(self) -> None:
        seen = self.records.look(0.2)
        for copier in self.copiers:
            copier.look()
        if self.records.fed - seen < 1000:
            self.records.feed(100)

    def _sample(self, life: Life, age_s: float) -> None:
        self.gauges.read()
        process = f"/proc/{self.broker.pid}"
        status = Path(process, "status").read_text()
        kilobytes, threads = (int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "Threads"))  # type: ignore[index]  # Linux writes both
        life.add("memory MB", age_s, kilobytes / 1000)
        life.add("threads", age_s, threads)
        life.add("descriptors", age_s, len(os.listdir(f"{process}/fd")))
        if self.gauges.last:
            life.add("timers", age_s, self.gauges.last["momus_timers"])
            life.add("parked", age_s, self.gauges.last["momus_parked_requests"])
            self.gauges.last = {}

    def _settle(self) -> None:
        """Copy what is left, and check that every record was copied once and in order."""
        end_s = time.monotonic() + 120
        while self.records.look(0.2) < self.records.fed:
            assert time.monotonic() < end_s, "the last records are not copied"
            for copier in self.copiers:
                copier.look()
        for copier in self.copiers:
            copier.process.kill()
            copier.process.wait()
        assert self.records.found == self.records.expected

    def figures(self) -> Iterable[tuple[str, float, float, int]]:
        """Figure, its slope an hour, its last value, and the number of lives it was measured in."""
        warm = [life for life in self.lives if life.samples.get("memory MB", [(0, 0)])[-1][0] > WARM_S + 30]
        for name in LIMITS:
            if name == "own logs MB":
                disk = self.disk[len(self.disk) // 4 :]
                yield name, slope_per_hour(disk), disk[-1][1], len(disk)
                continue
            lives, warm_s = (self.lives[-1:], STEADY_S) if name in IN_LAST_LIFE else (warm, WARM_S)
            slopes = [
                slope_per_hour([(age, value) for age, value in life.samples[name] if age > warm_s])
                for life in lives
                if name in life.samples and life.samples[name][-1][0] > warm_s + 30
            ]
            assert slopes, f"{name} was never measured: a life of more than {warm_s + 30} s is needed"
            yield name, statistics.median(slopes), warm[-1].samples[name][-1][1], len(slopes)


def own_log_bytes(broker: Broker) -> int:
    """The bytes on disk of the logs that the broker keeps for itself."""
    assert broker.data_dir is not None
    folders = [each for each in Path(broker.data_dir).iterdir() if each.name.startswith("__")]
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kill-every", type=float, default=300, metavar="SECONDS")
    parser.add_argument(
        "--steady", type=float, default=20, metavar="MINUTES", help="of the last life, which is not killed"
    )
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    gauges = Gauges()
    with (
        tempfile.TemporaryDirectory(prefix="momus-soak-") as folder,
        tempfile.TemporaryFile() as log,
        Broker(config=SETTINGS, data_dir=folder, statsd=gauges.address) as broker,
    ):
        soak = Soak(broker, gauges, asked.seed, log)
        soak.run(asked.minutes, asked.kill_every, asked.steady)
        failed = False
        print(f"{soak.records.fed} records copied once and in order")
        print(f"{len(soak.lives)} lives, {soak.clock_moves} clock moves")
        print("| figure | slope an hour | limit | last value | lives |\n|---|---|---|---|---|")
        for name, slope, value, lives in soak.figures():
            failed |= slope > LIMITS[name]
            print(f"| {name} | {slope:+.2f} | {LIMITS[name]:g} | {value:.1f} | {lives} |")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
