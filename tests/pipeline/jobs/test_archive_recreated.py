"""A topic that is deleted and created again while it is archived: no row is lost, and the two are told apart."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from job_kit import parsed, run
from pyspark.sql import DataFrame, SparkSession
from test_archive import same

from momus import Broker
from momus.client.kafka_client import Client
from pipeline import tables
from pipeline.group_offsets import GroupOffsets
from pipeline.jobs import archive, compaction
from pipeline.jobs.archive import ArchivedView, PositionCommitter

CONFIG = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "data", config=CONFIG) as broker:
        yield broker


def produce(broker: Broker, count: int, text: str) -> None:
    producer = Producer(broker.client_config("confluent"))
    for n in range(count):
        producer.produce("t", f"{text} {n}", partition=0)
        if n % 5 == 4:
            producer.flush(30)
    assert producer.flush(30) == 0


def topic_id(broker: Broker) -> str:
    text = (Path(broker.data_dir) / "t-0" / "partition.metadata").read_text()
    return text.split("topic_id: ")[1].strip()


def made_again(broker: Broker, count: int) -> str:
    admin = AdminClient(broker.client_config("confluent"))
    admin.delete_topics(["t"])["t"].result(30)
    broker.create_topic("t")
    produce(broker, count, "new")
    return topic_id(broker)


def stored(spark: SparkSession, output: Path) -> dict[str, int]:
    """Topic id -> rows in the archive's table."""
    rows = tables.archived(spark, str(output), "raw").groupBy("topic_id").count().collect()
    return {row["topic_id"]: row["count"] for row in rows}


def values(rows: DataFrame) -> list[str]:
    return [bytes(row["value"]).decode() for row in rows.orderBy("offset").collect()]


def test_topic_created_again_between_runs_is_archived_whole_beside_the_old_one(spark, broker, tmp_path):
    count = 25
    data, output = tmp_path / "data", tmp_path / "archive"
    produce(broker, 10, "old")
    old = topic_id(broker)
    assert run(archive, spark, data, output, "--topics", "t") == 0
    new = made_again(broker, count)
    assert run(archive, spark, data, output, "--topics", "t") == 0
    assert stored(spark, output) == {old: 10, new: count}
    # Jobs read what the data directory shows; what was archived of the old topic stays in the table.
    assert values(tables.raw(spark, str(output), "t")) == [f"new {n}" for n in range(count)]
    assert same(tables.raw(spark, str(data), "t"), tables.raw(spark, str(output), "t"))
    assert tables.coverage(spark, str(output), "raw").where("missing").isEmpty()
    kept = tables.archived(spark, str(output), "raw").where(f"topic_id = '{old}'")
    assert values(kept) == [f"old {n}" for n in range(10)]
    assert set(tables.starts_by_key(str(output), "raw")) == {f"t-0@{old}", f"t-0@{new}"}


@contextmanager
def running(spark: SparkSession, data: Path, output: Path) -> Iterator[ArchivedView]:
    view = ArchivedView(spark, parsed(archive, data, output, "--topics", "t", "--every", "0.1"), "raw", "t")
    query = view.start()
    try:
        yield view
    finally:
        query.stop()


def test_topic_created_again_between_two_batches_of_a_running_stream_is_read_and_committed(spark, broker, tmp_path):
    data, output = tmp_path / "data", tmp_path / "archive"
    committer = PositionCommitter(GroupOffsets(broker.bootstrap_servers, "archive"))

    def committed() -> list[tuple[str, int]]:
        with Client(broker.bootstrap_servers) as client:
            return [(row["topic"], row["offset"]) for row in client.committed_offsets("archive")]

    produce(broker, 10, "old")
    old = topic_id(broker)
    with running(spark, data, output) as view:
        [query] = spark.streams.active
        query.processAllAvailable()
        committer.update(view.poll())
        assert committed() == [("t", 10)]
        new = made_again(broker, 10)  # as long as the old one: nothing but the id tells
        query.processAllAvailable()
        assert view.poll() == {f"t-0@{new}": 10}
        committer.update(view.poll())
        assert committed() == [("t", 10)]
        view.check()
    assert stored(spark, output) == {old: 10, new: 10}


def test_position_of_a_topic_that_is_gone_is_refused_for_the_new_one(broker, capsys):
    produce(broker, 10, "old")
    old, new = topic_id(broker), made_again(broker, 3)
    group = GroupOffsets(broker.bootstrap_servers, "archive")
    assert group.commit({("t", 0, old): 10}) == 0
    assert "group archive: t-0 refused: UNKNOWN_TOPIC_ID" in capsys.readouterr().err
    assert group.commit({("t", 0, new): 3}) == 1
    with Client(broker.bootstrap_servers) as client:
        assert [row["offset"] for row in client.committed_offsets("archive")] == [3]


def test_archive_from_before_topic_ids_goes_on_where_it_stopped(spark, broker, tmp_path):
    data, output = tmp_path / "data", tmp_path / "archive"
    produce(broker, 10, "old")
    with without_ids(data):
        assert run(archive, spark, data, output, "--topics", "t") == 0
    (output / "_topics.json").unlink()
    produce(broker, 5, "more")
    assert run(archive, spark, data, output, "--topics", "t") == 0
    assert stored(spark, output) == {None: 10, topic_id(broker): 5}
    expected = [*(f"old {n}" for n in range(10)), *(f"more {n}" for n in range(5))]
    assert values(tables.raw(spark, str(output), "t")) == expected
    assert tables.archive_start_offsets(str(output), "raw") == {"t-0": 10}
    new = made_again(broker, 4)
    assert run(archive, spark, data, output, "--topics", "t") == 0
    assert stored(spark, output)[new] == 4
    assert values(tables.raw(spark, str(output), "t")) == [f"new {n}" for n in range(4)]


@contextmanager
def without_ids(data: Path) -> Iterator[None]:
    """The folders as a broker before Kafka 2.8 leaves them."""
    kept = {path: path.read_text() for path in data.glob("*/partition.metadata")}
    for path in kept:
        path.unlink()
    try:
        yield
    finally:
        for path, text in kept.items():
            path.write_text(text)


@pytest.mark.long  # test_changed_segments.py has the same without Spark
def test_followed_compaction_counts_a_topic_that_was_created_again_as_a_new_one(spark, broker, tmp_path):
    data, output = tmp_path / "data", tmp_path / "segments"
    words = ["--topics", "t"]
    produce(broker, 10, "old")
    assert run(compaction, spark, data, output, *words, "--follow") == 0
    made_again(broker, 25)  # in batches of the same sizes: a batch begins where the old log ended
    assert run(compaction, spark, data, output, *words, "--follow") == 0
    assert run(compaction, spark, data, tmp_path / "whole", *words) == 0
    followed, whole = spark.read.parquet(f"{output}/segments"), spark.read.parquet(str(tmp_path / "whole"))
    assert same(followed, whole.select(*followed.columns))
    assert not followed.isEmpty()


def test_topic_of_apache_kafka_made_again_is_archived_whole(spark, tmp_path):
    """The directories are those of one Apache Kafka 4.3.1; tests/e2e/make_kafka_audit_logs.py has made them."""
    golden = Path(__file__).parents[1] / "audit" / "kafka"
    data, output = tmp_path / "data", tmp_path / "archive"
    for name in ("recreated_1", "recreated_2"):
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(golden / name, data)
        assert run(archive, spark, data, output, "--topics", "orders") == 0
    assert sorted(stored(spark, output).values()) == [10, 25]
    assert values(tables.raw(spark, str(output), "orders")) == [f"25: {n}" for n in range(25)]
