"""kill -9 while a broker is filled: the next start loads the rest, once each, or says why it does not."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
from load_kit import broker_on, records_of, refused, serve

TOPICS, ROWS = 200, 12
LOAD = {
    "topics": [
        {"name": f"t-{topic}", "partitions": 2, "records": [{"value": f"{topic} {row}"} for row in range(ROWS)]}
        for topic in range(TOPICS)
    ],
    "groups": [{"name": f"g-{each}", "offsets": [{"topic": f"t-{each}", "offset": each}]} for each in range(TOPICS)],
    "quotas": [{"user": "alice", "producer_byte_rate": 5}],
}


@pytest.fixture
def file(tmp_path) -> Path:
    """A file of many steps."""
    (tmp_path / "load.json").write_text(json.dumps(LOAD))
    return tmp_path / "load.json"


def made(data: Path) -> int:
    """How many partitions have their first record."""
    return sum(1 for _ in data.glob("t-*/*.log"))


def kill_after(data: Path, file: Path, wanted: int) -> bool:
    """Start, and kill once so many partitions are there; False: it was ready before."""
    process = serve("-d", str(data), "--load", str(file))
    deadline = time.monotonic() + 300
    try:
        while not (data / ".momus-load").exists() or made(data) < wanted:
            if process.poll() is not None or is_done(data):
                return False
            assert time.monotonic() < deadline
            time.sleep(0.003)
    finally:
        process.kill()
        process.communicate()
    return not is_done(data)


def is_done(data: Path) -> bool:
    mark = data / ".momus-load"
    return mark.exists() and json.loads(mark.read_text())["state"] == "done"


def check(broker) -> None:
    for topic in (0, 1, TOPICS // 2, TOPICS - 1):
        values = [f"{topic} {row}".encode() for row in range(ROWS)]
        assert records_of(broker, f"t-{topic}") == {0: values[::2], 1: values[1::2]}
        assert broker.committed(f"g-{topic}") == {(f"t-{topic}", 0): topic}
    rows = broker.control.ask("GET", f"{broker.control.prefix}/topics?filter=t-")["topics"]
    assert [row["records"] for row in rows if not row["internal"]] == [ROWS] * TOPICS


@pytest.mark.slow  # seven starts under load
def test_load_that_was_killed_at_random_points_goes_on_and_has_each_record_once(tmp_path, file):
    rng, killed, wanted = random.Random(7), 0, 0
    data = tmp_path / "data"
    for _ in range(6):
        killed += kill_after(data, file, wanted)
        wanted = made(data) + rng.randrange(1, 110)
    assert killed >= 3
    with broker_on(tmp_path, load=file) as broker:
        check(broker)
    assert is_done(data)


def test_load_that_was_killed_and_has_changed_since_is_refused(tmp_path, file):
    data = tmp_path / "data"
    assert kill_after(data, file, 10)
    file.write_text(json.dumps({**LOAD, "users": []}))
    code, said = refused("-d", str(data), "--load", str(file))
    assert code == 2
    assert "an earlier start was cut off while it loaded another text, and what it has loaded is not complete" in said
    assert "put the text back" in said
    file.write_text(json.dumps(LOAD))
    with broker_on(tmp_path, load=file, log_level="info") as broker:
        check(broker)
        assert "an earlier start was cut off while it loaded this; the rest is loaded" in broker.log
