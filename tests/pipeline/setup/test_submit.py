"""`momus pipeline` and `spark-submit` of what `momus pipeline bundle` writes do the same."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline import session as sessions

MOMUS = [sys.executable, "-m", "momus", "pipeline"]


def run(*command: str, folder: Path) -> list[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def committed(momus_broker) -> Path:
    """A data directory in which a group has committed on three partitions."""
    admin = AdminClient(momus_broker.client_config("confluent"))
    admin.create_topics([NewTopic("orders", 3, 1)])["orders"].result(30)
    consumer = Consumer({**momus_broker.client_config("confluent"), "group.id": "bar"})
    offsets = [TopicPartition("orders", partition, 10 * partition + 1) for partition in range(3)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    return Path(momus_broker.data_dir)


def test_job_says_the_same_however_it_was_started(committed, momus_broker, tmp_path):
    words = ["offsets", "--input", str(committed)]
    here = run(*MOMUS, *words, "--master", "local[1]", folder=sessions.ROOT)
    run(*MOMUS, "bundle", str(tmp_path), folder=sessions.ROOT)
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"]
    submit += ["--conf", "spark.log.level=ERROR", "--py-files", "momus.zip", "job.py"]
    there = run(*submit, *words, folder=tmp_path)
    found = {(row["group"], row["topic"], row["partition"]): row["commit_offset"] for row in map(json.loads, here)}
    assert found == {("bar", "orders", partition): 10 * partition + 1 for partition in range(3)}
    assert there == here


def test_bundle_holds_the_modules_that_workers_import_and_no_others(tmp_path):
    run(*MOMUS, "bundle", str(tmp_path), folder=sessions.ROOT)
    names = set(zipfile.ZipFile(tmp_path / "momus.zip").namelist())
    assert {"pipeline/source/data_source.py", "pipeline/jobs/offsets.py", "protocol/record_batch.py"} <= names
    assert {name.split("/")[0] for name in names} == {"pipeline", "protocol"}
    assert (tmp_path / "job.py").read_text() == (sessions.ROOT / "pipeline" / "job.py").read_text()


def test_connector_jars_are_named_for_spark_submit(tmp_path):
    (line,) = run(*MOMUS, "jars", folder=sessions.ROOT)
    assert [Path(path).name.rpartition("-")[0] for path in line.split(",")] == [
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
        "kafka-clients",
        "commons-pool2",
    ]
    assert all(Path(path).exists() for path in line.split(","))
