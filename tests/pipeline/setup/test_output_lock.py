"""One job at a time adds to a folder; one that was killed does not keep the next one out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from pipeline import job
from pipeline.errors import PipelineError
from pipeline.jobs.registry import parse
from pipeline.output_guard import read_marker
from pipeline.output_lock import LOCK, locked_output

GOLDEN = Path(__file__).parent.parent / "golden" / "logs"
HOLDER = """
import sys
from pipeline.jobs.registry import parse
from pipeline.output_lock import locked_output
with locked_output(parse(sys.argv[1], sys.argv[2:])[1]):
    print("held", flush=True)
    sys.stdin.read()
"""
GROWING = [("archive", ()), ("offsets", ("--follow",)), ("compaction", ("--follow",))]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "data")
    return tmp_path / "data"


@contextmanager
def holder(name: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLDER, name, *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("name", "more"), GROWING)
def test_second_job_on_a_folder_is_refused_before_spark_starts_and_goes_on_once_the_first_was_killed(
    data, tmp_path, monkeypatch, name, more
):
    started: list[str] = []

    def session(app: str, **_: object) -> None:
        started.append(app)
        raise PipelineError("Spark starts")

    monkeypatch.setattr(job, "session", session)
    words = ["--input", str(data), "--output", str(tmp_path / "out"), *more]
    with holder(name, *words) as process:
        with pytest.raises(PipelineError, match=rf"another `{name}.*` adds to it \(process {process.pid} on "):
            job.run_job(name, words)
        assert started == []
        process.kill()  # as -9 does
        process.wait()
        with pytest.raises(PipelineError, match="Spark starts"):
            job.run_job(name, words)
    with locked_output(parse(name, words)[1]):  # the job that failed has given it back
        pass


def test_lock_is_held_until_spark_has_stopped(data, tmp_path, monkeypatch):
    words = ["--input", str(data), "--output", str(tmp_path / "out"), "--follow"]
    seen: list[str] = []

    def is_free() -> str:
        try:
            with locked_output(parse("offsets", words)[1]):
                return "free"
        except PipelineError:
            return "held"

    class Spark:
        conf: dict[str, str] = {}  # noqa: RUF012  # a stand-in

        def stop(self) -> None:
            seen.append(is_free())

    Spark.conf = type("Conf", (), {"set": lambda *_: None})()
    monkeypatch.setattr(job, "session", lambda *_, **__: Spark())
    monkeypatch.setattr("pipeline.jobs.offsets.run", lambda *_: seen.append(is_free()) or 0)
    assert job.run_job("offsets", words) == 0
    assert [*seen, is_free()] == ["held", "held", "free"]


def test_job_that_replaces_its_folder_takes_no_lock(data, tmp_path):
    args = parse("offsets", ["--input", str(data), "--output", str(tmp_path / "out")])[1]
    with locked_output(args), locked_output(args):
        assert not (tmp_path / "out").exists()


def test_folder_is_marked_with_its_lock_and_stays_our_own(data, tmp_path):
    args = parse("archive", ["--input", str(data), "--output", str(tmp_path / "out")])[1]
    for _ in range(2):
        with locked_output(args):
            assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [LOCK, "_momus.json"]
    assert (read_marker(str(tmp_path / "out")) or {})["job"] == "archive"


def test_object_store_without_locks_is_told(data, capsys, monkeypatch):
    server = ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        store = fs.S3FileSystem(
            endpoint_override=f"http://{host}:{port}", region="us-east-1", allow_bucket_creation=True
        )
        store.create_dir("tables")
        output = f"s3://tables/archive?endpoint_override=http%3A%2F%2F{host}%3A{port}&region=us-east-1"
        args = parse("archive", ["--input", str(data), "--output", output])[1]
        with locked_output(args), locked_output(args):
            pass
    finally:
        server.stop()
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert told[0].startswith("momus pipeline: --output cannot be locked (s3 has no locks): make sure that no other")
