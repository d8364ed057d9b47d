"""Share groups against peers, and what they hold in memory.

`python -m benchmarks.share [--momus FILE] [--peer NAME ...]`:

fetch and acknowledge   each of 4 members reads a partition of its own. A ShareFetch acknowledges what the one before
                        it acquired, and acquires one batch of 16 records of 1 kB, or as much as 1 MB
produce to share fetch  one record at a time, from the Produce to the answer of a ShareFetch that waits for it; beside
                        it the same with a Fetch, in the same run
memory                  (`--memory`, momus alone) resident bytes for each partition that a group knows and for each
                        range of records in flight

The loader is one Python process on a core of its own, so figures near its own limit flatter the slower broker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys

from benchmarks.peers import Running, running
from benchmarks.share_load import Member, ShareLoad
from protocol.record_batch import build_batch

SIZES = {"fetch and acknowledge, 16 kB": 16, "fetch and acknowledge, 1 MB": 1000}  # records a request
CPU = "processor time a request"


async def memory(broker: Running) -> None:
    """Print what idle partitions and ranges in flight take."""
    load = ShareLoad(broker.address)
    await load.open(1, 1)
    before = broker.rss_mb()
    idle = ShareLoad(broker.address)
    await idle.open(1, 1000)
    after = broker.rss_mb()
    print(f"a partition that a group knows: {(after - before) * 1e6 / 1000:,.0f} bytes (1,000 partitions)")
    many = ShareLoad(broker.address)
    await many.open(20, 20)
    before = broker.rss_mb()
    single = build_batch([(None, b"x", ())], timestamp_ms=1)

    async def hold(member: Member) -> None:
        for _ in range(1500):
            await many.produce(member.partition, single, member.wire)
        member.records = 0
        while await acquire(member):
            pass

    await asyncio.gather(*map(hold, many.members))
    held = sum(member.records for member in many.members)
    print(f"a range in flight: {(broker.rss_mb() - before) * 1e6 / held:,.0f} bytes ({held:,} ranges of one record)")


async def acquire(member: Member) -> int:
    """Acquire without acknowledging, a range for each record batch."""
    member.acquired = []
    return await member.fetch(500, 50, 1)


def measure(broker: Running, scenario: str, seconds: float) -> dict[str, float]:
    """One run, in a process of its own."""
    pid = str(broker.process.pid)
    command = [
        sys.executable,
        "-m",
        "benchmarks.share",
        "--run",
        scenario,
        broker.address,
        pid,
        "--seconds",
        str(seconds),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return {}
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def compare(momus: str, peer: str, pairs: int, seconds: float) -> None:
    """Print a table in Markdown; a ratio above 1 means that momus is better."""
    print(f"\n| scenario | momus | {peer} | ratio |\n|---|---|---|---|")
    rows: dict[str, list[tuple[float, float]]] = {}
    plain: list[float] = []
    for _ in range(pairs):
        found: list[dict[str, float]] = []
        for name in (momus, peer):
            figures = {}
            with running(name) as broker:
                for scenario in SIZES:
                    measured = measure(broker, scenario, seconds)
                    figures[scenario] = measured.get("mb_per_s", float("nan"))
                    figures[f"{scenario}, {CPU}"] = measured.get("cpu_us", float("nan"))
                latency = measure(broker, "latency", seconds)
                figures["produce to share fetch, p50"] = latency.get("p50_us", float("nan"))
                if name == momus:
                    plain.append(latency.get("p50_us", float("nan")) / latency.get("plain_us", float("nan")))
            found.append(figures)
        for scenario in found[0]:
            rows.setdefault(scenario, []).append((found[0][scenario], found[1][scenario]))
    for scenario, values in rows.items():
        less = scenario.endswith(("p50", CPU))
        ratio = statistics.median(theirs / ours if less else ours / theirs for ours, theirs in values)
        ours, theirs = (statistics.median(column) for column in zip(*values, strict=True))
        unit = "us" if less else "MB/s"
        print(f"| {scenario} | {ours:,.0f} {unit} | {theirs:,.0f} {unit} | {ratio:.2f} |")
    print(f"\nmomus, produce to share fetch : produce to plain fetch = {statistics.median(plain):.2f}")


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.share", description=__doc__)
    parser.add_argument("--momus", default="momus", help="the command of an installed wheel, in place of this checkout")
    parser.add_argument("--peer", action="append", help="kfake, kfake-disk, kafka, or a checkout")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--run", nargs=3, metavar=("SCENARIO", "HOST:PORT", "PID"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        scenario, address, pid = options.run
        load = ShareLoad(address, int(pid))
        if scenario == "latency":
            print(json.dumps(asyncio.run(load.latency(options.seconds))))
        else:
            print(json.dumps(asyncio.run(load.rate(SIZES[scenario], options.seconds, 200))))
    elif options.memory:
        with running(options.momus) as broker:
            asyncio.run(memory(broker))
    else:
        for peer in options.peer or ["kfake-disk"]:
            compare(options.momus, peer, options.pairs, options.seconds)


if __name__ == "__main__":
    main()
