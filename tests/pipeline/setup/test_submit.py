"""`momus pipeline` and `spark-submit` of what `momus pipeline bundle` writes do the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline import session as sessions
from pipeline.spark_setup.java import java_home

PLAIN_EVENTS = {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
MOMUS = [sys.executable, "-m", "momus", "pipeline"]


def run(*command: str, folder: Path) -> list[str]:
    home = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "JAVA_HOME": str(java_home())}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | home, capture_output=True, text=True, timeout=300, check=False
    )
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


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    run(*MOMUS, "bundle", str(folder), folder=sessions.ROOT)
    return folder


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory) -> Path:
    """An interpreter with what is installed here, but without this checkout: its .pth file is not read."""
    program = tmp_path_factory.mktemp("bare") / "python"
    packages = Path(pyspark.__file__).parents[1]
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture(scope="module")
def submit(bundle, bare_python):
    """Runs a job of the bundle by spark-submit, where momus is not installed. Answers its lines."""
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"]
    for key in ("spark.pyspark.python", "spark.pyspark.driver.python"):
        command += ["--conf", f"{key}={bare_python}"]
    command += ["--conf", "spark.log.level=ERROR", "--py-files", "momus.zip"]
    return lambda *words, conf=(): run(*command, *conf, "job.py", *words, folder=bundle)


def test_job_says_the_same_however_it_was_started(committed, momus_broker, submit, tmp_path):
    words = ["offsets", "--input", str(committed)]
    here = run(*MOMUS, *words, "--master", "local[1]", folder=sessions.ROOT)
    given = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{tmp_path}", **PLAIN_EVENTS}
    given["spark.sql.shuffle.partitions"] = "3"
    there = submit(*words, conf=[word for key, value in given.items() for word in ("--conf", f"{key}={value}")])
    [events] = [path for path in tmp_path.iterdir() if path.is_file()]
    lines = map(json.loads, events.read_text().splitlines())
    [environment] = [each for each in lines if each["Event"] == "SparkListenerEnvironmentUpdate"]
    obeyed = environment["Spark Properties"]
    assert {key: obeyed[key] for key in given} == given
    assert (obeyed["spark.master"], obeyed["spark.app.name"]) == ("local[1]", "momus offsets")
    found = {(row["group"], row["topic"], row["partition"]): row["commit_offset"] for row in map(json.loads, here)}
    assert found == {("bar", "orders", partition): 10 * partition + 1 for partition in range(3)}
    assert there == here


def test_archive_of_the_bundle_commits_to_the_broker(committed, momus_broker, submit, tmp_path):
    server = ("--bootstrap-server", momus_broker.bootstrap_servers)
    submit("archive", "--input", str(committed), "--output", str(tmp_path / "archive"), *server)
    admin = AdminClient(momus_broker.client_config("confluent"))
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("archive")])
    found = asked["archive"].result(30).topic_partitions
    assert sum(place.offset for place in found if place.topic == "__consumer_offsets") >= 3


def test_bundle_is_enough_for_every_module_of_the_pipeline(bundle, bare_python):
    assert run(
        str(bare_python), "-c", "import importlib.util; print(importlib.util.find_spec('momus'))", folder=bundle
    ) == ["None"]
    archive = bundle / "momus.zip"
    names = zipfile.ZipFile(archive).namelist()
    assert (bundle / "job.py").read_text() == (sessions.ROOT / "pipeline" / "job.py").read_text()
    modules = [name[:-3].replace("/", ".") for name in names if name.startswith("pipeline/") and "__" not in name]
    assert len(modules) > 70
    clients = [
        "momus.client.kafka_client",
        "momus.client.wire",
        "momus.client.wire_security",
        "broker.shell.tls.key_stores",
    ]
    script = (
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        f"for name in {modules + clients}: __import__(name)\n"
        "print({sys.modules[name].__file__.startswith(sys.path[0]) for name in ('momus', 'pipeline', 'protocol')})"
    )
    assert run(str(bare_python), "-c", script, folder=bundle) == ["{True}"]
    done = subprocess.run([bare_python, "job.py", "demo"], cwd=bundle, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done


def test_connector_jars_are_named_for_spark_submit(tmp_path):
    (line,) = run(*MOMUS, "jars", folder=sessions.ROOT)
    assert [Path(path).name.rpartition("-")[0] for path in line.split(",")] == [
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
        "kafka-clients",
        "commons-pool2",
    ]
    assert all(Path(path).exists() for path in line.split(","))
