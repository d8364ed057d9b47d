"""What the pytest fixture costs: round trips in a fresh cluster each, and how they go with workers side by side.

    python -m benchmarks.test_kit [--tests 200] [--workers 2]

Writes a file of tests, each of which sends a record by kafka-python to its `kafka_broker` and reads it back, and runs
it with pytest. Printed, a line a run: seconds, and processor milliseconds a test of all processes together. "client" is
the same tests in one cluster that all share: what the clients themselves take. "no client" is tests that wait for
WAIT_S, in a fresh cluster each and with a fixture that does nothing: what the kit alone takes, as clients differ from
run to run. Then how long `kafka_broker` takes to be made and how long pytest takes to set up such a test
(p50), and the first one of a session, beside `momus serve` until it is ready, in turn. The last needs two free cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
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

NO_CLIENT = """
import pytest, time

@pytest.fixture(scope="session")
def first():
    return 1

@pytest.fixture
def nothing(request, first):
    yield first

@pytest.mark.parametrize("number", range({tests}))
def test_wait({fixture}, number):
    time.sleep({wait_s})
"""
WAIT_S = 0.012
NO_CLIENT_TIMES = 5  # as many tests: they are short, and a start weighs less

# Keeps how long kafka_broker takes to be made, and its test to be set up with all that it needs when it is the first.
CONFTEST = """
import json, time, pytest
TIMES, MADE = [], []

@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    begin_s = time.perf_counter()
    try:
        return (yield)
    finally:
        if fixturedef.argname in ("kafka_broker", "nothing"):
            MADE.append(time.perf_counter() - begin_s)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    begin_s = time.perf_counter()
    try:
        return (yield)
    finally:
        TIMES.append(time.perf_counter() - begin_s)

def pytest_sessionfinish():
    with open("setup.json", "w") as file:
        json.dump([TIMES, MADE], file)
"""
FIRSTS = 7  # sessions and starts, in turn


def run(folder: str, fixture: str, tests: int, *options: str, text: str = TESTS) -> tuple[float, float]:
    """Seconds, and seconds of processor time of pytest and all that it started."""
    Path(folder, "test_it.py").write_text(text.format(tests=tests, fixture=fixture, wait_s=WAIT_S))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin_s = time.perf_counter()
    done = subprocess.run([*command, "test_it.py"], cwd=folder, capture_output=True, text=True)
    taken_s = time.perf_counter() - begin_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return taken_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def setups(folder: str) -> tuple[list[float], list[float]]:
    """Milliseconds of the set-up of each test that was run last, and of its fixture alone."""
    whole, made = json.loads(Path(folder, "setup.json").read_text())
    return [1000 * each for each in whole], [1000 * each for each in made]


def measure_kit(folder: str, tests: int) -> None:
    """Print what a fresh cluster takes where no client differs from run to run."""
    cpu_ms, lines = {}, []
    for name, fixture in (("an empty fixture", "nothing"), ("a fresh cluster", "kafka_broker")):
        _, idle_cpu_s = run(folder, fixture, 1, "-p", "no:xdist", text=NO_CLIENT)
        taken_s, cpu_s = run(folder, fixture, tests + 1, "-p", "no:xdist", text=NO_CLIENT)
        cpu_ms[name] = (cpu_s - idle_cpu_s) / tests * 1000
        whole, made = (statistics.median(column[1:]) for column in setups(folder))
        lines.append(f"{name} is made in {made:.2f} ms, its test set up in {whole:.2f} (p50)")
        print(f"{'no client, ' + name:<36} {taken_s:>8.2f} {cpu_ms[name]:>18.1f}")
    lines.append(f"the kit alone: {cpu_ms['a fresh cluster'] - cpu_ms['an empty fixture']:.1f} ms of CPU a test")
    print("\n".join(lines))


def served(folder: str) -> float:
    """Milliseconds until `momus serve` is ready."""
    command = [Path(sys.executable).with_name("momus"), "serve", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    begin_s = time.perf_counter()
    with subprocess.Popen(
        [*command, "--flush", "memory", "--data-dir", f"{folder}/served"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"momus ready")
        taken_ms = 1000 * (time.perf_counter() - begin_s)
        process.terminate()
    return taken_ms


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print(f"{options.tests} tests, {os.cpu_count()} processors{'':>10} {'s':>8} {'ms of CPU a test':>18}")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "conftest.py").write_text(CONFTEST)
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
        measure_kit(folder, NO_CLIENT_TIMES * options.tests)
        pairs = []
        for _ in range(FIRSTS):
            ready_ms = served(folder)
            run(folder, "kafka_broker", 1, "-p", "no:xdist")
            pairs.append((ready_ms, setups(folder)[0][0]))
        ready_ms, first_ms = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(first / ready for ready, first in pairs)
        print(f"serve is ready in {ready_ms:.0f} ms, the first fixture in {first_ms:.0f}: {ratio:.2f} times (p50)")
    print(f"-n {options.workers} is {seconds['-n 1'] / seconds[f'-n {options.workers}']:.2f} times as fast as -n 1")


if __name__ == "__main__":
    main()
