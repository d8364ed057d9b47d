"""Type checkers and editors know the kit: a wrong filter or fixture is refused, and the twins' stub is fresh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]

RIGHT = """
from momus import Broker, Cluster, Fault, JournalEntry, MakeKafkaBroker, Snapshot, diff
from momus.faults import on_call, once, times

def test_kit(kafka_broker: Cluster) -> None:
    fault: Fault = kafka_broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", group="g", trigger=once)
    kafka_broker.faults.hold(["Fetch", "Produce"], "before", topic="t", partition=1, version=[3, 9], times=2)
    kafka_broker.faults.slow_disk(5, topic="t", trigger=on_call(3))
    kafka_broker.faults.registry("delay", ms=5, subject="s", trigger=times(2))
    entries: list[JournalEntry] = kafka_broker.journal.verify(api="OffsetCommit", times=1)
    why: str = entries[0].get("why", "") + "".join(entries[0]["errors"])
    before: Snapshot = kafka_broker.snapshot()
    assert diff(before, kafka_broker).topics == {}, why
    kafka_broker.clock.advance(days=8, seconds=1.5)
    fault.release()

def test_made(make_kafka_broker: MakeKafkaBroker) -> None:
    cluster: Cluster = make_kafka_broker(brokers=3, fetch_waits="frozen", seed=7, config={"num.partitions": 4})
    [(partition, offset)] = cluster.produce("t", {"cups": [1]}, key="k")
    places: list[tuple[int, int]] = cluster.produce("t", "a", b"b", None, [1], partition=partition + offset)
    cluster.pause_broker(len(places))

async def test_twins(kafka_broker: Cluster, kafka_process_broker: Broker) -> None:
    fault = await kafka_broker.aio.faults.hold("Fetch")
    hits: int = await fault.hits
    async with await kafka_broker.aio.fork() as other:
        values: list[bytes | None] = [each.value for each in await other.consume("t", hits)]
    await kafka_process_broker.aio.restart()
    assert values
"""
# line -> what is wrong in it
WRONG = {
    'broker.faults.hold("Fetch", grop="g")': "Unexpected keyword argument",
    'broker.faults.hold("Fetch", group=1)': "incompatible type",
    'broker.faults.hold("Fetch", trigger="twice")': "incompatible type",
    'broker.faults.hold("Fetch", "during")': "incompatible type",
    'broker.faults.slow_disk(5, group="g")': "Unexpected keyword argument",
    'broker.faults.blackhole_client("c", route="x")': "Unexpected keyword argument",
    'broker.journal.verify(topik="t")': "Unexpected keyword argument",
    'broker.journal.entries()[0]["reason"]': "has no key",
    "broker.clock.advance(second=1)": "Unexpected keyword argument",
    "broker.clock.advance(46)": "incompatible type",
    "text: str = broker.aio.committed": "Incompatible types",
    'broker.aio.faults.hold("Fetch").release()': "has no attribute",
    "number: int = broker.aio.faults.fault": "has no attribute",
    'broker.produce("t", 5)': "incompatible type",
    'offsets: list[int] = broker.produce("t", "x")': "ncompatible types",
    "make(brokres=3)": "Unexpected keyword argument",
    'make(fetch_waits="never")': "incompatible type",
    "name: str = make()": "Incompatible types",
}


def mypy(path: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(REPOSITORY / ".mypy_cache"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY).stdout


def pyright(path: Path) -> Any:
    """What it says of a file, by its own node: nothing is fetched."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(path)]
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "npm_config_offline": "true"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=path.parent, env=environment)
    return json.loads(done.stdout)["generalDiagnostics"]


@pytest.fixture
def right(tmp_path: Path) -> Path:
    path = tmp_path / "right.py"
    path.write_text(RIGHT)
    return path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.py"
    head = "from momus import Cluster, MakeKafkaBroker\n\n"
    head += "def test_wrong(broker: Cluster, make: MakeKafkaBroker) -> None:\n"
    path.write_text(head + "".join(f"    {line}\n" for line in WRONG))
    return path


@pytest.mark.heavy
def test_mypy_passes_right_words_and_refuses_wrong_ones(right: Path, wrong: Path) -> None:
    assert mypy(right).startswith("Success"), mypy(right)
    said = mypy(wrong).splitlines()
    for number, (line, words) in enumerate(WRONG.items(), 4):
        assert any(f"wrong.py:{number}: error" in each and words in each for each in said), (line, said)


@pytest.mark.heavy
def test_pyright_passes_right_words_and_refuses_wrong_ones(right: Path, wrong: Path) -> None:
    assert pyright(right) == []
    refused = {each["range"]["start"]["line"] for each in pyright(wrong) if each["severity"] == "error"}
    for number, line in enumerate(WRONG, 3):  # it counts lines from 0
        assert number in refused, line


@pytest.mark.heavy
def test_types_of_the_twins_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "tools/aio_stub.py", "--check"], capture_output=True, text=True, cwd=REPOSITORY
    )
    assert done.returncode == 0, done.stderr
