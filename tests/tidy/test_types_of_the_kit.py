"""Type checkers and editors know the kit: a wrong filter or fixture is refused, and the twins' stub is fresh."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

RIGHT = """
from momus import Broker, Cluster, Fault, JournalEntry, Snapshot, diff
from momus.faults import on_call, once, times

def test_kit(kafka_broker: Cluster) -> None:
    fault: Fault = kafka_broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", group="g", trigger=once)
    kafka_broker.faults.hold(["Fetch", "Produce"], "before", topic="t", partition=1, version=[3, 9], times=2)
    kafka_broker.faults.slow_disk(5, topic="t", trigger=on_call(3))
    kafka_broker.faults.registry("delay", ms=5, subject="s", trigger=times(2))
    entries: list[JournalEntry] = kafka_broker.journal.verify(api="OffsetCommit", times=1)
    why: str = entries[0]["why"]
    before: Snapshot = kafka_broker.snapshot()
    assert diff(before, kafka_broker).topics == {}, why
    kafka_broker.clock.advance(days=8, seconds=1.5)
    fault.release()

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
}


def mypy(path: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(REPOSITORY / ".mypy_cache"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY).stdout


def test_right_words_pass_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    assert mypy(right).startswith("Success"), mypy(right)
    head = "from momus import Cluster\n\ndef test_wrong(broker: Cluster) -> None:\n"
    wrong.write_text(head + "".join(f"    {line}\n" for line in WRONG))
    said = mypy(wrong).splitlines()
    for number, (line, words) in enumerate(WRONG.items(), 4):
        assert any(f"wrong.py:{number}: error" in each and words in each for each in said), (line, said)


def test_types_of_the_twins_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "tools/aio_stub.py", "--check"], capture_output=True, text=True, cwd=REPOSITORY
    )
    assert done.returncode == 0, done.stderr
