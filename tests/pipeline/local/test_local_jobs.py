"""The jobs in the local engine, as processes without pyspark: what they say first, their rows, and what is Spark's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import PipelineError
from pipeline.job import main
from pipeline.local import choice
from pipeline.local.choice import choose
from pipeline.local.session import LocalSession

REPOSITORY = Path(__file__).parents[3]
WITHOUT = "import sys; sys.modules[{absent!r}] = None; sys.argv[0] = 'momus'; from momus.cli.main import main; main()"
GOLDEN = Path(__file__).parents[1] / "audit" / "kafka" / "modern"


def momus(*words: str, absent: str = "pyspark") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT.format(absent=absent), "pipeline", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=REPOSITORY)


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_offsets_are_answered_without_spark_and_the_engine_is_said():
    done = momus("offsets", "--input", str(GOLDEN))
    rows = lines(done)
    assert {row["group"] for row in rows} == {"classic", "modern", "copier", "streaming"}
    assert all(row["effective_at"].endswith("Z") and "member_id" not in row for row in rows)
    assert done.stderr == ("momus pipeline: offsets begins\nmomus pipeline: engine local (pyspark is not installed)\n")


def test_spark_gives_the_same_rows_without_a_line_of_its_own():
    done = momus("offsets", "--input", str(GOLDEN), "--engine", "spark", absent="nothing")
    assert lines(done) == lines(momus("offsets", "--input", str(GOLDEN)))
    assert done.stderr == "momus pipeline: offsets begins\nmomus pipeline: engine spark (as asked)\n"


def test_coverage_names_each_log():
    rows = lines(momus("coverage", "--input", str(GOLDEN)))
    assert {(row["log"], row["missing"]) for row in rows} == {
        ("__consumer_offsets-0", False), ("__transaction_state-0", False),
    }  # fmt: skip  # in one line each


def test_audit_writes_the_tables(tmp_path):
    done = momus("audit", "--input", str(GOLDEN), "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "transactions: 2 CompleteAbort, 5 CompleteCommit"
    assert pq.read_table(tmp_path / "out" / "transactions").num_rows == 7
    assert pq.read_table(tmp_path / "out" / "findings").num_rows == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("compaction", "--input", str(GOLDEN)), "the job compaction runs on Spark alone"),
        (("offsets", "--input", str(GOLDEN), "--format", "delta", "--output", "out"), "--format delta is Spark's"),
        (("offsets", "--input", str(GOLDEN), "--master", "local[1]"), "--master and --conf are Spark's"),
    ],
)
def test_what_only_spark_can_do_says_so(words, why):
    done = momus(*words)
    assert done.returncode == 1
    assert why in done.stderr
    assert "pip install '.[spark]'" in done.stderr


def test_local_engine_that_is_absent_says_how_to_install_it():
    done = momus("offsets", "--input", str(GOLDEN), "--engine", "local", absent="duckdb")
    assert done.returncode == 1
    assert "duckdb is not installed: in a checkout of momus, pip install '.[pipeline]'" in done.stderr


class Asked:
    """The arguments of a job."""

    def __init__(self, **words: Any) -> None:
        given = {"engine": "auto", "format": "parquet", "master": None, "conf": [], "job": "offsets", "follow": False}
        self.__dict__.update(given | {"input": str(GOLDEN)} | words)


def test_size_decides_where_both_can(monkeypatch):
    topics = choice.READS["offsets"]
    assert choose(Asked(), is_for_both=True, topics=topics).engine == "local"
    monkeypatch.setattr(choice, "MOST_BYTES", 100)
    assert choose(Asked(), is_for_both=True, topics=topics).engine == "spark"
    monkeypatch.undo()
    monkeypatch.setattr(choice, "MOST_RECORDS", 1)
    assert choose(Asked(), is_for_both=True, topics=topics).engine == "spark"
    assert choose(Asked(engine="local"), is_for_both=True, topics=topics) == ("local", "as asked")


def test_first_line_comes_before_any_folder_is_looked_at(monkeypatch, capsys):
    def looked(*_: Any) -> None:
        assert capsys.readouterr().err == "momus pipeline: offsets begins\n"
        raise PipelineError("seen")

    monkeypatch.setattr("pipeline.jobs.registry.import_module", looked)
    assert main(["offsets", "--input", str(GOLDEN)]) == 1
    assert capsys.readouterr().err == "momus pipeline: seen\n"


@pytest.mark.parametrize("count", [3, 500])
def test_given_rows_are_in_the_table_however_many(count):
    session = LocalSession()
    rows = [(f"log-{n}", None if n % 2 else n, n) for n in range(count)]
    made = session.createDataFrame(rows, "log string, offset long, number int")
    assert [tuple(row) for row in made.orderBy("number").collect()] == rows
    session.stop()


def test_rows_of_small_segments_come_joined_and_whole():
    schema = pa.schema([("n", pa.int64())])
    session = LocalSession()
    given = (pa.record_batch([pa.array([n])], schema=schema) for n in range(1000))
    taken = list(session._counted("numbers", schema, given, lambda: (0, 0)))
    assert [value for batch in taken for value in batch["n"].to_pylist()] == list(range(1000))
    assert len(taken) == 1
    session.stop()
