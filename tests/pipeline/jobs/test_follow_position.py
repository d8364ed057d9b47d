"""The position of `--follow`: a stop right after it changes nothing; an earlier form is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from growing_logs import Growing
from job_kit import run
from pyspark.sql import SparkSession

from pipeline.errors import PipelineError
from pipeline.jobs import compaction, compaction_follow, lag, offsets
from pipeline.source.data_source import MomusStreamReader
from pipeline.source.plan_file import Plan, PlanFile, read_plan, write_plan
from pipeline.source.read_options import ReadOptions
from pipeline.streaming import follow, position_table
from pipeline.streaming.position_table import DATA_DIRECTORY, PositionTable, read_position

LOGS = {"offsets": [DATA_DIRECTORY], "raw": [DATA_DIRECTORY]}
EARLIER = "an earlier version of momus began it"


class StopError(Exception):
    """What a kill is to the steps after it."""


class Stops:
    """Stops a job at the n-th of its steps, before it or right after it; without n, it counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.at, self.is_after = -1, False
        for module, name, place in (
            (follow, "write_part", 2),
            (follow, "write", 2),
            (follow, "_remove", 0),
            (position_table, "write_json", 0),
        ):
            monkeypatch.setattr(module, name, self._step(getattr(module, name), place))

    def _step(self, does: Any, place: int) -> Any:
        def step(*args: Any) -> Any:
            self.steps.append("/".join(str(args[place]).split("/")[-3:]))
            is_last = len(self.steps) - 1 == self.at
            if is_last and not self.is_after:
                raise StopError
            found = does(*args)
            if is_last:
                raise StopError
            return found

        return step


def rows_of(spark: SparkSession, output: Path) -> list[str]:
    rows = spark.read.parquet(f"{output}/history").collect()  # with the number of each row's micro-batch
    assert len(rows) > 50
    return sorted(map(str, rows))


def states(output: Path) -> list[str]:
    return [path.name for path in (output / "_state").iterdir()]


@pytest.mark.long  # test_lag_follow.py and test_delta.py stop a job before the position is kept
def test_job_stopped_right_after_its_position_adds_up_to_what_one_that_was_not_says(spark, tmp_path, monkeypatch):
    data, logs = tmp_path / "data", Growing(tmp_path / "data", 8)
    logs.grow(logs.seconds / 2)
    assert run(offsets, spark, data, tmp_path / "begun", "--follow") == 0
    logs.grow(logs.seconds)
    shutil.copytree(tmp_path / "begun", tmp_path / "whole")
    stops = Stops(monkeypatch)
    assert run(offsets, spark, data, tmp_path / "whole", "--follow") == 0
    steps, expected = stops.steps, rows_of(spark, tmp_path / "whole")
    assert states(tmp_path / "whole") == ["batch=1"]
    [position_at] = [n for n, step in enumerate(steps) if step.endswith("/_position.json")]
    for at, is_after in [(position_at, True)]:
        output = tmp_path / f"stopped-{at}-{is_after}"
        shutil.copytree(tmp_path / "begun", output)
        stops.steps, stops.at, stops.is_after = [], at, is_after
        with pytest.raises(PipelineError, match="the stream has failed"):
            run(offsets, spark, data, output, "--follow")
        stops.at = -1
        assert run(offsets, spark, data, output, "--follow") == 0
        assert rows_of(spark, output) == expected, steps[at]
        assert set(states(output)) - {"batch=0"} == {"batch=1"}  # the next micro-batch removes what a kill left
        position = read_position(str(output))
        assert position is not None
        assert position.batch == 1


def test_run_that_has_nothing_new_adds_no_micro_batch(spark, tmp_path):
    data, output = tmp_path / "data", tmp_path / "commits"
    Growing(data, 8).grow(9)
    for _ in range(2):
        assert run(offsets, spark, data, output, "--follow") == 0
        assert states(output) == ["batch=0"]


def begun(output: Path, job: str, folder: str) -> Path:
    (output / folder).mkdir(parents=True)
    (output / "_momus.json").write_text(json.dumps({"made_by": "momus pipeline", "job": f"{job} --follow"}))
    return output


def test_folder_of_an_earlier_form_is_refused(spark, tmp_path):
    data = tmp_path / "data"
    Growing(data, 8).grow(9)
    for job, name in ((offsets, "offsets"), (lag, "lag")):
        output = begun(tmp_path / name, name, "_checkpoint")
        for text, said in (
            (None, EARLIER),
            ('{"version": 0}', "another version of momus"),
            ("{", "is damaged"),
            ('{"version": 1, "batch": 0}', "is damaged"),
        ):
            if text is not None:
                (output / "_position.json").write_text(text)
            with pytest.raises(PipelineError, match=said):
                run(job, spark, data, output, "--follow")
    output = begun(tmp_path / "compaction", "compaction", "_state/round=0/records/_delta_log")
    (output / "_state" / "ledger.json").write_text(json.dumps({"round": 0, "segments": []}))
    with pytest.raises(PipelineError, match="kept the state in Delta"):
        run(compaction, spark, data, output, "--follow", "--format", "delta")


# ------------------------------------------------------------ the files alone


def table(output: Path) -> PositionTable:
    return PositionTable(str(output), LOGS)


def test_micro_batch_that_was_planned_and_not_finished_is_planned_again_and_others_are_not(tmp_path):
    made = table(tmp_path)
    made.prepare()
    assert made.number(0) == 0
    assert made.planned() == made.position.ends == {"offsets": {}, "raw": {}}
    made.finish(0, {"offsets": {"a-0": 3}, "raw": {}})
    made.prepare()
    source = PlanFile(made.plan_path("offsets"))
    assert source.start == {"a-0": 3}
    assert source.repeated() is None
    source.keep({"a-0": 3}, {"a-0": 3})
    assert made.number(0) is None  # nothing is new
    source.keep({"a-0": 3}, {"a-0": 7})
    again = table(tmp_path)
    assert again.planned() == {"offsets": {"a-0": 7}, "raw": {}}
    again.prepare()
    assert again.number(0) == 1
    source, other = (PlanFile(again.plan_path(view)) for view in ("offsets", "raw"))
    assert (source.repeated(), other.repeated()) == ({"a-0": 7}, {})
    assert (source.repeated(), other.repeated()) == (None, None)  # once
    source.keep({"a-0": 7}, {"a-0": 9})
    assert again.planned() == {"offsets": {"a-0": 3}, "raw": {}}  # a plan from elsewhere is none
    again.finish(1, {"offsets": {"a-0": 7}, "raw": {}})
    assert again.planned() == {"offsets": {"a-0": 9}, "raw": {}}
    assert table(tmp_path).position == again.position


def test_source_plans_what_the_file_says_and_then_what_is_there(tmp_path):
    logs = Growing(tmp_path / "data", 8)
    logs.grow(logs.seconds)
    path = str(tmp_path / "plan.json")
    options = {"path": str(logs.data), "records": "offsets", "plan": path}
    start, end = {"__consumer_offsets-0": 2}, {"__consumer_offsets-0": 5}
    write_plan(path, Plan(start, end, is_repeated=True))
    reader = MomusStreamReader(ReadOptions(options))
    limit = reader.getDefaultReadLimit()
    assert reader.initialOffset() == start
    assert reader.latestOffset(start, limit) == end
    found = reader.latestOffset(end, limit)
    assert min(found.values()) > 5
    assert read_plan(path) == Plan(end, found)
    assert reader.latestOffset(found, limit) == found
    assert read_plan(path) == Plan(end, found)


def test_position_of_other_tables_or_without_sparks_own_part_is_refused(tmp_path):
    archived = {"offsets": ["offsets"]}
    made = PositionTable(str(tmp_path), archived)
    assert not made.needs_checkpoint
    assert [made.number(each) for each in (0, 1)] == [0, 1]
    made.finish(0, {})
    assert made.needs_checkpoint
    assert [made.number(each) for each in (0, 1)] == [None, 1]  # Spark repeats what it has not seen to end
    with pytest.raises(PipelineError, match="_checkpoint is gone"):
        PositionTable(str(tmp_path), archived)
    (tmp_path / "_checkpoint").mkdir()
    assert PositionTable(str(tmp_path), archived).position == made.position
    for other in (LOGS, {"offsets": ["offsets", "raw"]}):
        with pytest.raises(PipelineError, match="now has other tables"):
            PositionTable(str(tmp_path), other)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"start": {}, "end": {}}', '{"start": {}, "end": {}, "more": 1}'])
def test_damaged_plan_is_told_by_its_path(tmp_path, content):
    path = tmp_path / "_plan" / "offsets.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(PipelineError, match=r"_plan/offsets\.json is damaged: restore it from a copy, or use another"):
        read_plan(str(path))


def test_damaged_ledger_of_compaction_is_told_by_its_path(tmp_path):
    path = tmp_path / "_state" / "ledger.json"
    path.parent.mkdir()
    path.write_text('{"round": 3, "segm')
    rounds = compaction_follow.Rounds.__new__(compaction_follow.Rounds)  # without a session
    rounds._ledger = str(path)
    with pytest.raises(PipelineError, match=r"_state/ledger\.json is damaged: restore it from a copy, or use another"):
        rounds._load()
