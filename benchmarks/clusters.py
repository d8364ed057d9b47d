"""What a cluster costs over the control plane: make, reset, remove, one after the other; memory and descriptors.

    python -m benchmarks.clusters [--clusters 1000] [--flush memory]

One `momus serve`. Each round makes a cluster, resets it and removes it. Printed: the median and the 99th percentile of
each step, and, over the rounds, the resident memory and the open descriptors of the process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

from momus import Broker

LOOKS = 5


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--flush", default="memory", choices=("memory", "os", "fsync"))
    options = parser.parse_args()
    taken: dict[str, list[float]] = {"make": [], "reset": [], "remove": []}
    with Broker() as broker:
        ask = broker.control.ask

        def timed(step: str, method: str, path: str, body: object = None) -> None:
            begin_s = time.perf_counter()
            ask(method, path, body)
            taken[step].append((time.perf_counter() - begin_s) * 1000)

        print(f"{'rounds':>8} {'resident MB':>12} {'descriptors':>12}")
        for number in range(options.clusters + 1):
            if number % max(1, options.clusters // LOOKS) == 0:
                descriptors = len(os.listdir(f"/proc/{broker.pid}/fd"))
                print(f"{number:>8} {resident_mb(broker.pid):>12.1f} {descriptors:>12}")
            name = f"c{number}"
            timed("make", "POST", "/_admin/clusters", {"name": name, "flush": options.flush})
            timed("reset", "POST", f"/_admin/clusters/{name}/reset")
            timed("remove", "DELETE", f"/_admin/clusters/{name}")
    print(f"{'ms':>8} {'p50':>12} {'p99':>12}")
    for step, times in taken.items():
        print(f"{step:>8} {statistics.median(times):>12.2f} {statistics.quantiles(times, n=100)[98]:>12.2f}")


if __name__ == "__main__":
    main()
