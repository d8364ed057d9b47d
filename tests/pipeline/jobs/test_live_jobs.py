"""`--input kafka://HOST:PORT`: jobs on a running broker, with its own words on the command line."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from live import History, Live

from momus import Broker
from momus.client.connect_settings import SETTINGS
from pipeline import job as command
from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.jobs import audit, lag, offsets
from pipeline.jobs.registry import job_parser
from pipeline.live.live_source import open_input

SECRET = "s3same"
ANY = "kafka://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _forget():
    """A job is a process of its own; here others follow."""
    yield
    SETTINGS.clear()


def run(job: Any, spark: Any, source: str, output: Path, *words: str) -> int:
    name = job.__name__.rpartition(".")[2]
    args = job_parser(name, job).parse_args(["--input", source, "--output", str(output), *words])
    return int(job.run(spark, args))


def rows(spark: Any, path: Path, *without: str) -> list[Any]:
    return sorted((row.asDict() for row in spark.read.parquet(str(path)).drop(*without).collect()), key=repr)


@pytest.mark.timeout(600)
def test_jobs_of_a_running_broker_tell_what_its_files_tell(spark, tmp_path, capsys):
    data, copy = tmp_path / "data", tmp_path / "copy"
    with Broker(data_dir=data, config={"offsets.topic.num.partitions": 3}) as broker:
        player = Live(broker)
        history = History(7)
        history.create(player)
        for _ in range(80):
            history.step(player)
        history.end()
        for topic in history.topics:
            player.produce(topic, 1, [(b"k", b"v")] * 9)
        known = player.committed(*history.groups)
        source = f"kafka://{broker.bootstrap_servers}"
        assert run(offsets, spark, source, tmp_path / "offsets") == 0
        assert run(lag, spark, source, tmp_path / "lag", "--step", "1") == 0
        assert run(audit, spark, source, tmp_path / "audit") == 0
        player.close()
        broker.stop()
        shutil.copytree(data, copy)
    said = capsys.readouterr().out
    assert "Exactly-once held: no finding in" in said
    found = {(row["group"], row["topic"], row["partition"]): row for row in rows(spark, tmp_path / "offsets")}
    assert {key: (row["commit_offset"], row["metadata"]) for key, row in found.items()} == known
    assert len(known) > 20
    assert run(lag, spark, str(copy), tmp_path / "lag of files", "--step", "1") == 0
    assert rows(spark, tmp_path / "lag") == rows(spark, tmp_path / "lag of files")
    # No client can read the log of metadata.
    files = tables.raw(spark, str(copy), columns=("log",)).where("log != '__cluster_metadata-0'")
    counts = {row["log"]: row["count"] for row in files.groupBy("log").count().collect()}
    coverage = {row["log"]: row["records"] for row in rows(spark, tmp_path / "audit" / "coverage")}
    assert coverage == counts
    assert len(coverage) > 6


@pytest.mark.parametrize("client", ["confluent", "java"])
def test_password_reaches_the_workers_and_no_plan(spark, tmp_path, client):
    with Broker(security="sasl_ssl", users={"alice": SECRET}) as broker:
        broker.create_topic("t")
        settings = broker.client_config(client, user="alice")
        address = settings.pop("bootstrap.servers")
        path = tmp_path / "client.properties"
        path.write_text("".join(f"{key}={text}\n" for key, text in settings.items()))
        words = ["--input", f"kafka://{address}", "--config", str(path)]
        open_input(spark, job_parser("offsets", offsets).parse_args(words))
        found = tables.raw(spark, f"kafka://{address}", columns=("log", "offset"))
        broker.produce("t", b"written after the cut")
        assert found.where("log = 't-0'").count() == 0
        open_input(spark, job_parser("offsets", offsets).parse_args(words))
        found = tables.raw(spark, f"kafka://{address}", columns=("log", "offset"))
        assert found.where("log = 't-0'").count() == 1
        assert SECRET not in found._jdf.queryExecution().toString()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["archive", "--output", "out"], "the job `archive` reads files"),
        (["report", "--output", "out"], "the job `report` reads files"),
        (["compaction"], "the job `compaction` reads files"),
        (["migrate", "-b", "127.0.0.1:2"], "the job `migrate` reads files"),
        (["audit", "--follow", "--output", "out"], "--follow keeps a position in files"),
        (["lag", "--follow", "--output", "out"], "--follow keeps a position in files"),
        (["audit", "--skip-damaged"], "--skip-damaged passes over damage in files"),
        (["lag", "--ends", "data"], "--ends names a folder"),
    ],
)
def test_what_a_running_broker_cannot_have_is_refused_in_a_sentence(words, says, capsys):
    assert command.main([words[0], "--input", ANY, *words[1:]]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("kafka://", "is not kafka://HOST:PORT"),
        ("kafka://host", "is not kafka://HOST:PORT"),
        ("kafka://127.0.0.1:9092,other", "is not kafka://HOST:PORT"),
        ("kafka://127.0.0.1:9092/topic", "is not kafka://HOST:PORT"),
        (f"kafka://alice:{SECRET}@127.0.0.1:9092", "give them by -X or --config"),
    ],
)
def test_address_that_is_none_is_refused(address, says, capsys):
    assert command.main(["audit", "--input", address]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert SECRET not in error


@pytest.mark.parametrize("job", ["audit", "lag", "offsets"])
def test_settings_without_a_broker_are_refused(job, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([job, "--input", str(tmp_path), "-X", "client.id=me"])
    assert ended.value.code == 2
    assert "-X and --config say how to connect" in capsys.readouterr().err


def test_broker_that_is_not_there_is_one_line(spark, tmp_path):
    with pytest.raises(PipelineError, match=r"the broker at 127\.0\.0\.1:1: cannot reach 127.0.0.1:1"):
        run(audit, spark, ANY, tmp_path / "out")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "the broker at 127.0.0.1:1: cannot reach 127.0.0.1:1"),
        (["--config", "absent.properties"], "--config absent.properties cannot be read"),
    ],
)
def test_broker_that_cannot_be_asked_is_told_before_spark_starts(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "session", None)
    assert command.main(["audit", "--input", ANY, "--output", str(tmp_path / "out"), *words]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
