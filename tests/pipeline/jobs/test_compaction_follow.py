"""Figures of segments that changed only: run after run they are those of the whole, whatever is cleaned in between."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from growing_logs import Growing
from job_kit import parsed
from pyspark.sql import DataFrame, SparkSession
from written_log import NOW_MS, Written

from pipeline import output as table_output
from pipeline.errors import PipelineError
from pipeline.files import read_json
from pipeline.jobs import archive, compaction_follow
from pipeline.jobs import compaction as job
from pipeline.source import segment_source
from pipeline.source.changed_segments import SegmentState, plan_reads, state_after_read
from pipeline.source.segment_source import SegmentPart
from pipeline.streaming import transient_errors
from pipeline.streaming.transient_errors import TRANSIENT_ERRORS
from protocol.record_batch import ABORT, COMMIT

WRITE = table_output.write


def follow(spark: SparkSession, data: Path, output: Path, *words: str) -> None:
    assert job.run(spark, parsed(job, data, output, "--follow", *words)) == 0


def same(spark: SparkSession, data: Path, output: Path, topics: str | None = "t") -> list[Any]:
    """The table's rows, which are those of the whole."""
    found = sorted(spark.read.parquet(f"{output}/segments").collect())
    assert found == sorted(job.report(spark, str(data), topics).collect())
    return found


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[SegmentPart]:
    """What was read of segments so far."""
    found: list[SegmentPart] = []
    read = segment_source.read_parts

    def noted(spark: SparkSession, settings: Any, wanted: list[SegmentPart]) -> DataFrame:
        found.extend(wanted)
        return read(spark, settings, wanted)

    monkeypatch.setattr(segment_source, "read_parts", noted)
    return found


def write(written: Written, rng: random.Random, batches: int) -> None:
    """Keys that come again, tombstones, records without keys, and transactions over several segments."""
    for _ in range(batches):
        choice, pid = rng.random(), rng.randrange(3)
        records = [
            (rng.choice([b"k%d" % rng.randrange(12), None]), rng.choice([None, b"v" * rng.randrange(40)]))
            for _ in range(rng.randint(1, 4))
        ]
        if choice < 0.5:
            written.put(*records)
        elif choice < 0.8:
            written.put(*records, producer_id=pid)
        else:
            written.end(pid, rng.choice([COMMIT, COMMIT, ABORT]))


@pytest.mark.long
def test_figures_of_a_log_cut_at_random_are_those_of_the_whole_before_and_after_cleaning(spark, tmp_path, decoded):
    data, output, rng = tmp_path / "data", tmp_path / "bytes", random.Random(3)
    data.mkdir()
    written = Written(data, segment_bytes=1000)
    for _ in range(3):
        write(written, rng, rng.randint(5, 30))
        follow(spark, data, output, "--topics", "t", "--max-bytes", "4000")
    before = same(spark, data, output)
    assert len(before) > 4
    assert len({each for each in decoded if each.position == 0}) == len({each.segment for each in decoded})
    for _ in written.log.clean(NOW_MS):
        pass
    follow(spark, data, output, "--topics", "t")  # no record has come: only the files have changed
    after = same(spark, data, output)
    assert sum(row["bytes"] for row in after) < sum(row["bytes"] for row in before) * 0.8
    write(written, rng, 10)
    (data / "t-0" / f"{after[0]['segment']:020d}.log").unlink()  # by retention
    asked = len(decoded)
    follow(spark, data, output, "--topics", "t")
    assert same(spark, data, output)[0]["segment"] == after[1]["segment"]
    assert {each.segment for each in decoded[asked:]}.isdisjoint(row["segment"] for row in after[1:-1])


def test_figures_after_a_round_that_was_stopped_are_those_of_the_whole(spark, tmp_path, monkeypatch, decoded):
    data, output, rng = tmp_path / "data", tmp_path / "bytes", random.Random(4)
    data.mkdir()
    written, names = Written(data, segment_bytes=1000), []

    def stopped(session: SparkSession, rows: DataFrame, path: str, kind: str) -> int:
        count = WRITE(session, rows, path, kind)
        names.append(path.removeprefix(f"{output}/"))
        if names.count(names[-1]) == 1 and names[-1] in ("_state/round=1/parts", "segments"):
            raise OSError("no space left")
        return count

    monkeypatch.setattr(compaction_follow, "write", stopped)
    write(written, rng, 30)
    for _ in range(2):
        with pytest.raises(OSError, match="no space left"):
            follow(spark, data, output, "--topics", "t", "--max-bytes", "2500")
    follow(spark, data, output, "--topics", "t", "--max-bytes", "2500")
    assert len(same(spark, data, output)) > 3
    assert len(set(decoded)) < len(decoded)  # of the round that did not count


@pytest.mark.long
def test_rounds_that_a_busy_machine_has_stopped_are_done_again_until_none_is_done(spark, tmp_path, monkeypatch):
    data, output = tmp_path / "data", tmp_path / "bytes"
    data.mkdir()
    written, names = Written(data, segment_bytes=1000), []
    write(written, random.Random(7), 30)
    monkeypatch.setattr(transient_errors, "MAX_RETRIES", 2)

    def stopped(session: SparkSession, rows: DataFrame, path: str, kind: str) -> int:
        names.append(path.removeprefix(f"{output}/"))
        if names[-1].endswith("/parts") and names.count(names[-1]) < 3:
            raise PipelineError(f"Job aborted: {TRANSIENT_ERRORS[0]}")
        return WRITE(session, rows, path, kind)

    monkeypatch.setattr(compaction_follow, "write", stopped)
    follow(spark, data, output, "--topics", "t", "--max-bytes", "2500")
    assert len(same(spark, data, output)) > 3
    assert names.count("_state/round=1/parts") == 3
    assert [each.name for each in (output / "_state").glob("round=*")] == [
        f"round={read_json(f'{output}/_state/ledger.json')['round']}"
    ]
    monkeypatch.setattr(transient_errors, "MAX_RETRIES", 1)
    with pytest.raises(PipelineError, match=TRANSIENT_ERRORS[0]):
        follow(spark, data, tmp_path / "other", "--topics", "t")


def test_figures_of_internal_topics_are_kept_current_until_the_job_is_stopped(spark, tmp_path, monkeypatch):
    data, output = tmp_path / "data", tmp_path / "bytes"
    logs = Growing(data, 5)
    logs.grow(logs.seconds / 2)
    tables = []

    def growing(session: SparkSession, rows: DataFrame, path: str, kind: str) -> int:
        count = WRITE(session, rows, path, kind)
        if path.endswith("/segments"):
            tables.append(count)
            logs.grow(logs.seconds)
            if len(tables) == 2:
                os.kill(os.getpid(), signal.SIGTERM)
        return count

    monkeypatch.setattr(compaction_follow, "write", growing)
    follow(spark, data, output, "--every", "0.01")
    assert tables == [2, 2]
    assert sum(row["dead_records"] for row in same(spark, data, output, None)) > 20


@pytest.mark.long
def test_figures_of_an_archive_that_grows_are_those_of_the_whole_archive(spark, tmp_path):
    data, source, output = tmp_path / "data", tmp_path / "archive", tmp_path / "bytes"
    logs = Growing(data, 6)
    for until in (logs.seconds / 2, logs.seconds):
        logs.grow(until)
        assert archive.run(spark, parsed(archive, data, source)) == 0
        follow(spark, source, output)
    assert sum(row["dead_records"] for row in same(spark, source, output, None)) > 20


# ------------------------------------------------------------ which segments are read

OLD, MIDDLE, OPEN = (
    SegmentState("t-0", 0, 900, 900, 10, 10),
    SegmentState("t-0", 10, 900, 880, 20, 20),
    SegmentState("t-0", 20, 300, 300, 25, None),
)
KNOWN = {each.key: each for each in (OLD, MIDDLE, OPEN)}


def plan(*segments: tuple[int, int], max_bytes: int = 1 << 20) -> tuple[list[int], list[tuple[int, int, int]]]:
    """(segments that are kept, those that are read: base offset, first offset and place)."""
    bases = [base for base, _ in segments]
    there = [
        SegmentState("t-0", base, size, 0, base, following)
        for (base, size), following in zip(segments, [*bases[1:], None], strict=True)
    ]
    found = plan_reads(there, KNOWN, max_bytes)
    return [each.segment for each in found.kept], [
        (piece.segment, piece.first, piece.position) for piece, _ in found.read
    ]


@pytest.mark.parametrize(
    ("there", "kept", "read"),
    [
        ([(0, 900), (10, 900), (20, 300)], [0, 10, 20], []),
        ([(0, 900), (10, 900), (20, 350)], [0, 10], [(20, 25, 300)]),  # grown
        ([(0, 900), (10, 900), (20, 300), (25, 0)], [0, 10, 20], [(25, 25, 0)]),  # rolled, nothing added
        ([(0, 900), (10, 900), (20, 350), (27, 0)], [0, 10], [(20, 20, 0), (27, 27, 0)]),  # rolled: may be cleaned
        ([(0, 600), (10, 900), (20, 300)], [10, 20], [(0, 0, 0)]),  # cleaned
        ([(0, 900), (20, 300)], [20], [(0, 0, 0)]),  # merged into one that is as large as the first was
        ([(10, 900), (20, 300)], [10, 20], []),  # removed
        ([(0, 900), (10, 900), (20, 200)], [0, 10], [(20, 20, 0)]),  # cut short
        ([(0, 40)], [], [(0, 0, 0)]),  # made anew
    ],
)
def test_only_segments_that_changed_are_read(there, kept, read):
    assert plan(*there) == (kept, read)


def test_segments_beyond_the_bytes_of_a_round_wait_and_what_is_known_of_their_beginning_stays():
    assert plan((0, 600), (10, 800), (20, 350), max_bytes=100) == ([20], [(0, 0, 0)])


def test_segment_that_changed_while_it_was_read_is_not_known():
    piece, wanted = SegmentPart("t-0", 0, 0, 0), SegmentState("t-0", 0, 900, 0, 0, 10)
    facts = {"start": 0, "reached": 900, "end": 10}
    assert state_after_read(piece, wanted, facts, wanted) == OLD
    assert state_after_read(piece, wanted, facts, wanted._replace(size=600)) is None
    assert state_after_read(piece, wanted, facts, wanted._replace(following=20)) is None
    assert state_after_read(piece, wanted, facts, None) is None


def test_segment_whose_new_bytes_do_not_follow_on_those_that_were_read_is_not_known():
    piece, wanted = SegmentPart("t-0", 20, 25, 300), SegmentState("t-0", 20, 350, 300, 25, None)
    found = state_after_read(piece, wanted, {"start": 300, "reached": 350, "end": 27}, wanted)
    assert found == SegmentState("t-0", 20, 350, 350, 27, None)
    assert state_after_read(piece, wanted, {"start": 310, "reached": 350, "end": 27}, wanted) is None
    assert state_after_read(piece, wanted, None, wanted) == wanted  # a batch that is not whole yet
