"""What committed offsets cost: `python -m benchmarks.offsets [WHAT ...] [--entries N] [--flush fsync]`.

growth   one commit in flight on 1, 16, 100 and 1000 connections, each of its own group: no step may fall below 0.8 of
         the best before it
memory   resident bytes an entry at 100, 10 and 1 partitions a group; then kill -9, and the time from the process's
         start to the first right OffsetFetch
mixed    resident bytes an entry of the table alone, where epochs and times are alike and where they differ
replay   records a second from the log alone: 100, 10 and 1 a batch, and a log that was cleaned to gaps
pause    the longest time an image of all entries, written in the background, holds others up
disk     the room the logs take while all entries are committed again and again
waits    p99 of commits while cleaner, images and retention are at work all the time, over p99 without
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from benchmarks.load import Load, arguments
from benchmarks.load_requests import COMMIT_V, FETCHOFF_V
from benchmarks.offset_state import mixed, pause, replay
from benchmarks.offset_upkeep import disk
from benchmarks.peers import running, start
from benchmarks.upkeep_waits import waits
from benchmarks.wire import connect, frame, parse
from protocol.messages.offsets import OffsetCommitRequest

CONNECTIONS = (1, 16, 100, 1000)
PARTITIONS = (100, 10, 1)
MEMORY_ONLY = ("kfake", "rdmock")
COORDINATORS = 200  # groups that are asked for before: enough to meet each of a peer's fifty logs
LEAST_RATIO = 0.8
REQUESTS_AT_ONCE = 64


def growth(peer: str, flush: str, seconds: float) -> bool:
    """Throughput as connections grow; whether it never falls by more than a fifth."""
    print(f"\n| connections | {peer} --flush {flush} | of the best before | p50 | p99 |\n|---|---|---|---|---|")
    best, good = 0.0, True
    for connections in CONNECTIONS:
        with running(peer, flush) as broker:
            command = [sys.executable, "-m", "benchmarks.load", "commit", broker.address, "--conns", str(connections)]
            done = subprocess.run([*command, "--seconds", str(seconds)], capture_output=True, text=True, check=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        ratio = figures["ops_per_s"] / best if best else 1.0
        best = max(best, figures["ops_per_s"])
        good = good and ratio >= LEAST_RATIO
        print(
            f"| {connections} | {figures['ops_per_s']:,.0f}/s | {ratio:.2f} | {figures['p50_us']:,.0f} us"
            f" | {figures['p99_us']:,.0f} us |",
            flush=True,
        )
    return good


async def fill(address: str, entries: int, partitions: int) -> tuple[str, int]:
    """Commit so many entries, each group once; the last group, and the offset that its last partition has then."""
    load = Load(arguments(["commit", address, "--partitions", str(partitions), "--group", "warm"]))
    await load.open()
    wire = load.wires[0]
    groups = entries // partitions
    left = iter(range(groups))
    accepted: list[bytes] = []  # the replies are all the same

    def more(count: int) -> bytes:
        numbers = list(islice(left, count))
        numbers += numbers[-1:] * (count - len(numbers))  # as many as are asked for, or none
        return b"".join(frame(load.requests.commit(f"load-{n}", n), COMMIT_V) for n in numbers)

    def look(reply: memoryview) -> None:
        if not accepted:
            answer = parse(OffsetCommitRequest.API_KEY, COMMIT_V, reply[4:])
            if not any(p.error_code for t in answer.topics for p in t.partitions):
                accepted.append(bytes(reply[4:]))
        if not accepted or reply[4:] != accepted[0]:
            raise SystemExit("a commit was refused")

    load.wires = [wire] * COORDINATORS
    await load._coordinators()
    await wire.run(REQUESTS_AT_ONCE, more, look)
    wire.transport.close()
    return f"load-{groups - 1}", groups - 1


async def wait_for(address: str, group: str, offset: int, partitions: int) -> None:
    """Ask until the group's offset is told."""
    load = Load(arguments(["commit", address, "--partitions", str(partitions)]))
    while True:
        try:
            wire = await connect(address)
            answer = (await wire.ask(load.requests.fetch_offsets(group), FETCHOFF_V)).groups[0]
            wire.transport.close()
            if not answer.error_code and answer.topics[0].partitions[-1].committed_offset == offset:
                return
        except (ConnectionError, OSError):
            pass
        await asyncio.sleep(0.005)


def memory_and_start(peer: str, entries: int, flush: str) -> None:
    """Fill, weigh, kill, start again; a peer that keeps nothing on disk is only weighed."""
    print(f"\n| {peer}: partitions a group | bytes an entry | start to the first right answer | disk |")
    print("|---|---|---|---|")
    for partitions in PARTITIONS:
        directory = Path(tempfile.mkdtemp(prefix="bench-offsets-"))
        broker = start(peer, directory, flush)
        try:
            asyncio.run(fill(broker.address, 1000, partitions))
            before = broker.rss_mb()
            group, offset = asyncio.run(fill(broker.address, entries, partitions))
            grown = (broker.rss_mb() - before) * 1e6 / entries
            broker.process.kill()
            broker.process.wait()
            disk_bytes = sum(path.stat().st_blocks * 512 for path in directory.rglob("*"))
            told = "-"
            if peer not in MEMORY_ONLY:
                begin = time.perf_counter()
                broker = start(peer, directory, flush)
                asyncio.run(wait_for(broker.address, group, offset, partitions))
                told = f"{time.perf_counter() - begin:.2f} s"
            print(f"| {partitions} | {grown:.0f} | {told} | {disk_bytes / 1e6:.0f} MB |", flush=True)
        finally:
            broker.process.kill()
            broker.process.wait()
            shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    """Print tables in Markdown; exit 1 when a promise is not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.offsets", description=__doc__)
    parser.add_argument("what", nargs="*", help="all if none is named")
    parser.add_argument("--peer", default="momus", help="of growth and memory: momus, kfake, kfake-disk, kafka")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rate", type=float, default=8_000, help="for disk: records a second")
    parser.add_argument("--pairs", type=int, default=3, help="for waits")
    parser.add_argument("--flush", default="os", choices=("memory", "os", "fsync"))
    options = parser.parse_args()
    todo = {
        "growth": lambda: growth(options.peer, options.flush, options.seconds),
        "memory": lambda: memory_and_start(options.peer, options.entries, options.flush),
        "mixed": lambda: mixed(options.entries),
        "replay": lambda: replay(options.entries),
        "pause": lambda: pause(options.entries),
        "disk": lambda: disk(options.entries, 10 * options.seconds, options.rate, options.flush),
        "waits": lambda: waits(options.pairs, options.seconds, options.flush),
    }
    unknown = set(options.what) - todo.keys()
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: one of {', '.join(todo)}")
    results = [todo[what]() for what in options.what or todo]
    good = not any(result is False for result in results)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
