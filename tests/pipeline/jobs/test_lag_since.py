"""`lag --since` and `--as-of` leave out old segments by their time indexes, and say what they say without that."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from made_logs import EPOCH_MS, Logs

from pipeline.engine import local_engine
from pipeline.jobs import lag
from pipeline.jobs.registry import job_parser
from pipeline.local.session import LocalSession
from protocol.record_batch import build_batch

CO = "__consumer_offsets-0"
STEPS = 120
AHEAD_MS = 10**6
SEEDS = range(8)


class TimedLogs:
    """Logs of several segments, whose closed ones have the time index that a broker writes."""

    def __init__(self, directory: Path) -> None:
        self.logs, self.directory = Logs(directory), directory
        self.newest: dict[Path, int] = {}
        directory.mkdir(exist_ok=True)
        (directory / "meta.properties").touch()  # of a broker, whose cleaner has not been at any log

    def data(self, log: str, count: int, timestamp_ms: int) -> None:
        self.logs.append(log, build_batch([(b"k", b"v")] * count, timestamp_ms=timestamp_ms), count)
        last = sorted((self.directory / log).glob("*.log"))[-1]
        self.newest[last] = max(self.newest.get(last, 0), timestamp_ms)

    def roll(self, log: str) -> None:
        """Close a segment, with entries on the way to its largest time."""
        last = sorted((self.directory / log).glob("*.log"))[-1]
        entries = [(self.newest[last] - 1, 0), (self.newest[last], 1)]
        last.with_suffix(".timeindex").write_bytes(b"".join(struct.pack(">qi", *each) for each in entries))
        self.logs.roll(log)

    def indexes(self) -> list[Path]:
        return sorted(self.directory.glob("*/*.timeindex"))


def history(directory: Path, seed: int) -> TimedLogs:
    """Producers with clocks of their own, and groups that commit, go back, stop, and are removed."""
    made, rng = TimedLogs(directory), random.Random(seed)
    for log in ("t-0", "t-1", "u-0"):
        made.data(log, 1, made.logs.tick())
    for _ in range(STEPS):
        topic, partition = rng.choice([("t", 0), ("t", 1), ("u", 0)])
        log, now_ms = f"{topic}-{partition}", made.logs.tick()
        late = rng.choices([0, -rng.randrange(20), -AHEAD_MS, AHEAD_MS], [20, 10, 1, 1])[0]
        made.data(log, rng.randrange(1, 5), now_ms + late)
        end = made.logs.ends[log]
        if rng.random() < 0.3:
            made.roll(log)
            made.data(log, 1, made.logs.tick())
        if rng.random() < 0.4:
            offset = max(end - rng.choices([rng.randrange(6), rng.randrange(60)], [10, 1])[0], 0)
            made.logs.commit(CO, rng.choice("gh"), {partition: offset}, topic=topic, member="m", generation=1)
        elif rng.random() < 0.03:
            made.logs.forget(CO, rng.choice("gh"), partition, topic)
    for path in made.indexes():  # what a crash or a copy leaves of a time index
        content = path.read_bytes()
        harm = rng.choices([content, None, b"", content[:-5], content + bytes(12), content[::-1]], [12, 1, 1, 1, 1, 1])
        path.unlink() if harm[0] is None else path.write_bytes(harm[0])
    return made


@pytest.fixture
def local() -> Iterator[LocalSession]:
    """The local engine."""
    with local_engine():
        session = LocalSession()
        yield session
        session.stop()


def text_of(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()


def ask(session: Any, capsys: Any, directory: Path, *words: str) -> tuple[list[dict[str, Any]], int | None]:
    """The rows, and how many segments were not read."""
    args = job_parser("lag", lag).parse_args(["--input", str(directory), *words])
    assert lag.run(session, args) == 0
    said = capsys.readouterr()
    count = re.search(r"(\d+) of \d+ segments are older", said.err)
    return [json.loads(line) for line in said.out.splitlines()], int(count[1]) if count else None


def questions(moment: str) -> list[tuple[str, ...]]:
    return [
        ("--since", moment, "--last"),
        ("--since", moment, "--step", "0.02"),
        ("--as-of", moment),
        ("--since", moment, "--sum", "--step", "0.02"),
        ("--since", moment, "--stable", "--step", "0.02"),
    ]


def left_out(session: Any, capsys: Any, monkeypatch: Any, directory: Path, words: tuple[str, ...]) -> int:
    """How many segments a question leaves out, whose answer is that of all segments."""
    rows, count = ask(session, capsys, directory, *words)
    with monkeypatch.context() as patched:
        patched.setattr(lag, "_older", lambda *_: {})
        everything, _ = ask(session, capsys, directory, *words)
    assert rows == everything, words
    return count or 0


@pytest.mark.parametrize("seed", SEEDS)
def test_answer_is_the_one_of_all_segments(local, tmp_path, capsys, monkeypatch, seed):
    made = history(tmp_path, seed)
    span = made.logs.now_ms - EPOCH_MS
    asked = [words for share in (0.5, 0.9) for words in questions(text_of(EPOCH_MS + int(span * share)))]
    assert sum(left_out(local, capsys, monkeypatch, tmp_path, words) for words in asked) > 0


def test_spark_leaves_out_the_same_segments(spark, tmp_path, capsys, monkeypatch):
    made = history(tmp_path, SEEDS[0])
    moment = text_of(EPOCH_MS + (made.logs.now_ms - EPOCH_MS) * 9 // 10)
    assert left_out(spark, capsys, monkeypatch, tmp_path, questions(moment)[0]) > 0


def stretch(directory: Path, hours: list[int], committed: int) -> TimedLogs:
    """One log, of a segment of ten records an hour; a group has committed an offset in the last of them."""
    made = TimedLogs(directory)
    for number, hour in enumerate(hours):
        if number:
            made.roll("t-0")
        made.data("t-0", 10, EPOCH_MS + hour * 3_600_000)
    made.logs._clock = iter(range(EPOCH_MS + max(hours) * 3_600_000, 1 << 62))
    made.logs.commit(CO, "g", {0: committed}, member="m", generation=1)
    return made


SINCE = ("--since", text_of(EPOCH_MS + 5 * 3_600_000 - 1))


@pytest.mark.parametrize(
    ("hours", "committed", "words", "count"),
    [
        ([0, 1, 2, 3, 4, 5, 6], 65, SINCE, 4),  # 4 says where the log ended at that time
        ([0, 1, 2, 3, 4, 5, 6], 65, (*SINCE, "--sum"), 4),
        ([0, 1, 2, 3, 4, 5, 6], 25, SINCE, 2),  # the unread ones have a time
        ([0, 1, 2, 3, 4, 5, 6], 25, (*SINCE, "--sum"), 4),
        ([0, 9, 2, 3, 4, 5, 6], 65, SINCE, 3),  # 9 is dated ahead
        ([0, 1, 2, 3, 4], 45, SINCE, 3),  # the last is never left out
        ([0, 1, 2, 3, 4, 5, 6], 65, (*SINCE, "--stable"), None),
        ([0, 1, 2, 3, 4, 5, 6], 65, (*SINCE, "--skip-damaged"), None),
        ([0, 1, 2, 3, 4, 5, 6], 65, ("--last",), None),
    ],
)
def test_segments_that_cannot_matter_are_left_out(local, tmp_path, capsys, hours, committed, words, count):
    stretch(tmp_path, hours, committed)
    rows, skipped = ask(local, capsys, tmp_path, *words)
    assert rows
    assert skipped == count


@pytest.mark.parametrize("harm", ["gone", "empty", "torn", "allocated", "falling", "swap"])
def test_segment_without_a_whole_time_index_is_read(local, tmp_path, capsys, harm):
    made = stretch(tmp_path, [0, 1, 2, 3, 4, 5, 6], 65)
    path = made.indexes()[1]
    content = path.read_bytes()
    if harm == "gone":
        path.unlink()
    elif harm == "swap":
        path.with_suffix(".log").rename(path.with_suffix(".log.swap"))
    else:
        damaged = {"empty": b"", "torn": content[:-1], "allocated": content + bytes(24), "falling": content * 2}
        path.write_bytes(damaged[harm])
    assert ask(local, capsys, tmp_path, *SINCE)[1] == 3


def test_logs_that_are_cleaned_or_may_be_are_read(local, tmp_path, capsys):
    stretch(tmp_path, [0, 1, 2, 3, 4, 5, 6], 65)
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 40\n")
    assert ask(local, capsys, tmp_path, *SINCE)[1] == 0
    for name in ("cleaner-offset-checkpoint", "meta.properties"):
        (tmp_path / name).unlink()
    assert ask(local, capsys, tmp_path, *SINCE)[1] is None
