"""What remembering idempotent producers costs: `python -m benchmarks.producers [--producers 1000000]`.

A thousand producers with sequences of their own on a thousand partitions, in their order and shuffled; then so many
producers on one partition: resident memory, the snapshot's size, and the processor time that it takes to write and to
load. Each line comes from a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable
from random import Random

from broker.partitions.producer_snapshots import decode_snapshot, encode_steps
from broker.partitions.producers import Producers

PRODUCERS, PARTITIONS = 1000, 1000
PAGE_BYTES = 4096
TIMESTAMP_MS = 1_700_000_000_000


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE_BYTES


def write(partition: Producers, producer_id: int, first: int) -> None:
    """The producer's batch of three records."""
    partition.replay(producer_id, 3, first, first + 2, first * 3, first * 3 + 2, TIMESTAMP_MS + first)


def many_partitions(order: Iterable[int]) -> None:
    partitions = [Producers() for _ in range(PARTITIONS)]
    before = resident_bytes()
    for producer in order:
        for at, partition in enumerate(partitions):
            write(partition, 5000 + producer, at * 1000 + producer * 7)
    each = (resident_bytes() - before) / (PRODUCERS * PARTITIONS)
    print(f"{PRODUCERS:,} producers x {PARTITIONS:,} partitions: {each:.1f} bytes each", end="", flush=True)


def one_partition(producers: int) -> None:
    partition = Producers()
    before, start_s = resident_bytes(), time.process_time()
    for producer in range(producers):
        write(partition, 5000 + producer, producer * 7)
    took_us = (time.process_time() - start_s) / producers * 1e6
    grown = resident_bytes() - before
    print(
        f"{producers:,} producers on one partition: {grown / 1e6:.0f} MB, {grown / producers:.1f} bytes each, ", end=""
    )
    print(f"{took_us:.1f} us a batch; ", end="")
    start_s, longest_s, steps = time.process_time(), 0.0, encode_steps(partition.snapshot(), -1)
    while True:
        step_s = time.process_time()
        try:
            next(steps)
        except StopIteration as end:
            data = end.value
            break
        finally:
            longest_s = max(longest_s, time.process_time() - step_s)
    written_s = time.process_time() - start_s
    start_s = time.process_time()
    Producers().load(decode_snapshot(*data).producers)
    loaded_s = time.process_time() - start_s
    print(
        f"snapshot {sum(map(len, data)) / 1e6:.0f} MB, written in {written_s:.1f} s, no step of it longer than ", end=""
    )
    print(f"{longest_s * 1000:.1f} ms, loaded in {loaded_s:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--producers", type=int, default=1_000_000, help="on the one partition")
    parser.add_argument("--only", choices=("rising", "shuffled", "one"))
    told = parser.parse_args()
    if told.only == "one":
        one_partition(told.producers)
    elif told.only:
        order = list(range(PRODUCERS))
        if told.only == "shuffled":
            Random(1).shuffle(order)
        many_partitions(order)
        print(f" ({told.only})")
    else:
        for which in ("rising", "shuffled", "one"):
            command = [sys.executable, "-m", "benchmarks.producers", "--only", which]
            subprocess.run([*command, "--producers", str(told.producers)], check=True)


if __name__ == "__main__":
    main()
