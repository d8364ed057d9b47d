"""Tables of Delta Lake where Parquet is the default: an archive, what a job reads of it, and what a job adds to."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import job_kit
import pytest
from pyspark.sql import SparkSession
from test_archive import same

from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.jobs import archive
from pipeline.jobs import offsets as offsets_job
from pipeline.streaming.position_table import PositionTable
from pipeline.transforms import commits

GOLDEN = Path(__file__).parent.parent / "golden" / "logs"


class Growing:
    """A data directory that gets the golden logs in two steps."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._logs = sorted(GOLDEN.iterdir())
        self._copy(self._logs[::2])

    def grow(self) -> None:
        self._copy(self._logs[1::2])

    def _copy(self, logs: list[Path]) -> None:
        for log in logs:
            shutil.copytree(log, self.data / log.name)


@pytest.fixture
def logs(tmp_path: Path) -> Growing:
    return Growing(tmp_path / "data")


def run(job: ModuleType, spark: SparkSession, source: Path, output: Path, *words: str) -> None:
    assert job_kit.run(job, spark, source, output, "--format", "delta", *words) == 0


def stopped(*_: Any) -> None:
    raise OSError("stopped")


def test_archive_in_delta_holds_what_the_logs_hold_and_jobs_read_it(spark, logs, tmp_path):
    output = tmp_path / "archive"
    run(archive, spark, logs.data, output)
    logs.grow()
    run(archive, spark, logs.data, output)

    assert tables.is_delta(f"{output}/offsets")
    for view in (tables.offsets, tables.transactions):
        assert same(view(spark, str(logs.data)), view(spark, str(output)))
    run(offsets_job, spark, output, tmp_path / "offsets", "--history")
    whole = commits.history(commits.effective(tables.offsets(spark, str(logs.data))))
    assert same(spark.read.format("delta").load(str(tmp_path / "offsets")), whole)
    assert not whole.isEmpty()


@pytest.mark.long
def test_history_followed_into_delta_has_every_row_once_though_a_micro_batch_is_repeated(
    spark, logs, tmp_path, monkeypatch
):
    output = tmp_path / "history"
    run(offsets_job, spark, logs.data, output, "--follow")
    logs.grow()
    with monkeypatch.context() as patched:
        patched.setattr(PositionTable, "finish", stopped)
        with pytest.raises(PipelineError, match="the stream has failed: stopped"):
            run(offsets_job, spark, logs.data, output, "--follow")
    twice = spark.read.format("delta").load(f"{output}/history")
    run(offsets_job, spark, logs.data, output, "--follow")
    assert same(twice, spark.read.format("delta").load(f"{output}/history"))
    assert not list(output.glob("_state/*/*/_delta_log"))

    found = spark.read.format("delta").load(f"{output}/history").drop("batch")

    whole = commits.history(commits.effective(tables.offsets(spark, str(logs.data))))
    assert same(found, whole.select(*found.columns))
    assert found.count() == whole.count() > 0
