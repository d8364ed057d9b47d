"""The pipeline's command line where Spark is not installed, and before it starts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.job import EXTRA_ABSENT, one_line
from pipeline.jobs.registry import JOBS

REPOSITORY = Path(__file__).parents[3]
ABSENT = "sys.modules['pyspark'] = sys.modules['duckdb'] = None"
WITHOUT_EXTRA = f"import sys; {ABSENT}; sys.argv[0] = 'momus'; from momus.cli.main import main; main()"


def momus(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_EXTRA, "pipeline", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=REPOSITORY)


@pytest.mark.heavy
def test_absent_extra_is_said_in_one_sentence():
    done = momus("offsets", "--input", "data")
    assert done.returncode == 1
    hint = re.escape(f"momus pipeline: {EXTRA_ABSENT}")
    assert re.fullmatch(hint + r" \([a-z, ]*duckdb or pyspark not found\)\n", done.stderr), done.stderr


@pytest.mark.heavy
@pytest.mark.parametrize("words", [["--help"], ["audit", "--help"]])
def test_help_needs_no_extra(words):
    done = momus(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in JOBS)


@pytest.mark.heavy
def test_job_that_is_none_is_bad_usage_and_the_jobs_are_named():
    done = momus("audits")
    assert done.returncode == 2
    assert "no job 'audits': one of archive, offsets" in done.stderr


@pytest.mark.heavy
def test_no_job_at_all_is_bad_usage():
    done = momus()
    assert done.returncode == 2
    assert done.stdout.startswith("usage: momus pipeline JOB")


def test_error_of_spark_is_one_line():
    trace = (
        "An error occurred while calling o81.showString.\n: org.apache.spark.SparkException: Job aborted\n\tat x\n"
        "pipeline.decode.batches.CorruptSegmentError: t-0, segment 0: a batch with a wrong CRC at position 61\n\tat y\n"
    )
    assert one_line(Exception(trace)).startswith(
        "t-0, segment 0: a batch with a wrong CRC at position 61. --skip-damaged"
    )
    assert one_line(Exception("\nA\nB")) == "A (-l debug shows all of it)"
    assert one_line(ValueError()) == "ValueError (-l debug shows all of it)"
