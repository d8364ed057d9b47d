"""The room that the logs of committed offsets take while so many live entries are committed again and again.

Told is the largest that they get, over what one copy of all entries takes. The waiting is in upkeep_waits.py.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from benchmarks.load import Load, arguments
from benchmarks.load_requests import COMMIT_V
from benchmarks.peers import running
from benchmarks.wire import frame, parse
from protocol.messages.offsets import OffsetCommitRequest

PARTITIONS = 100
STEP_S = 0.05
DISK_LIMIT = 2.0


def _log_bytes(data: Path) -> int:
    total = 0
    for path in data.glob("__consumer_offsets-*/*.log"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # the cleaner was quicker
            continue
    return total


async def _commit_all(load: Load, groups: int, offset: int, records_per_s: float) -> None:
    """Every group once, at a rate; in pieces, so that the rate is even."""
    wire = load.wires[0]
    a_step = max(1, int(records_per_s * STEP_S / PARTITIONS))
    due_s = time.perf_counter()
    for first in range(0, groups, a_step):
        frames = [
            frame(load.requests.commit(f"load-{n}", offset), COMMIT_V)
            for n in range(first, min(groups, first + a_step))
        ]
        left = iter([b"".join(frames)])

        def done(reply: memoryview) -> None:
            answer = parse(OffsetCommitRequest.API_KEY, COMMIT_V, reply[4:])
            if any(p.error_code for t in answer.topics for p in t.partitions):
                raise SystemExit("a commit was refused")

        await wire.run(len(frames), lambda count, left=left: next(left, b""), done)
        due_s += a_step * PARTITIONS / records_per_s
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))


def disk(entries: int, seconds: float, records_per_s: float, flush: str) -> bool:
    """The largest the logs get; whether it is below twice what one copy takes."""
    groups = entries // PARTITIONS

    async def work(address: str, data: Path) -> tuple[int, int, int]:
        load = Load(arguments(["commit", address, "--partitions", str(PARTITIONS)]))
        await load.open()
        await load._coordinators()
        await _commit_all(load, groups, 1, 1e9)
        live = largest = _log_bytes(data)
        begin, rounds = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            rounds += 1
            writing = asyncio.ensure_future(_commit_all(load, groups, rounds + 1, records_per_s))
            while not writing.done():
                await asyncio.sleep(0.1)
                largest = max(largest, _log_bytes(data))
            await writing
        return live, largest, rounds

    with running("momus", flush) as broker:
        data = broker.directory / "data"
        live, largest, rounds = asyncio.run(work(broker.address, data))
        time.sleep(5)
        after = _log_bytes(data)
    print("\n| live entries | one copy | overwritten | records/s | largest | ratio | 5 s later |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {groups * PARTITIONS:,} | {live / 1e6:.0f} MB | {rounds} times | {records_per_s:,.0f}"
        f" | {largest / 1e6:.0f} MB | {largest / live:.2f} | {after / 1e6:.0f} MB |"
    )
    return largest < DISK_LIMIT * live
