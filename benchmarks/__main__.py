"""Compares momus with its peers: `python -m benchmarks [--peer NAME ...] [--only NAME ...] [--pairs 3]`.

Each scenario is run against momus and the peer in turn, three pairs; what counts is the ratio within a pair, and the
median of those: the machine's speed drifts, and the load generator shares its cores with the broker.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

from benchmarks.peers import Running, running


class Scenario(NamedTuple):
    """One line of the table: what to run, which figure counts, and whether more of it is better."""

    name: str
    arguments: tuple[str, ...]
    figure: str
    more_is_better: bool = True
    before: tuple[str, ...] = ()


SCENARIOS = (
    Scenario("commit, 16 x 64 x 1", ("commit", "--conns", "16", "--inflight", "64"), "ops_per_s"),
    Scenario(
        "commit, 16 x 16 x 100",
        ("commit", "--conns", "16", "--inflight", "16", "--partitions", "100"),
        "ops_per_s",
    ),
    Scenario("commit, 1 x 1 x 1, p50", ("commit",), "p50_us", more_is_better=False),
    Scenario("offset fetch, 16 x 16 x 1", ("fetchoff", "--conns", "16", "--inflight", "16"), "ops_per_s"),
    Scenario(
        "offset fetch, 16 x 16 x 100",
        ("fetchoff", "--conns", "16", "--inflight", "16", "--partitions", "100"),
        "ops_per_s",
    ),
    Scenario(
        "produce, 200 B",
        ("produce", "--conns", "4", "--inflight", "16", "--partitions", "4", "--batch-bytes", "200"),
        "ops_per_s",
    ),
    Scenario("produce, 16 kB", ("produce", "--conns", "4", "--inflight", "16", "--partitions", "4"), "mb_per_s"),
    Scenario(
        "consume, 16 kB",
        ("consume", "--conns", "4", "--partitions", "4"),
        "mb_per_s",
        before=("produce", "--conns", "4", "--inflight", "16", "--partitions", "4"),
    ),
    Scenario("produce to fetch, one record, p50", ("e2e",), "p50_us", more_is_better=False),
)


def measure(broker: Running, scenario: Scenario, seconds: float) -> float:
    """One run; a broker whose answers are wrong has no figure."""
    for arguments in filter(None, (scenario.before, scenario.arguments)):
        command = [sys.executable, "-m", "benchmarks.load", arguments[0], broker.address, *arguments[1:]]
        done = subprocess.run([*command, "--seconds", str(seconds)], capture_output=True, text=True, check=False)
        if done.returncode:
            return float("nan")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures[scenario.figure]


def compare(scenario: Scenario, peer: str, pairs: int, seconds: float, flush: str) -> tuple[float, float, float]:
    """Medians of momus and of the peer, and the median ratio (above 1: momus is better)."""
    ours, theirs, ratios = [], [], []
    for _ in range(pairs):
        with running("momus", flush) as broker:
            ours.append(measure(broker, scenario, seconds))
        with running(peer, flush) as broker:
            theirs.append(measure(broker, scenario, seconds))
        ratio = ours[-1] / theirs[-1]
        ratios.append(ratio if scenario.more_is_better else 1 / ratio)
    return statistics.median(ours), statistics.median(theirs), statistics.median(ratios)


def startup(peer: str, pairs: int) -> tuple[float, float]:
    """Milliseconds from the process's start until it accepts connections, and resident memory: medians."""
    times, memory = [], []
    for _ in range(pairs):
        begin = time.perf_counter()
        with running(peer) as broker:
            times.append((time.perf_counter() - begin) * 1000)
            time.sleep(1)
            memory.append(broker.rss_mb())
    return statistics.median(times), statistics.median(memory)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--peer", action="append", help="kfake, kfake-disk, kfake-sync, kafka, rdmock, or a checkout")
    parser.add_argument("--only", action="append", help="scenarios whose name begins so")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--flush", default="os", choices=("memory", "os", "fsync"))
    options = parser.parse_args()
    found = importlib.util.find_spec("broker.wire.connection")
    build = "pure Python" if found is None or (found.origin or "").endswith(".py") else "compiled"
    for peer in options.peer or ["kfake"]:
        print(f"\n| scenario | momus --flush {options.flush}, {build} | {peer} | ratio |\n|---|---|---|---|")
        for scenario in SCENARIOS:
            if options.only and not scenario.name.startswith(tuple(options.only)):
                continue
            ours, theirs, ratio = compare(scenario, peer, options.pairs, options.seconds, options.flush)
            unit = {"ops_per_s": "/s", "mb_per_s": " MB/s", "p50_us": " us"}[scenario.figure]
            print(f"| {scenario.name} | {ours:,.0f}{unit} | {theirs:,.0f}{unit} | {ratio:.2f} |", flush=True)
        if not options.only:
            (our_ms, our_mb), (their_ms, their_mb) = startup("momus", options.pairs), startup(peer, options.pairs)
            print(f"| start to first connection | {our_ms:.0f} ms | {their_ms:.0f} ms | {their_ms / our_ms:.2f} |")
            print(f"| resident memory, idle | {our_mb:.0f} MB | {their_mb:.0f} MB | {their_mb / our_mb:.2f} |")


if __name__ == "__main__":
    main()
