"""What the pytest fixture costs: round trips in a fresh cluster each, and how they go with workers side by side.

    python -m benchmarks.test_kit [--tests 200] [--workers 2]

Writes a file of tests, each of which sends a record by kafka-python to its `kafka_broker` and reads it back, and runs
it with pytest. Printed, a line a run: seconds, and processor milliseconds a test of all processes together. "client" is
the same tests in one cluster that all share: what the clients themselves take. The last line needs two free cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = """
import pytest
from kafka import KafkaConsumer, KafkaProducer

@pytest.mark.parametrize("number", range({tests}))
def test_round_trip({fixture}, number):
    topic, config = f"t{{number}}", {fixture}.client_config("kafka-python")
    producer = KafkaProducer(**config)
    producer.send(topic, b"x").get(10)
    producer.close()
    consumer = KafkaConsumer(topic, **config, auto_offset_reset="earliest", group_id=None)
    assert next(consumer).value == b"x"
    consumer.close()
"""


def run(folder: str, fixture: str, tests: int, *options: str) -> tuple[float, float]:
    """Seconds, and seconds of processor time of pytest and all that it started."""
    Path(folder, "test_it.py").write_text(TESTS.format(tests=tests, fixture=fixture))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin_s = time.perf_counter()
    done = subprocess.run([*command, "test_it.py"], cwd=folder, capture_output=True, text=True)
    taken_s = time.perf_counter() - begin_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return taken_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print(f"{options.tests} tests, {os.cpu_count()} processors{'':>10} {'s':>8} {'ms of CPU a test':>18}")
    with tempfile.TemporaryDirectory() as folder:
        seconds = {}
        for name, fixture, words in (
            ("client: one cluster for all", "kafka_broker_session", ["-p", "no:xdist"]),
            ("a fresh cluster for each", "kafka_broker", ["-p", "no:xdist"]),
            ("-n 1", "kafka_broker", ["-n", "1"]),
            (f"-n {options.workers}", "kafka_broker", ["-n", str(options.workers)]),
        ):
            idle_s, idle_cpu_s = run(folder, fixture, 1, *words)  # the start of everything, and one test
            taken_s, cpu_s = run(folder, fixture, options.tests + 1, *words)
            seconds[name] = taken_s - idle_s
            print(f"{name:<36} {taken_s - idle_s:>8.2f} {(cpu_s - idle_cpu_s) / options.tests * 1000:>18.1f}")
    print(f"-n {options.workers} is {seconds['-n 1'] / seconds[f'-n {options.workers}']:.2f} times as fast as -n 1")


if __name__ == "__main__":
    main()
