"""Every job on a standalone cluster whose Python has no momus, an executor killed at work: as in local[2]."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from moto.server import ThreadedMotoServer
from pyarrow import fs
from standalone import ENVIRONMENT, EXECUTOR_MEMORY, Cluster, bare_python, lost_tasks, running

from momus import Broker
from pipeline.job import bundle
from pipeline.jobs.registry import JOBS, parse
from pipeline.session import ROOT
from pipeline.spark_setup import jars
from pipeline.spark_setup.java import java_home

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
PARTITIONS, RECORDS, IN_TRANSACTIONS = 4, 100_000, 2_000
ATTEMPTS = 4  # to kill an executor before its task has ended
KEEP = {"group.initial.rebalance.delay.ms": 0, "log.cleaner.enable": "false"}

# What Spark needs to write to S3: of the Hadoop that PySpark 4.2.0 contains.
HADOOP_AWS = (
    jars.Jar(
        "org.apache.hadoop",
        "hadoop-aws",
        "3.5.0",
        "66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa",
    ),
    jars.Jar(
        "software.amazon.s3.analyticsaccelerator",
        "analyticsaccelerator-s3",
        "1.3.1",
        "4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e",
    ),
    jars.Jar(
        "software.amazon.awssdk",
        "bundle",
        "2.35.4",
        "db4b55f24ad1b4e70f17eb1717a4de76a8dadc5a27d764be7c44ff67b2c1c677",
    ),
)


class Logs(NamedTuple):
    """A data directory of a broker that was stopped, and the checkpoint of a query that read from it."""

    data: Path
    checkpoint: Path


def make_orders(broker: Broker) -> None:
    admin = AdminClient(broker.client_config("confluent"))  # a future ends only while its client lives
    admin.create_topics([NewTopic("orders", PARTITIONS, 1)])["orders"].result(30)


def fill(broker: Broker) -> None:
    """Records, transactions that end in both ways, and as many commits as a raw client makes in a second."""
    make_orders(broker)
    plain = Producer({**broker.client_config("confluent"), "queue.buffering.max.messages": RECORDS, "linger.ms": 5})
    for number in range(RECORDS):
        plain.produce("orders", b"value %d" % number, partition=number % PARTITIONS)
    assert plain.flush(60) == 0
    sender = Producer({**broker.client_config("confluent"), "transactional.id": "copy", "linger.ms": 5})
    consumer = Consumer({**broker.client_config("confluent"), "group.id": "copiers", "enable.auto.commit": False})
    sender.init_transactions(30)
    for number in range(6):
        sender.begin_transaction()
        for record in range(IN_TRANSACTIONS):
            sender.produce("orders", b"%d" % record, partition=record % PARTITIONS)
        place = TopicPartition("orders", number % PARTITIONS, number)
        sender.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), 30)
        if number % 3 == 2:
            sender.abort_transaction(30)
        else:
            sender.commit_transaction(30)
    consumer.close()
    load = [sys.executable, "-m", "benchmarks.load", "commit", broker.bootstrap_servers, "--seconds", "1"]
    load += ["--conns", "4", "--inflight", "8", "--partitions", "5", "--topic", "loaded", "--group", "load"]
    subprocess.run(load, cwd=ROOT, check=True, capture_output=True)


@pytest.fixture(scope="module")
def logs(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    folder = tmp_path_factory.mktemp("logs")
    with Broker(data_dir=folder / "data", config=KEEP) as broker:
        fill(broker)
        reader = spark.readStream.format("kafka").options(**broker.client_config("spark"))
        orders = reader.option("subscribe", "orders").option("startingOffsets", "earliest").load()
        writer = orders.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
        writer.start(str(folder / "copy")).awaitTermination()
    return Logs(folder / "data", folder / "checkpoint")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as made:
        yield made


class Submitted(NamedTuple):
    """What a job on the cluster has said, and what was lost meanwhile."""

    code: int
    text: str
    executors: int
    tasks: int
    executor_bytes: int


@pytest.fixture(scope="module")
def submit(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Submitted]:
    """Runs a job of the bundle by spark-submit, and kills one of its executors."""
    folder = tmp_path_factory.mktemp("bundle")
    bundle(folder)
    python = bare_python(folder)

    def run(*words: str, kill: bool = True, conf: Sequence[str] = (), **environment: str) -> Submitted:
        events = tmp_path_factory.mktemp("events")
        settings = [
            f"spark.pyspark.python={python}", f"spark.pyspark.driver.python={python}", "spark.log.level=ERROR",
            f"spark.executor.memory={EXECUTOR_MEMORY}", "spark.driver.host=127.0.0.1", "spark.ui.enabled=false",
            "spark.sql.shuffle.partitions=4", "spark.eventLog.enabled=true", f"spark.eventLog.dir=file:{events}",
            "spark.eventLog.compress=false", "spark.eventLog.rolling.enabled=false", *conf,
        ]  # fmt: skip  # several to a line
        command = [str(Path(sys.executable).with_name("spark-submit")), "--master", cluster.address]
        for pair in settings:
            command += ["--conf", pair]
        process = subprocess.Popen(
            [*command, "--py-files", "momus.zip", "job.py", *words],
            cwd=folder,
            env=os.environ | ENVIRONMENT | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        used = cluster.kill_an_executor_at_work(process) if kill else 0
        text, _ = process.communicate(timeout=600)
        return Submitted(process.returncode, text, *lost_tasks(events), used)

    return run


def submit_and_kill(submit: Callable[..., Submitted], *words: str, **options: Any) -> tuple[Submitted, int]:
    """Until an executor was killed while a task ran on it; `{}` in the words is the number of the attempt, returned."""
    for attempt in range(ATTEMPTS):
        done = submit(*(word.replace("{}", str(attempt)) for word in words), **options)
        if done.executors and done.tasks:
            sys.stdout.write(f"{words[0]}: {done.tasks} tasks lost; an executor had {done.executor_bytes >> 20} MB\n")
            return done, attempt
    raise AssertionError(f"no task was killed in {ATTEMPTS} runs: {done}")


def here(spark: Any, name: str, *words: str) -> int:
    """The job in this process, in local[2]."""
    job, args = parse(name, [name, *words][1:])
    return int(job.run(spark, args))


def table(spark: Any, path: Path) -> list[str]:
    """The rows of a table, in an order of their own."""
    return sorted(row[0] for row in spark.read.parquet(str(path)).selectExpr("to_json(struct(*))").collect())


def test_workers_have_no_momus_but_that_of_the_bundle(submit, logs):
    done = submit("offsets", "--input", str(logs.data), kill=False)
    assert done.code == 0, done.text
    python = bare_python(logs.data.parent)
    for package in ("momus", "pipeline", "protocol", "broker"):
        found = subprocess.run(
            [python, "-c", f"import {package}"], cwd=logs.data.parent, capture_output=True, text=True
        )
        assert "ModuleNotFoundError" in found.stderr


TABLES = {
    "offsets": [""],
    "lag": [""],
    "compaction": [""],
    "audit": ["coverage", "doubts", "findings", "gaps", "transactions", "undecided", "unnamed"],
}


@pytest.mark.parametrize("name", ["offsets", "lag", "compaction", "audit"])
def test_job_writes_the_tables_that_it_writes_here(spark, submit, logs, tmp_path, name):
    (tmp_path / "there").mkdir()
    words = ["--history"] if name == "offsets" else []
    done, attempt = submit_and_kill(
        submit, name, "--input", str(logs.data), "--output", f"{tmp_path}/there/{{}}", *words
    )
    assert done.code == 0, done.text
    assert here(spark, name, "--input", str(logs.data), "--output", str(tmp_path / "here"), *words) == 0
    rows = 0
    for part in TABLES[name]:
        expected = table(spark, tmp_path / "here" / part)
        assert table(spark, tmp_path / "there" / str(attempt) / part) == expected, part
        rows += len(expected)
    assert rows


def test_audit_of_a_running_broker_is_that_made_here(spark, submit, logs, tmp_path):
    (tmp_path / "there").mkdir()
    shutil.copytree(logs.data, tmp_path / "data")
    with Broker(data_dir=tmp_path / "data", config=KEEP) as broker:
        words = ["--input", f"kafka://{broker.bootstrap_servers}", "--output"]
        done, attempt = submit_and_kill(submit, "audit", *words, f"{tmp_path}/there/{{}}")
        assert done.code == 0, done.text
        assert here(spark, "audit", *words, str(tmp_path / "here")) == 0
    for part in TABLES["audit"]:
        assert table(spark, tmp_path / "there" / str(attempt) / part) == table(spark, tmp_path / "here" / part), part
    assert table(spark, tmp_path / "here" / "transactions")


def test_archive_has_each_row_once(spark, submit, logs, tmp_path):
    (tmp_path / "there").mkdir()
    words = ("--input", str(logs.data), "--topics", "*")
    done, attempt = submit_and_kill(submit, "archive", *words, "--output", f"{tmp_path}/there/{{}}")
    assert done.code == 0, done.text
    assert here(spark, "archive", *words, "--output", str(tmp_path / "here")) == 0
    for part in ("offsets", "transactions", "raw"):
        expected = table(spark, tmp_path / "here" / part)
        assert table(spark, tmp_path / "there" / str(attempt) / part) == expected != []


def test_migrate_copies_each_record_once(spark, submit, logs, tmp_path):
    (tmp_path / "there").mkdir()
    words = ["--input", str(logs.data), "--topic", "orders", "--bootstrap-server"]
    for _ in range(ATTEMPTS):
        with Broker() as target:
            done = submit("migrate", *words, target.bootstrap_servers, "--output", f"{tmp_path}/there/1")
            again = submit("migrate", *words, target.bootstrap_servers, "--output", f"{tmp_path}/there/2", kill=False)
        if done.tasks:
            break
    assert done.tasks, "no task was killed"
    assert (done.code, again.code) == (0, 0), done.text + again.text
    with Broker() as target:
        assert here(spark, "migrate", *words, target.bootstrap_servers, "--output", f"{tmp_path}/here") == 0
    proofs = [json.loads(path.read_text()) for path in (*sorted((tmp_path / "there").iterdir()), tmp_path / "here")]
    assert proofs[0]["partitions"] == proofs[1]["partitions"] == proofs[2]["partitions"]
    assert proofs[0]["groups"] == proofs[2]["groups"]
    assert all(proof["equal"] for proof in proofs)
    assert proofs[0]["records"] == RECORDS + 4 * IN_TRANSACTIONS


def test_report_has_the_figures_that_it_has_here(spark, submit, logs, tmp_path):
    (tmp_path / "there").mkdir()
    done, attempt = submit_and_kill(
        submit, "report", "--input", str(logs.data), "--output", f"{tmp_path}/there/{{}}.html"
    )
    assert done.code == 0, done.text
    assert here(spark, "report", "--input", str(logs.data), "--output", str(tmp_path / "here.html")) == 0
    figures = []
    for page in (tmp_path / "there" / f"{attempt}.html", tmp_path / "here.html"):
        found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page.read_text(), re.DOTALL)
        assert found is not None
        figures.append({key: value for key, value in json.loads(found[1]).items() if key not in ("made", "seconds")})
    assert figures[0] == figures[1]


def test_bridge_commits_the_position_of_a_query(submit, logs):
    """It reads a checkpoint on the driver and runs no task: there is no executor to kill at work."""
    with Broker() as broker:
        make_orders(broker)
        words = (
            "--checkpoint",
            str(logs.checkpoint),
            "--group",
            "spark",
            "--bootstrap-server",
            broker.bootstrap_servers,
        )
        done = submit("bridge", *words, kill=False)
        assert done.code == 0, done.text
        consumer = Consumer({**broker.client_config("confluent"), "group.id": "spark"})
        found = consumer.committed([TopicPartition("orders", index) for index in range(PARTITIONS)], timeout=30)
        consumer.close()
    assert all(each.offset >= RECORDS // PARTITIONS for each in found)


@pytest.fixture
def store() -> Iterator[tuple[str, str]]:
    """Host and port of an emulator of S3, and the options of a pyarrow address there."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    for name in ("logs", "tables"):
        buckets, _ = fs.FileSystem.from_uri(f"s3://KEY:SECRET@{name}?{options}&allow_bucket_creation=true")
        buckets.create_dir(name)
    yield f"{host}:{port}", options
    server.stop()


def test_tables_go_from_an_object_store_to_an_object_store(spark, submit, logs, tmp_path, store):
    """Read by pyarrow in the workers; written by Hadoop's jars, 690 MB of them."""
    host, options = store
    source, root = fs.FileSystem.from_uri(address := f"s3://KEY:SECRET@logs/data?{options}")
    fs.copy_files(str(logs.data), root, source_filesystem=fs.LocalFileSystem(), destination_filesystem=source)
    paths = ",".join(map(str, jars.fetch(HADOOP_AWS, java_home())))
    s3a = {"endpoint": f"http://{host}", "path.style.access": "true", "access.key": "KEY", "secret.key": "SECRET"}
    conf = (f"spark.jars={paths}", *(f"spark.hadoop.fs.s3a.{key}={value}" for key, value in s3a.items()))
    amazon = {"AWS_ENDPOINT_URL": f"http://{host}", "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET"}
    words = ("offsets", "--history", "--input", address)
    done, attempt = submit_and_kill(submit, *words, "--output", "s3a://tables/{}", conf=conf, **amazon)
    assert done.code == 0, done.text
    tables, root = fs.FileSystem.from_uri(f"s3://KEY:SECRET@tables/{attempt}?{options}")
    fs.copy_files(root, str(tmp_path / "there"), source_filesystem=tables, destination_filesystem=fs.LocalFileSystem())
    newest = max((tmp_path / "there").rglob("*.parquet"), key=lambda path: len(path.parts)).parent
    assert here(spark, "offsets", "--history", "--input", str(logs.data), "--output", str(tmp_path / "here")) == 0
    assert table(spark, newest) == table(spark, tmp_path / "here") != []


def test_no_job_is_left_out():
    assert set(JOBS) == {*TABLES, "archive", "migrate", "report", "bridge"}
