"""The archive's position is what Spark reports of a finished micro-batch; what was lost beside it is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from growing_logs import Growing
from job_kit import parsed, run
from pyspark.errors import StreamingQueryException

from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.files import read_json, write_json
from pipeline.jobs import archive
from pipeline.jobs.archive import ArchivedView
from pipeline.source.read_options import ReadOptions
from pipeline.source.stream_planner import StreamPlanner


@pytest.fixture
def logs(tmp_path: Path) -> Growing:
    made = Growing(tmp_path / "data", 8)
    made.grow(made.seconds / 2)
    return made


def ends(logs: Growing) -> dict[str, int]:
    return StreamPlanner(ReadOptions({"path": str(logs.data), "records": "offsets"})).log_ends()


def test_position_is_that_of_finished_micro_batches_and_is_known_again_when_nothing_is_new(spark, logs, tmp_path):
    output, positions = tmp_path / "archive", []

    def view() -> ArchivedView:
        return ArchivedView(spark, parsed(archive, logs.data, output), "offsets", None)

    for _ in range(2):
        made = view()
        assert made.poll() == {}
        made.start().awaitTermination()
        positions.append(made.poll())
        assert positions[-1] == ends(logs)
        made.check()
    logs.grow(logs.seconds)
    made = view()
    in_the_way = output / "offsets" / "log=__consumer_offsets-0"
    in_the_way.rename(tmp_path / "aside")
    in_the_way.write_text("")
    with pytest.raises(StreamingQueryException):
        made.start().awaitTermination()
    assert made.poll() in ({}, positions[0])  # the micro-batch has failed
    assert positions[0] != ends(logs)


def test_where_the_archive_begins_is_noted_though_a_kill_came_before_the_note(spark, logs, tmp_path):
    output = tmp_path / "archive"
    assert run(archive, spark, logs.data, output) == 0
    began = tables.starts_by_key(str(output), "offsets")
    assert began == ends(logs)
    (output / tables.ARCHIVE_STARTS / "offsets.json").unlink()
    logs.grow(logs.seconds)
    assert run(archive, spark, logs.data, output) == 0
    assert tables.starts_by_key(str(output), "offsets") == began != ends(logs)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_table_or_position_that_is_gone_is_refused(spark, logs, tmp_path, kind):
    output, words = tmp_path / "archive", ("--topics", "t*", "--format", kind)
    assert run(archive, spark, logs.data, output, *words) == 0
    for gone in (output / "raw", output / "_checkpoint" / "raw"):
        gone.rename(tmp_path / "aside")
        with pytest.raises(PipelineError, match=rf"{gone} is gone, .* restore it from a copy"):
            run(archive, spark, logs.data, output, *words)
        assert not gone.exists()
        (tmp_path / "aside").rename(gone)
    assert run(archive, spark, logs.data, output, *words) == 0
    marker = read_json(f"{output}/_momus.json")
    assert marker.pop("format") == kind
    other = {"parquet": "delta", "delta": "parquet"}[kind]
    with pytest.raises(PipelineError, match=f"was begun with --format {kind}"):
        run(archive, spark, logs.data, output, "--format", other)
    write_json(f"{output}/_momus.json", marker)  # of a folder that an earlier version has marked
    if kind == "delta":
        with pytest.raises(PipelineError, match="was begun with --format delta"):
            run(archive, spark, logs.data, output, "--format", other)
    shutil.rmtree(output)
