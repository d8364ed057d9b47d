"""What a test pays for its broker: momus, kfake, librdkafka's mock and Apache Kafka, as a table for the README.

    python -m benchmarks.kits [--peer kfake rdmock kafka] [--rounds 5]

first start   a process, until it has answered a client's Metadata request
fresh         nothing of the test before is left: momus makes a cluster in its process and removes it, librdkafka makes
              another mock in its process; kfake and Apache Kafka are stopped and started again, with new directories
memory        resident, of the process after its start; for momus also of each cluster more in it

Apache Kafka (the version in tests/e2e/java/pom.xml, one KRaft node, started by java) stands for Testcontainers with
Kafka: what Docker needs to start the container comes on top. Medians; librdkafka's mock is measured with the Python
process that holds it.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers import Running, start
from momus import Broker
from momus.client.wire import Connection

NAMES = {"kfake": "kfake", "rdmock": "librdkafka mock", "kafka": "Apache Kafka (Testcontainers)"}
CLUSTERS = 50


def answered(address: str) -> None:
    """Wait until a client is served."""
    host, _, port = address.rpartition(":")
    while True:
        try:
            Connection(host, int(port), 60.0).close()
        except OSError:
            time.sleep(0.005)
        else:
            return


def started(peer: str) -> tuple[float, float]:
    """Milliseconds until a client is served, and resident MB then."""
    directory = Path(tempfile.mkdtemp(prefix="kits-"))
    try:
        begin_s = time.perf_counter()
        running = start(peer, directory, "memory")
        try:
            answered(running.address)
            taken_ms = (time.perf_counter() - begin_s) * 1000
            return taken_ms, running.rss_mb()
        finally:
            stop(running)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def stop(running: Running) -> None:
    """End a peer."""
    running.process.terminate()
    running.process.wait(60)
    if running.process.stdout is not None:
        running.process.stdout.close()


def momus_clusters(rounds: int) -> tuple[float, float, float]:
    """(ms of the first start, ms of a fresh cluster, MB of each further cluster)."""
    starts, fresh = [], []
    for _ in range(rounds):
        begin_s = time.perf_counter()
        with Broker(flush="memory") as broker:
            answered(broker.bootstrap_servers)
            starts.append((time.perf_counter() - begin_s) * 1000)
            for _ in range(10):
                begin_s = time.perf_counter()
                with broker.create_cluster() as cluster:
                    answered(cluster.bootstrap_servers)
                fresh.append((time.perf_counter() - begin_s) * 1000)
    with Broker(flush="memory") as broker:
        before_mb = resident_mb(broker.pid)
        for _ in range(CLUSTERS):
            broker.create_cluster()
        each_mb = (resident_mb(broker.pid) - before_mb) / CLUSTERS
    return statistics.median(starts), statistics.median(fresh), each_mb


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    import os

    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def fresh_mock() -> float:
    """Milliseconds for another mock cluster in this process, until it has answered."""
    from confluent_kafka import Producer

    begin_s = time.perf_counter()
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none:1"})
    cluster.list_topics(timeout=10)
    return (time.perf_counter() - begin_s) * 1000


def median_of(rounds: int, measure: Callable[[], float]) -> float:
    """Of some rounds."""
    return statistics.median(measure() for _ in range(rounds))


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", nargs="*", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    start_ms, fresh_ms, each_mb = momus_clusters(options.rounds)
    _, memory_mb = started("momus")
    print("| | first start | fresh for a test | memory |\n|---|---|---|---|")
    print(f"| momus | {start_ms:.0f} ms | {fresh_ms:.1f} ms | {memory_mb:.0f} MB, {each_mb:.2f} MB a cluster |")
    for peer in options.peer:
        found = [started(peer) for _ in range(options.rounds)]
        start_ms, memory_mb = (statistics.median(column) for column in zip(*found, strict=True))
        fresh_ms = median_of(options.rounds, fresh_mock) if peer == "rdmock" else start_ms
        print(f"| {NAMES[peer]} | {start_ms:.0f} ms | {fresh_ms:.1f} ms | {memory_mb:.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
