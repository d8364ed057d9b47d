"""The wheel compiled by mypyc, for this interpreter, apart from the checkout: what it says, and real clients on it.

The short form of `make test-compiled`: it finds what mypyc refuses, and what fails as soon as a client comes. mypyc and
the C compiler take two minutes, so it is among the slow tests, and is made once for all tests of this file.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
COMPILER = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0])
HEADERS = Path(sysconfig.get_path("include"), "Python.h")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None or not HEADERS.exists(), reason="no C compiler, or no headers of this Python"),
]

# With two clients, while the process of the broker has the extensions mapped.
ROUND_TRIP = """
import sys
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer
from momus import Broker

with Broker() as broker:
    with open(f"/proc/{broker.pid}/maps") as maps:
        assert "momus__mypyc" in maps.read(), "the broker runs the sources"
    broker.create_topic("orders")
    producer = KafkaProducer(**broker.client_config("kafka-python"))
    producer.send("orders", b"one coffee").get(60)
    producer.close()
    other = Producer(broker.client_config("confluent") | {"transactional.id": "till"})
    other.init_transactions(60)
    other.begin_transaction()
    other.produce("orders", b"one tea")
    other.commit_transaction(60)
    settings = dict(group_id="bar", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer = KafkaConsumer("orders", **settings, **broker.client_config("kafka-python"))
    first = next(consumer)
    consumer.commit()
    consumer.close()
    settings = {"group.id": "bar", "enable.auto.commit": False}
    consumer = Consumer(broker.client_config("confluent") | settings)
    consumer.subscribe(["orders"])
    second = consumer.poll(60)
    consumer.close()
    print(first.value.decode(), second.value().decode(), sep=", ")
assert broker.log == "", broker.log
"""

SUITES = (
    "tests/e2e/kafka_python/test_kafka_python_transactions.py",
    "tests/e2e/librdkafka/test_librdkafka_groups.py",
    "tests/e2e/test_strangers.py",
)


def run(*command: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(command, capture_output=True, text=True, env=kept | (env or {}), cwd=cwd, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory, worker_id) -> Path:
    """A folder into which the compiled wheel was installed, without its dependencies."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "compiled-wheel"
    folder.mkdir(exist_ok=True)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whichever worker comes first makes it for all
        if not (folder / "complete").exists():
            options = ("--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder))
            run(*pip, "wheel", *options, str(REPOSITORY), env={"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "1"})
            (wheel,) = folder.glob("momus-*.whl")
            assert "none-any" not in wheel.name
            run(*pip, "install", "--quiet", "--no-deps", "--target", str(folder / "site"), str(wheel))
            (folder / "complete").touch()
    return folder / "site"


def test_compiled_wheel_says_what_compiled_it(installed, tmp_path):
    said = run(sys.executable, "-m", "momus", "--version", env={"PYTHONPATH": str(installed)}, cwd=tmp_path)
    assert "(compiled by mypyc " in said


def test_compiled_wheel_serves_kafka_python_and_confluent(installed, tmp_path):
    program = tmp_path / "round_trip.py"
    program.write_text(ROUND_TRIP)
    said = run(sys.executable, str(program), env={"PYTHONPATH": str(installed)}, cwd=tmp_path)
    assert said.splitlines() == ["one coffee, one tea"]


def test_compiled_wheel_runs_one_command_of_a_kind(installed, tmp_path):
    command = tmp_path / "bin" / "momus"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={installed} exec {sys.executable} -m momus "$@"\n')
    command.chmod(0o755)
    said = run(sys.executable, str(REPOSITORY / "tests" / "installed"), str(command.parent), "--bare", "one of a kind")
    assert said.rstrip().endswith("22 passed, 0 failed")


def test_compiled_wheel_passes_suites_of_real_clients(installed, tmp_path):
    shutil.copytree(REPOSITORY / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    path = os.pathsep.join(map(str, (installed, installed / "momus" / "_packages")))
    pytest_command = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow")
    said = run(*pytest_command, *SUITES, env={"PYTHONPATH": path}, cwd=tmp_path)
    assert " passed" in said
