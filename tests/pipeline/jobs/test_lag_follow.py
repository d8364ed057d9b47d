"""Lag of new rows only: run after run it adds up to what the job says of the whole, whatever stops it in between."""

from __future__ import annotations

import os
import random
import shutil
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from growing_logs import Growing
from job_kit import parsed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline import output as table_output
from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.jobs import archive
from pipeline.jobs import lag as job
from pipeline.jobs.lag_follow import LagSteps
from pipeline.schema import VIEWS
from pipeline.streaming import follow as following
from pipeline.streaming.position_table import read_position
from pipeline.transforms import commits
from pipeline.transforms import lag as lags

STEP_S = 2
WRITE = table_output.write


def follow(spark: SparkSession, data: Path, output: Path, *words: str) -> None:
    assert job.run(spark, parsed(job, data, output, "--follow", "--step", str(STEP_S), *words)) == 0


def told(spark: SparkSession, output: Path) -> DataFrame:
    return spark.read.parquet(f"{output}/lag").drop("batch")


def whole(spark: SparkSession, data: Path, found: DataFrame) -> DataFrame:
    """What the job says of the same moments from all there is."""
    [span] = found.select(F.unix_micros(F.min("time")), F.unix_micros(F.max("time"))).collect()
    first, last = (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at) for at in span)
    changes = commits.effective(tables.offsets(spark, str(data)))
    slots = lags.Slots(first, last, timedelta(seconds=STEP_S))
    return lags.lag_over_time(changes, tables.raw(spark, str(data)), slots)


def same(one: DataFrame, other: DataFrame) -> bool:
    rows = sorted(map(str, one.select(*other.columns).collect()))
    assert len(rows) > 90
    return rows == sorted(map(str, other.collect()))


def batches(output: Path) -> int:
    position = read_position(str(output))
    return 0 if position is None else position.batch + 1


@pytest.mark.long
def test_lag_of_a_history_cut_at_random_and_cleaned_meanwhile_is_that_of_the_whole(spark, tmp_path):
    data, output, rng = tmp_path / "data", tmp_path / "lag", random.Random(1)
    logs = Growing(data, 1)
    cut = rng.uniform(0, logs.seconds)
    logs.grow(cut)
    follow(spark, data, output, "--max-bytes", "6000")
    logs.grow(logs.seconds, gone=cut - 2)
    follow(spark, data, output, "--max-bytes", "6000")
    assert batches(output) > 3
    logs.grow(logs.seconds)
    found = told(spark, output)
    assert same(found, whole(spark, data, found))
    [last] = found.select(F.unix_micros(F.max("time"))).collect()
    assert datetime.fromtimestamp(last[0] / 1e6, UTC) > logs.start + timedelta(seconds=logs.seconds - 2 * STEP_S - 5)


def replace_write(monkeypatch: pytest.MonkeyPatch, write: Any) -> None:
    for module in (following, table_output):
        monkeypatch.setattr(module, "write", write)


def test_lag_that_is_stopped_before_its_position_is_kept_has_every_moment_once(spark, tmp_path, monkeypatch):
    data, output = tmp_path / "data", tmp_path / "lag"
    logs = Growing(data, 2)
    logs.grow(logs.seconds)
    write, written = WRITE, []

    def stopped(session: SparkSession, rows: DataFrame, path: str, kind: str) -> int:
        count = write(session, rows, path, kind)
        name = path.removeprefix(f"{output}/")
        written.append(name)
        if written.count(name) == 1 and name.startswith(("lag/batch=1", "_state/batch=1/moments")):
            raise OSError("no space left")
        return count

    replace_write(monkeypatch, stopped)
    for _ in range(2):
        with pytest.raises(PipelineError, match="the stream has failed: no space left"):
            follow(spark, data, output, "--max-bytes", "12000")
    follow(spark, data, output, "--max-bytes", "12000")
    assert written.count("lag/batch=1") == 3
    found = told(spark, output)
    assert same(found, whole(spark, data, found))


def test_lag_of_logs_that_grow_meanwhile_is_told_until_it_is_stopped(spark, tmp_path, monkeypatch):
    data, output = tmp_path / "data", tmp_path / "lag"
    logs = Growing(data, 3)
    logs.grow(logs.seconds / 2)
    write = WRITE

    def growing(session: SparkSession, rows: DataFrame, path: str, kind: str) -> int:
        count = write(session, rows, path, kind)
        if path.endswith("_state/batch=0/moments"):
            logs.grow(logs.seconds)
        elif path.endswith("_state/batch=1/moments"):
            os.kill(os.getpid(), signal.SIGTERM)
        return count

    replace_write(monkeypatch, growing)
    follow(spark, data, output, "--every", "0.1")
    found = told(spark, output)
    assert same(found, whole(spark, data, found))


@pytest.mark.long
def test_lag_of_an_archive_that_grows_is_that_of_the_whole_archive(spark, tmp_path):
    data, source, output = tmp_path / "data", tmp_path / "archive", tmp_path / "lag"
    logs = Growing(data, 5)
    for until in (logs.seconds / 2, logs.seconds):
        logs.grow(until)
        assert archive.run(spark, parsed(archive, data, source, "--topics", "t*")) == 0
        follow(spark, source, output)
    found = told(spark, output)
    assert same(found, whole(spark, source, found))
    shutil.rmtree(source / "raw")
    with pytest.raises(PipelineError, match=r"now has other tables than when .* was begun: use another --output"):
        follow(spark, source, output)


def test_lag_in_other_steps_than_it_was_begun_with_is_refused(spark, tmp_path):
    data, output = tmp_path / "data", tmp_path / "lag"
    Growing(data, 4).grow(9)
    follow(spark, data, output)
    with pytest.raises(PipelineError, match="was begun with --step 2: another step needs another --output"):
        follow(spark, data, output, "--step", "60")


# ------------------------------------------------------------ the fold alone


def commit(offset: int, value: int, second: float) -> dict[str, Any]:
    return {
        "log": "__consumer_offsets-0", "offset": offset, "timestamp": at(second), "kind": "OffsetCommit",
        "tombstone": False, "transactional": False, "producer_id": -1, "group": "g", "commit_topic": "t",
        "commit_partition": 0, "commit_offset": value,
    }  # fmt: skip  # several to a line


def record(offset: int, second: float) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "offset": offset, "timestamp": at(second)}


def at(second: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


class Fed:
    """The fold, given rows."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._state = spark, {}
        self._sure: datetime | None = None
        self._steps = LagSteps(timedelta(seconds=10), None, lambda _: self._sure)

    def feed(self, commits: list[Any], records: list[Any], sure: datetime | None) -> list[tuple[Any, ...]]:
        """Rows, and until when nothing is missing of them: second, committed, end, as they are told."""
        self._sure = sure
        rows = {"offsets": self._frame("offsets", commits, lags.COMMITS)}
        rows["raw"] = self._frame("raw", records, lags.RECORDS)
        folded = self._steps.fold(rows, self._state, {})
        self._state = {name: self._spark.createDataFrame(table.toArrow()) for name, table in folded.state.items()}
        found = folded.added["lag"].select(F.unix_seconds("time") - int(at(0).timestamp()), lags.OFFSET, lags.END)
        return sorted(map(tuple, found.collect()))

    def _frame(self, view: str, rows: list[Any], columns: tuple[str, ...]) -> DataFrame:
        return self._spark.createDataFrame(pa.Table.from_pylist(rows, VIEWS[view])).select(*columns)


def test_moment_is_told_once_every_log_is_read_past_it_and_what_comes_late_counts_in_the_next(spark):
    fed = Fed(spark)
    assert fed.feed([commit(0, 3, 1)], [record(4, 2), record(5, 30)], None) == []
    assert fed.feed([], [record(6, 31)], at(60)) == [(10, 3, 5), (20, 3, 5)]  # the newest is at 31, less the grace
    assert fed.feed([commit(1, 5, 8)], [record(7, 12), record(8, 50)], at(60)) == [(30, 5, 8), (40, 5, 8)]


def test_topic_that_was_made_anew_ends_where_the_new_one_ends(spark):
    fed = Fed(spark)
    assert fed.feed([commit(0, 3, 1)], [record(99, 2), record(100, 26)], at(60)) == [(10, 3, 100), (20, 3, 100)]
    assert fed.feed([], [record(0, 27), record(1, 46)], at(60)) == [(30, 3, 1), (40, 3, 1)]
