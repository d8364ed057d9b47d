"""Micro-batches that Spark fails for what passes: done again, until none gets done."""

from __future__ import annotations

from pathlib import Path

import pytest
from growing_logs import Growing
from job_kit import run
from pyspark.sql import DataFrame, SparkSession

from pipeline import output as table_output
from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.jobs import offsets
from pipeline.source.log_starts import CHECKPOINT
from pipeline.streaming import follow, transient_errors
from pipeline.streaming.transient_errors import TRANSIENT_ERRORS
from pipeline.transforms import commits

WRITE = table_output.write
WORDS = ("--follow", "--max-bytes", "9000")


class Failing:
    """Writes, but for so many times of each table of a state."""

    def __init__(self, times: int) -> None:
        self.names: list[str] = []
        self._times = times

    def __call__(self, session: SparkSession, rows: DataFrame, path: str, kind: str) -> int:
        self.names.append(path.partition("/_state/")[2])
        if self.names[-1].endswith("/latest") and self.names.count(self.names[-1]) <= self._times:
            raise PipelineError(f"Job aborted: {TRANSIENT_ERRORS[0]}")
        return WRITE(session, rows, path, kind)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    logs = Growing(tmp_path / "data", 8)
    logs.grow(logs.seconds)
    return logs.data


@pytest.mark.long
def test_micro_batches_that_a_busy_machine_has_stopped_are_done_again(spark, tmp_path, data, monkeypatch):
    monkeypatch.setattr(transient_errors, "MAX_RETRIES", 2)
    monkeypatch.setattr(follow, "write", failing := Failing(2))
    assert run(offsets, spark, data, tmp_path / "commits", *WORDS) == 0
    assert failing.names.count("batch=1/latest") == 3
    whole = commits.history(commits.effective(tables.offsets(spark, str(data))))
    found = spark.read.parquet(f"{tmp_path}/commits/history").select(*whole.columns)
    assert sorted(map(str, found.collect())) == sorted(map(str, whole.collect()))


def test_micro_batch_that_never_gets_done_ends_the_job_and_says_why(spark, tmp_path, data, monkeypatch):
    monkeypatch.setattr(transient_errors, "MAX_RETRIES", 2)
    monkeypatch.setattr(follow, "write", failing := Failing(99))
    with pytest.raises(PipelineError, match=f"the stream has failed: {TRANSIENT_ERRORS[0]}$"):
        run(offsets, spark, data, tmp_path / "commits", *WORDS)
    assert failing.names.count("batch=0/latest") == 3


def test_job_that_ends_says_what_it_failed_for_last(spark, tmp_path, data, monkeypatch):
    def spoilt(session: SparkSession, rows: DataFrame, path: str, kind: str) -> int:
        (data / CHECKPOINT).write_text("0")
        raise PipelineError(TRANSIENT_ERRORS[0])

    monkeypatch.setattr(follow, "write", spoilt)
    with pytest.raises(PipelineError, match=r"^the stream has failed: \[PYTHON_STREAMING_DATA_SOURCE") as said:
        run(offsets, spark, data, tmp_path / "commits", *WORDS)
    assert TRANSIENT_ERRORS[0] not in str(said.value)
