"""Makes the table of docs/figures.md: `python -m benchmarks [--momus FILE] [--peer NAME ...] [--only NAME ...]`.

The first column is this checkout, or with `--momus` the command `momus` of an environment into which a wheel was
installed (`make bench`). Then the peer `pure` is this checkout; it makes no row bold.

In each round every scenario runs against momus and all peers in turn, started again each time: the speed of a machine
drifts, and the load generator has its cores too. The table shows medians of the rounds, and after each peer's the
ratio of the two medians that are shown: above 1, momus is faster, or smaller. Rows in which a peer is ahead are bold.

Apache Kafka runs each scenario once before it counts, for its compiler. A dash: the peer cannot do it, or its answers
were wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from typing import NamedTuple

from benchmarks.peers import OURS, Running, running

PEERS = {
    "pure": "momus, pure Python",
    "kfake": "kfake, memory",
    "kfake-disk": "kfake, disk",
    "kfake-sync": "kfake, synced",
    "rdmock": "librdkafka mock",
    "kafka": "Apache Kafka",
}
USUAL = ("kfake", "kfake-disk", "rdmock", "kafka")
COMPILES_WHILE_IT_RUNS = ("kafka",)
SETTLE_S = 1.0


class Scenario(NamedTuple):
    """One row: which program to run, which of its figures counts, and in which unit it is shown."""

    name: str
    program: str
    arguments: tuple[str, ...]
    figure: str = "ops_per_s"
    before: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """Times have one of microseconds; less of them is better."""
        return {"ops_per_s": "/s", "mb_per_s": " MB/s", "p50_us": " us"}[self.figure]


def many(connections: int, in_flight: int, partitions: int) -> tuple[str, ...]:
    """Options of benchmarks.load."""
    return ("--conns", str(connections), "--inflight", str(in_flight), "--partitions", str(partitions))


PRODUCE = ("produce", *many(4, 16, 4))
LARGE = ("produce", *many(4, 2, 4), "--batch-bytes", "1000000")
SCENARIOS = (
    Scenario("commit, 16 connections x 64 in flight x 1 partition", "load", ("commit", *many(16, 64, 1))),
    Scenario("commit, 16 x 16 x 100", "load", ("commit", *many(16, 16, 100))),
    Scenario("commit alone, p50", "lone", ("commit",), "p50_us"),
    Scenario("offset fetch, 16 x 16 x 1", "load", ("fetchoff", *many(16, 16, 1))),
    Scenario("offset fetch, 16 x 16 x 100", "load", ("fetchoff", *many(16, 16, 100))),
    Scenario("commit, then fetch what moved, 16 x 16 x 1, pairs", "load", ("fetchmoved", *many(16, 16, 1))),
    Scenario("commit, then fetch what moved, 16 x 16 x 100, pairs", "load", ("fetchmoved", *many(16, 16, 100))),
    Scenario("produce, batches of 200 B", "load", (*PRODUCE, "--batch-bytes", "200")),
    Scenario("produce, batches of 16 kB", "load", PRODUCE, "mb_per_s"),
    Scenario("consume, batches of 16 kB", "load", ("consume", *many(4, 1, 4)), "mb_per_s", before=PRODUCE),
    Scenario("produce, batches of 1 MB", "load", LARGE, "mb_per_s"),
    Scenario("consume, batches of 1 MB", "load", ("consume", *many(4, 1, 4)), "mb_per_s", before=LARGE),
    Scenario("from produce to fetch, one record, p50", "lone", ("e2e",), "p50_us"),
    Scenario("transactions v1, 8 connections", "transactions", ("v1", "--conns", "8")),
    Scenario("transactions v2, 8 connections", "transactions", ("v2", "--conns", "8")),
    Scenario("transaction v1 alone, p50", "transactions", ("v1", "--alone"), "p50_us"),
    Scenario("transaction v2 alone, p50", "transactions", ("v2", "--alone"), "p50_us"),
)
START, MEMORY = "start to the first answered ApiVersions", "resident memory, idle"
LESS_IS_BETTER = (" us", " ms", " MB")


def measure(broker: Running, scenario: Scenario, seconds: float, topic: str) -> float:
    """One run; a broker that refuses, or whose answers are wrong, has no figure."""
    figures: dict[str, float] = {}
    for program, arguments in (("load", scenario.before), (scenario.program, scenario.arguments)):
        if arguments:
            command = [sys.executable, "-m", f"benchmarks.{program}", arguments[0], broker.address, *arguments[1:]]
            command += ["--seconds", str(seconds), "--topic", topic, "--group", topic]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                return math.nan
            figures = json.loads(done.stdout.splitlines()[-1])
    return figures[scenario.figure]


def run(name: str, program: str, scenario: Scenario, seconds: float, flush: str) -> float:
    """One broker, from its start to its end.

    program  as benchmarks.peers names it: that of `momus` may be another than its name.
    """
    with running(program, flush) as broker:
        if name in COMPILES_WHILE_IT_RUNS:
            measure(broker, scenario, seconds, "warm")
        figure = measure(broker, scenario, seconds, "load")
        if name in OURS and math.isnan(figure):
            sys.exit(f"{scenario.name}: {name} failed, or its answers were wrong")
        return figure


def start(name: str, flush: str) -> tuple[float, float]:
    """Milliseconds from the start of the process to its first answer, and resident megabytes a second later."""
    begin_s = time.perf_counter()
    with running(name, flush) as broker:
        took_ms = (time.perf_counter() - begin_s) * 1000
        time.sleep(SETTLE_S)
        return took_ms, broker.rss_mb()


def cells(figures: dict[str, list[float]], unit: str) -> tuple[list[str], bool]:
    """Medians as text, momus first, each peer's with its ratio; whether a peer is ahead.

    figures  of momus and the peers, a figure a round.
    """
    ours = statistics.median(figures["momus"])
    found, is_slower = [f"{ours:,.0f}{unit}"], False
    for name, each in figures.items():
        if name == "momus":
            continue
        if any(map(math.isnan, each)):
            found.append("-")
            continue
        theirs = statistics.median(each)
        ratio = theirs / ours if unit in LESS_IS_BETTER else ours / theirs
        shown = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
        is_behind = float(shown) < 1
        is_slower |= is_behind and name not in OURS
        found.append(f"{theirs:,.0f}{unit} ({f'**{shown}**' if is_behind and name not in OURS else shown})")
    return found, is_slower


def row(name: str, figures: dict[str, list[float]], unit: str) -> str:
    """A line of the table."""
    found, is_slower = cells(figures, unit)
    return f"| {f'**{name}**' if is_slower else name} | {' | '.join(found)} |"


def version(program: str) -> str:
    """What `momus --version` says of itself."""
    command = [sys.executable, "-m", "momus"] if program == "momus" else [program]
    return subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Print a table in Markdown, row by row."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--momus", default="momus", help="the command of an installed wheel, in place of this checkout")
    parser.add_argument("--peer", action="append", help=f"{', '.join(PEERS)}, or a checkout")
    parser.add_argument("--only", action="append", help="rows whose name begins so")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--flush", default="os", choices=("memory", "os", "fsync"))
    options = parser.parse_args()
    names = ["momus", *(options.peer or (USUAL if options.momus == "momus" else ("pure", *USUAL)))]
    programs = {name: options.momus if name == "momus" else name for name in names}
    print(f"{version(options.momus)}, --flush {options.flush}; medians of {options.rounds} rounds of", end="")
    print(f" {options.seconds:g} s; load of the machine before: {os.getloadavg()[0]:.1f}\n")
    print(f"| | {' | '.join(PEERS.get(name, name) for name in names)} |\n|---{'|---' * len(names)}|", flush=True)
    only = tuple(options.only or [""])
    for scenario in SCENARIOS:
        if scenario.name.startswith(only):
            figures = defaultdict[str, list[float]](list)
            for _ in range(options.rounds):
                for name in names:
                    figures[name].append(run(name, programs[name], scenario, options.seconds, options.flush))
            print(row(scenario.name, figures, scenario.unit), flush=True)
    if START.startswith(only) or MEMORY.startswith(only):
        times, memory = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
        for _ in range(options.rounds):
            for name in names:
                took_ms, rss_mb = start(programs[name], options.flush)
                times[name].append(took_ms)
                memory[name].append(rss_mb)
        print(row(START, times, " ms"))
        print(row(MEMORY, memory, " MB"))


if __name__ == "__main__":
    main()
