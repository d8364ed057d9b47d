"""The stream's position through everything that happens to logs: no row is lost, none comes twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import made_batches as made
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from pipeline.errors import PipelineError
from pipeline.source.read_options import ReadOptions
from pipeline.source.segment_ranges import read_range
from pipeline.source.stream_planner import StreamPlanner
from pipeline.source.topic_ids import log_key

BATCH = 100  # bytes, more or less


class Logs:
    """A data directory that grows, is rolled, cleaned and deleted. The folders of logs a-N name the topic's id."""

    def __init__(self, directory: Path, *, with_ids: bool = False) -> None:
        self.directory = directory
        self.ids: dict[str, str | None] = {}
        self.with_ids, self.made = with_ids, 0
        self.segments: dict[str, list[tuple[int, list[bytes]]]] = {}
        self.ends: dict[str, int] = {}

    def append(self, log: str, records: int = 1) -> None:
        if log not in self.ends:
            self.made += 1
            self.ids[log] = f"{self.made:022d}" if self.with_ids and log.startswith("a") else None
            if self.ids[log]:
                (self.directory / log).mkdir(parents=True)
                (self.directory / log / "partition.metadata").write_text(f"version: 0\ntopic_id: {self.ids[log]}\n")
        base = self.ends.setdefault(log, 0)
        kept = self.segments.setdefault(log, [(0, [])])
        kept[-1][1].append(made.batch_of([(b"k", b"v" * 20, ())] * records, base_offset=base))
        self.ends[log] = base + records
        self.write(log, kept[-1][0])

    def write(self, log: str, base: int) -> None:
        batches = next(batches for each, batches in self.segments[log] if each == base)
        made.write_segment(self.directory, log, base, *batches)

    def tear(self, log: str) -> None:
        """The next batch is being written."""
        path = self.directory / log / f"{self.segments[log][-1][0]:020d}.log"
        with path.open("ab") as file:
            file.write(made.batch_of([(b"k", b"v" * 20, ())], base_offset=self.ends[log])[:70])

    def roll(self, log: str) -> None:
        if self.segments[log][-1][1]:
            self.segments[log].append((self.ends[log], []))
            self.write(log, self.ends[log])

    def clean(self, log: str, keep: int) -> None:
        """All but the active segment become one, of every keep-th batch."""
        closed, active = self.segments[log][:-1], self.segments[log][-1]
        if closed:
            batches = [batch for _, batches in closed for batch in batches][::keep]
            for base, _ in closed:
                (self.directory / log / f"{base:020d}.log").unlink()
            self.segments[log] = [(closed[0][0], batches), active]
            self.write(log, closed[0][0])

    def expire(self, log: str) -> None:
        if len(self.segments[log]) > 1:
            base, _ = self.segments[log].pop(0)
            (self.directory / log / f"{base:020d}.log").unlink()

    def delete(self, log: str) -> None:
        shutil.rmtree(self.directory / log)
        del self.segments[log], self.ends[log]

    def recreate(self, log: str, records: int = 1) -> None:
        """As a broker does it: the folder is renamed before it goes. Without an id, only a shorter log can tell."""
        (self.directory / log).rename(self.directory / f"{log}.{self.made:032x}-delete")
        was_empty = self.ends[log] == 0
        del self.segments[log], self.ends[log]
        if self.ids[log] is not None or was_empty:
            for _ in range(records):
                self.append(log)

    def offsets(self, log: str, first: int = 0) -> set[tuple[str, int]]:
        """Those that are still there."""
        found = set()
        for _, batches in self.segments.get(log, ()):
            for batch in batches:
                base, count = int.from_bytes(batch[:8], "big"), int.from_bytes(batch[57:61], "big")
                found |= {(log_key(log, self.ids[log]), base + n) for n in range(count) if base + n >= first}
        return found


class Stream:
    """What Spark does: asks for the next position, notes it, reads up to there."""

    def __init__(self, directory: Path) -> None:
        self.settings = ReadOptions({"path": str(directory)})
        self.position: dict[str, int] = {}
        self.restart()

    def restart(self) -> None:
        self.planner = StreamPlanner(self.settings)
        self.position = json.loads(json.dumps(self.position))

    def step(self, max_bytes: int | None = None, between=lambda: None) -> list[tuple[str, int]]:
        end = self.planner.next_position(self.position, max_bytes)
        plan = self.planner.ranges_between(self.position, end)
        between()
        rows = [row for each in plan for row in made.rows(read_range(self.settings, each))]
        self.position = end
        return [(log_key(row["log"], row["topic_id"]), row["offset"]) for row in rows]


class StreamMachine(RuleBasedStateMachine):
    """Anything in any order; `due` is what must come, once, unless it is removed before."""

    @initialize()
    def begin(self) -> None:
        import tempfile

        self.directory = Path(tempfile.mkdtemp(prefix="stream"))
        self.logs = Logs(self.directory, with_ids=True)
        self.stream = Stream(self.directory)
        self.seen: set[tuple[str, int]] = set()

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)

    @rule(log=st.sampled_from(["a-0", "a-1", "b-0"]), records=st.integers(1, 3), batches=st.integers(1, 4))
    def append(self, log, records, batches):
        for _ in range(batches):
            self.logs.append(log, records)

    @precondition(lambda self: self.logs.ends)
    @rule(data=st.data(), what=st.sampled_from(["roll", "roll", "tear", "clean", "expire"]))
    def change(self, data, what):
        log = data.draw(st.sampled_from(sorted(self.logs.ends)))
        if what == "clean":
            self.logs.clean(log, data.draw(st.integers(1, 3)))
        else:
            getattr(self.logs, what)(log)

    @precondition(lambda self: self.logs.ends)
    @rule(data=st.data())
    def delete(self, data):
        log = data.draw(st.sampled_from(sorted(self.logs.ends)))
        self.logs.delete(log)
        self.take(self.stream.step())  # the stream sees that it is gone
        self.seen = {each for each in self.seen if each[0] != log}

    @precondition(lambda self: any(self.logs.ids[log] for log in self.logs.ends))
    @rule(data=st.data(), records=st.integers(1, 6))
    def recreate(self, data, records):
        """The stream sees only the new topic, which may have more records than the old one."""
        named = [log for log in sorted(self.logs.ends) if self.logs.ids[log]]
        self.logs.recreate(data.draw(st.sampled_from(named)), records)

    @rule()
    def restart(self):
        self.stream.restart()

    @rule(max_bytes=st.none() | st.integers(1, 800), data=st.data())
    def step(self, max_bytes, data):
        """One step, and perhaps something happens between plan and read."""
        happens = data.draw(st.sampled_from(["nothing", "nothing", "clean", "append", "roll", "expire", "recreate"]))
        log = data.draw(st.sampled_from(sorted(self.logs.ends))) if self.logs.ends else None

        def between() -> None:
            if happens == "recreate" and (log is None or self.logs.ids[log] is None):
                return
            if log is not None and happens != "nothing":
                {"clean": lambda: self.logs.clean(log, 2)}.get(happens, lambda: getattr(self.logs, happens)(log))()

        self.take(self.stream.step(max_bytes, between))

    @rule(max_bytes=st.none() | st.integers(1, 800))
    def catch_up(self, max_bytes):
        """Trigger.AvailableNow: as many steps as it takes, and then every row that is there has come."""
        self.stream.planner.freeze_ends()
        for log in list(self.logs.ends)[:1]:
            self.logs.append(log)  # comes too late
        for _ in range(300):
            before = dict(self.stream.position)
            self.take(self.stream.step(max_bytes))
            if self.stream.position == before:
                break
        else:
            raise AssertionError("the stream does not come to an end")
        late = {(log_key(log, self.logs.ids[log]), self.logs.ends[log] - 1) for log in list(self.logs.ends)[:1]}
        there = set().union(*(self.logs.offsets(log) for log in self.logs.ends)) if self.logs.ends else set()
        assert there - self.seen == late
        self.stream.restart()

    def take(self, rows: list[tuple[str, int]]) -> None:
        assert len(rows) == len(set(rows))
        assert not self.seen & set(rows)
        self.seen |= set(rows)


StreamMachine.TestCase.settings = hypothesis_settings(max_examples=40, stateful_step_count=30)
TestStreamMachine = StreamMachine.TestCase


def filled(directory: Path, *, with_ids: bool = False, **batches: int) -> Logs:
    logs = Logs(directory, with_ids=with_ids)
    for log, count in batches.items():
        for _ in range(count):
            logs.append(log.replace("_", "-"))
    return logs


def test_step_is_shared_among_logs_and_makes_headway_at_any_size(tmp_path):
    filled(tmp_path, a_0=50, b_0=50, c_0=2)
    stream = Stream(tmp_path)
    first = stream.step(2000)
    assert {log for log, _ in first} == {"a-0", "b-0", "c-0"}
    assert len(first) <= 2000 // 90
    rows = first
    for _ in range(200):
        rows += stream.step(1)
    assert len(rows) == len(set(rows)) == 102


def test_log_that_was_made_anew_is_read_from_its_start(tmp_path):
    logs = filled(tmp_path, a_0=9)
    stream = Stream(tmp_path)
    stream.step()
    logs.delete("a-0")
    logs.append("a-0")
    assert stream.step() == [("a-0", 0)]
    assert stream.position == {"a-0": 1}


@pytest.mark.parametrize("records", [1, 9, 25])
def test_topic_that_was_created_again_is_read_from_its_start_however_long_it_is(tmp_path, records):
    logs = filled(tmp_path, with_ids=True, a_0=9)
    stream = Stream(tmp_path)
    assert len(stream.step()) == 9
    logs.recreate("a-0", records)
    assert stream.step() == [(f"a-0@{logs.ids['a-0']}", n) for n in range(records)]
    assert stream.step() == []


def test_topic_that_is_created_again_between_plan_and_read_gives_no_row_of_another_one(tmp_path):
    logs = filled(tmp_path, with_ids=True, a_0=9)
    stream = Stream(tmp_path)
    assert stream.step(between=lambda: logs.recreate("a-0", 9)) == []
    assert stream.step() == [(f"a-0@{logs.ids['a-0']}", n) for n in range(9)]


def test_segment_that_the_new_topic_does_not_have_is_not_looked_for_in_it(tmp_path):
    logs = filled(tmp_path, with_ids=True, a_0=5)
    logs.roll("a-0")
    logs.append("a-0", 4)
    stream = Stream(tmp_path)
    assert stream.step(between=lambda: logs.recreate("a-0", 9)) == []
    assert len(stream.step()) == 9


def test_position_that_was_kept_before_ids_were_is_that_of_the_log_that_is_there(tmp_path):
    logs = filled(tmp_path, with_ids=True, a_0=9)
    stream = Stream(tmp_path)
    stream.position = {"a-0": 7}
    assert [offset for _, offset in stream.step()] == [7, 8]
    assert stream.position == {f"a-0@{logs.ids['a-0']}": 9}
    stream.position = {"a-0": 10}  # of a longer one, that was deleted
    assert len(stream.step()) == 9


def test_folder_that_has_lost_its_id_keeps_its_position_until_another_id_comes(tmp_path):
    logs = filled(tmp_path, with_ids=True, a_0=9)
    stream = Stream(tmp_path)
    stream.step()
    (tmp_path / "a-0" / "partition.metadata").unlink()
    logs.append("a-0")
    assert [offset for _, offset in stream.step()] == [9]
    logs.recreate("a-0", 12)
    assert len(stream.step()) == 12


def test_log_of_the_same_topic_that_lost_its_tail_is_read_on_from_its_end(tmp_path):
    logs = filled(tmp_path, with_ids=True, a_0=9)
    stream = Stream(tmp_path)
    stream.step()
    logs.segments["a-0"][-1][1].pop()
    logs.ends["a-0"] = 8
    logs.write("a-0", 0)
    assert stream.step() == []
    logs.append("a-0", 3)
    assert [offset for _, offset in stream.step()] == [8, 9, 10]


def test_damaged_partition_metadata_is_an_error_that_says_what_to_do(tmp_path):
    filled(tmp_path, with_ids=True, a_0=1)
    (tmp_path / "a-0" / "partition.metadata").write_text("version: 0\ntopic: a\n")
    with pytest.raises(PipelineError, match=r"a-0/partition\.metadata is damaged: .*Restore it from a copy, or remove"):
        Stream(tmp_path).step()


def test_tail_that_grows_is_not_walked_from_its_start_again(tmp_path, monkeypatch):
    logs = filled(tmp_path, a_0=200)
    stream = Stream(tmp_path)
    stream.step()
    logs.append("a-0")
    walked = []
    begin = StreamPlanner._walk

    def spy(self, segment, first, end, position, chunk_bytes):
        walked.append(position)
        return begin(self, segment, first, end, position, chunk_bytes)

    monkeypatch.setattr(StreamPlanner, "_walk", spy)
    end = stream.planner.next_position(stream.position, None)
    plan = stream.planner.ranges_between(stream.position, end)
    size = len(b"".join(logs.segments["a-0"][0][1][:-1]))
    assert walked == [size]
    assert [each.bounds.position for each in plan] == [size]


def test_damage_in_a_log_stops_the_stream_with_its_place(tmp_path):
    logs = filled(tmp_path, a_0=5)
    base, batches = logs.segments["a-0"][0]
    batches[2] = batches[2][:-1] + b"\7"
    logs.write("a-0", base)
    with pytest.raises(ValueError, match="a-0, segment 0: a batch with a wrong CRC at position"):
        Stream(tmp_path).step()


def test_stream_goes_on_at_a_start_that_has_moved_beyond_its_position(tmp_path):
    logs = filled(tmp_path, a_0=5)
    stream = Stream(tmp_path)
    assert len(stream.step()) == 5
    for _ in range(5):
        logs.append("a-0")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\na 0 7\n")
    assert [offset for _, offset in stream.step()] == [7, 8, 9]
