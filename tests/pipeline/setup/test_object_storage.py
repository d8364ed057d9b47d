"""Logs in an object store, here an emulator of S3: source, stream and job say what they say of the directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from pipeline import job, tables
from pipeline.errors import PipelineError
from pipeline.files import join_path, open_directory
from pipeline.jobs import offsets, registry
from pipeline.schema import VIEWS
from pipeline.source.segment_ranges import scan

GOLDEN = Path(__file__).parent.parent / "golden" / "logs"


@pytest.fixture(scope="module")
def stored() -> Iterator[str]:
    """The address of the golden logs in a bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    buckets, _ = fs.FileSystem.from_uri(f"s3://KEY:SECRET@logs?{options}&allow_bucket_creation=true")
    buckets.create_dir("logs")
    address = f"s3://KEY:SECRET@logs/broker/data?{options}"
    files, root = fs.FileSystem.from_uri(address)
    fs.copy_files(str(GOLDEN), root, source_filesystem=fs.LocalFileSystem(), destination_filesystem=files)
    yield address
    server.stop()


@pytest.mark.parametrize("view", VIEWS)
def test_rows_of_an_object_store_are_those_of_the_directory(spark, stored, view):
    frame = tables.view(spark, stored, view)

    rows = [json.loads(row[0]) for row in frame.selectExpr("to_json(struct(*))").collect()]

    there = tables.view(spark, str(GOLDEN), view)
    assert rows == [json.loads(row[0]) for row in there.selectExpr("to_json(struct(*))").collect()]
    assert len(rows) == pa.Table.from_batches(scan(str(GOLDEN), view)).num_rows > 0


def test_stream_over_an_object_store_reads_each_row_once(spark, stored, tmp_path):
    stream = spark.readStream.format("momus").options(path=stored, records="raw", maxBytesPerTrigger="4k").load()
    for _ in range(2):  # the second time there is nothing new
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "rows"))
        assert query.awaitTermination(120)

    places = [tuple(row) for row in spark.read.parquet(str(tmp_path / "rows")).select("log", "offset").collect()]

    there = [tuple(row) for row in tables.raw(spark, str(GOLDEN)).select("log", "offset").collect()]
    assert sorted(places) == sorted(there) != []


def test_job_over_an_object_store_says_what_it_says_of_the_directory(spark, stored, capsys):
    said = []
    for path in (stored, str(GOLDEN)):
        args = registry.job_parser("offsets", offsets).parse_args(["--input", path, "--history"])
        assert offsets.run(spark, args) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""


def test_address_that_cannot_be_opened_is_refused_without_its_secret():
    with pytest.raises(PipelineError, match=r"^pyarrow\.fs cannot open the address b/x: .*'foo'") as refused:
        open_directory("s3://KEY:SECRET@b/x?foo=bar")
    assert "SECRET" not in str(refused.value)
    with pytest.raises(PipelineError) as refused:
        open_directory("s3://KEY:SECRET@b:x/ y")
    assert "SECRET" not in str(refused.value)


def test_store_that_does_not_answer_is_told_in_a_sentence(monkeypatch):
    def silent(_: str) -> None:
        raise OSError("When resolving region for bucket 'b': AWS Error NETWORK_CONNECTION")

    monkeypatch.setattr(fs, "FileSystem", type("Silent", (), {"from_uri": staticmethod(silent)}))
    with pytest.raises(
        PipelineError, match=r"cannot open the address b/x: .*NETWORK_CONNECTION; AWS_ENDPOINT_URL names"
    ):
        open_directory("s3a://KEY:SECRET@b/x")


def test_address_of_a_part_keeps_the_options_at_its_end():
    assert join_path("s3://b/x/?region=r", "offsets") == "s3://b/x/offsets?region=r"
    assert join_path("/odd?name", "offsets") == "/odd?name/offsets"


def test_directory_that_is_not_there_is_said_before_spark_starts(tmp_path, capsys):
    assert job.main(["offsets", "--input", str(tmp_path / "nothing")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("momus pipeline: --input: there is no directory ")
    assert said.count("\n") == 1
