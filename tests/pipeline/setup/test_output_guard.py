"""--output never touches what a job has not made, and a job that ends early leaves the earlier result whole."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from job_kit import run
from moto.server import ThreadedMotoServer
from pyarrow import fs

from pipeline.errors import PipelineError
from pipeline.files import join_path
from pipeline.input_check import check_input
from pipeline.job import run_job
from pipeline.jobs import audit, offsets
from pipeline.jobs.registry import JOBS, parse
from pipeline.output_guard import MARKER, check_output, grown_output, marked_json, read_marker
from pipeline.replacing import replaced

GOLDEN = Path(__file__).parent.parent / "golden" / "logs"
FOLDER_JOBS = ("archive", "offsets", "lag", "audit", "compaction")


def arguments(job: str, source: Path | str, output: Path | str, *words: str):
    required = ["-b", "127.0.0.1:1"] if job == "migrate" else []
    return parse(job, ["--input", str(source), "--output", str(output), *required, *words])[1]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "data")
    return tmp_path / "data"


def test_output_that_is_holds_or_lies_within_an_input_is_refused_by_every_job(data, tmp_path):
    before = contents(data)
    (tmp_path / "link").symlink_to(data)
    for job in JOBS:
        if job == "bridge":
            continue
        for output in (
            data,
            data / "sub" / "x",
            tmp_path,
            tmp_path / "link",
            f"{data}/../data/",
            tmp_path / "link" / "x",
        ):
            with pytest.raises(PipelineError, match="--output"):
                check_output(arguments(job, data, output, "--overwrite"))
    with pytest.raises(PipelineError, match="--ends"):
        check_output(arguments("lag", GOLDEN, data / "x", "--ends", str(data)))
    assert contents(data) == before


def test_folder_beside_the_input_with_a_longer_name_is_accepted(data, tmp_path):
    check_output(arguments("offsets", data, f"{data}-offsets"))
    check_output(arguments("offsets", data, tmp_path / "new" / "deeper"))


def test_folder_or_file_that_is_not_ours_is_left_as_it_is(data, tmp_path):
    home = tmp_path / "home"
    (home / "photographs").mkdir(parents=True)
    (home / "photographs" / "1.jpg").write_bytes(b"jpg")
    (tmp_path / "notes.html").write_text("<html>mine</html>")
    before = contents(tmp_path)
    for job in FOLDER_JOBS:
        for words in ((), ("--overwrite",)):
            with pytest.raises(PipelineError, match=r"not empty|is a file"):
                check_output(arguments(job, data, home, *words))
            with pytest.raises(PipelineError, match="is a file"):
                check_output(arguments(job, data, tmp_path / "notes.html", *words))
    for job in ("report", "migrate"):
        for words in ((), ("--overwrite",)):
            with pytest.raises(PipelineError, match="was not made by"):
                check_output(arguments(job, data, tmp_path / "notes.html", *words))
            with pytest.raises(PipelineError, match="is a folder"):
                check_output(arguments(job, data, home, *words))
    assert contents(tmp_path) == before


def test_marker_of_somebody_else_does_not_make_a_folder_ours(data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for text in ("", "[]", "{}", '{"made_by": "me", "job": "offsets"}', "\xff"):
        (out / MARKER).write_text(text)
        with pytest.raises(PipelineError, match="not empty"):
            check_output(arguments("offsets", data, out, "--overwrite"))


def test_earlier_result_is_replaced_only_when_asked_and_only_by_the_same_job(data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()  # an empty folder is as good as none
    with replaced(arguments("offsets", data, out)) as folder:
        Path(folder).mkdir()
        Path(folder, "rows").write_text("1")
    assert contents(out).keys() == {"rows", MARKER}
    with pytest.raises(PipelineError, match="--overwrite"):
        check_output(arguments("offsets", data, out))
    with pytest.raises(PipelineError, match="of `offsets`, not of `lag`"):
        check_output(arguments("lag", data, out, "--overwrite"))
    with pytest.raises(PipelineError, match="of `offsets`, not of `offsets --follow`"):
        grown_output(arguments("offsets", data, out, "--follow"))
    with replaced(arguments("offsets", data, out, "--overwrite")) as folder:
        Path(folder).mkdir()
        Path(folder, "rows").write_text("2")
    assert (out / "rows").read_text() == "2"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == ["out"]


def test_folder_that_a_job_adds_to_is_marked_and_found_again(data, tmp_path):
    for words, job in ((("--follow",), "offsets"), ((), "archive")):
        out = tmp_path / job
        assert grown_output(arguments(job, data, out, *words)) == str(out)
        assert grown_output(arguments(job, data, out, *words)) == str(out)
        with pytest.raises(PipelineError, match="adds to"):
            grown_output(arguments(job, data, out, *words, "--overwrite"))
    with pytest.raises(PipelineError, match="needs --output"):
        grown_output(parse("archive", ["--input", str(data)])[1])


def test_error_while_a_result_is_written_leaves_the_earlier_one(data, tmp_path):
    out = tmp_path / "out"
    for content in ("1", "2"):
        try:
            with replaced(arguments("offsets", data, out, "--overwrite")) as folder:
                Path(folder).mkdir()
                Path(folder, "rows").write_text(content)
                if content == "2":
                    raise PipelineError("no more")
        except PipelineError:
            assert content == "2"
    assert (out / "rows").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from pipeline import replacing
from pipeline.jobs.registry import parse
args = parse("offsets", ["--input", sys.argv[1], "--output", sys.argv[2], "--overwrite"])[1]
if sys.argv[3] == "after":
    remove = replacing._remove
    replacing._remove = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with replacing.replaced(args) as folder:
    Path(folder).mkdir()
    Path(folder, "rows").write_text("new")
    if sys.argv[3] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_job_killed_at_either_side_of_the_exchange_leaves_a_whole_result(data, tmp_path):
    out = tmp_path / "out"
    for when, expected in (("never", "new"), ("before", "old"), ("after", "new")):
        if when != "never":
            (out / "rows").write_text("old")
        done = subprocess.run([sys.executable, "-c", KILLED, str(data), str(out), when], check=False)
        assert done.returncode == (0 if when == "never" else -signal.SIGKILL)
        assert (out / "rows").read_text() == expected
        assert read_marker(str(out)) == {"made_by": "momus pipeline", "job": "offsets"}


def test_file_that_says_which_job_made_it_is_replaced_when_asked(data, tmp_path):
    proof = tmp_path / "proof.json"
    proof.write_text(marked_json("migrate", {"equal": True}))
    with pytest.raises(PipelineError, match="--overwrite"):
        check_output(arguments("migrate", data, proof))
    check_output(arguments("migrate", data, proof, "--overwrite"))
    with pytest.raises(PipelineError, match="was not made by `report`"):
        check_output(arguments("report", data, proof, "--overwrite"))


def test_job_without_a_result_refuses_an_output(tmp_path):
    with pytest.raises(PipelineError, match="writes no result"):
        run_job("bridge", ["--output", str(tmp_path / "x"), "--checkpoint", str(tmp_path), "--group", "g",
                           "--bootstrap-server", "127.0.0.1:1"])  # fmt: skip  # one command


def test_input_without_a_log_is_refused_by_every_job(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd" / "orders-0").mkdir(parents=True)
    (tmp_path / "odd" / "orders-0" / "notes.log").write_text("")
    for path in (tmp_path / "empty", tmp_path / "odd", Path("/etc")):
        with pytest.raises(PipelineError, match="holds no log"):
            check_input(str(path))
        for job in ("audit", "report", "offsets"):
            with pytest.raises(PipelineError, match="holds no log"):
                run_job(job, ["--input", str(path)])
    check_input(str(GOLDEN))


def test_object_store_keeps_the_earlier_result_until_the_marker_names_the_new_one(data):
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
        buckets, _ = fs.FileSystem.from_uri(f"s3://KEY:SECRET@results?{options}&allow_bucket_creation=true")
        buckets.create_dir("results")
        out = f"s3://KEY:SECRET@results/offsets?{options}"

        def write(text: str, *words: str) -> None:
            with replaced(arguments("offsets", data, out, *words)) as folder:
                files, root = fs.FileSystem.from_uri(folder)
                with files.open_output_stream(f"{root}/rows") as stream:
                    stream.write(text.encode())
                if text == "bad":
                    raise PipelineError("no more")

        def rows() -> bytes:
            files, root = fs.FileSystem.from_uri(join_path(out, read_marker(out)["current"]))
            with files.open_input_stream(f"{root}/rows") as stream:
                return stream.read()

        write("1")
        assert rows() == b"1"
        with pytest.raises(PipelineError, match="--overwrite"):
            write("2")
        with pytest.raises(PipelineError, match="no more"):
            write("bad", "--overwrite")
        assert rows() == b"1"
        write("2", "--overwrite")
        assert rows() == b"2"
        files, root = fs.FileSystem.from_uri(out)
        assert len(files.get_file_info(fs.FileSelector(root))) == 2  # the marker and one version
    finally:
        server.stop()


def test_jobs_write_marked_results_that_a_second_run_replaces(spark, data, tmp_path):
    for words in ((), ("--overwrite",)):
        run(offsets, spark, data, tmp_path / "offsets", *words)
    assert spark.read.parquet(str(tmp_path / "offsets")).count() > 0
    with pytest.raises(PipelineError, match="--overwrite"):
        run(offsets, spark, data, tmp_path / "offsets")
    run(audit, spark, data, tmp_path / "audit")
    assert {path.name for path in (tmp_path / "audit").iterdir()} >= {"findings", "coverage", MARKER}
