"""Spark's progress as a consumer group: what a finished micro-batch has read, and never more."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from live import PARTITIONS, Live
from pyspark.sql import SparkSession

from momus import Broker
from pipeline.errors import PipelineError
from pipeline.jobs import bridge
from pipeline.jobs.bridge import ProgressBridge, positions

TOPIC, RECORDS = "orders", 20
AT_ONCE = 7  # offsets a micro-batch


class Recorder(ProgressBridge):
    """Remembers the progress it was told of."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen: list[int] = []

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # Spark names this method
        super().onQueryProgress(event)
        self.seen.append(event.progress.batchId)


@pytest.fixture(scope="module")
def finished(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory):
    """A query that has read a topic to its end, with a bridge that listened; the broker is still there."""
    root = tmp_path_factory.mktemp("bridge")
    with Broker() as broker:
        live = Live(broker)
        live.create(TOPIC)
        producer = Producer(broker.client_config("confluent"))
        for partition in range(PARTITIONS):
            for n in range(RECORDS):
                producer.produce(TOPIC, b"%d" % n, partition=partition)
        assert producer.flush(30) == 0
        listener = Recorder(broker.bootstrap_servers, "spark-orders", {"other": "not-this"})
        spark.streams.addListener(listener)
        options = {**broker.client_config("spark"), "subscribe": TOPIC, "startingOffsets": "earliest"}
        source = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=AT_ONCE).load()
        writer = source.writeStream.format("noop").option("checkpointLocation", str(root / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        last = query.lastProgress["batchId"]
        while last not in listener.seen:  # listeners are told a moment later
            live.committed("spark-orders")
        spark.streams.removeListener(listener)
        yield SimpleNamespace(broker=broker, live=live, checkpoint=root / "checkpoint", listener=listener)
        live.close()


def test_listener_commits_what_the_finished_micro_batches_have_read(finished):
    committed = finished.live.committed("spark-orders")
    assert {where: offset for where, (offset, _) in committed.items()} == {
        ("spark-orders", TOPIC, p): RECORDS for p in range(PARTITIONS)
    }
    assert all(metadata.startswith("spark ") for _, metadata in committed.values())
    assert len(finished.listener.seen) > PARTITIONS * RECORDS / AT_ONCE / 2
    assert finished.live.committed("not-this") == {}


def arguments(finished: Any, checkpoint: Path, group: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bridge.add_arguments(parser)
    words = ["--checkpoint", str(checkpoint), "--group", group, "--bootstrap-server", finished.broker.bootstrap_servers]
    return parser.parse_args(words)


def test_job_commits_the_same_from_the_checkpoint_alone(finished, spark):
    assert bridge.run(spark, arguments(finished, finished.checkpoint, "beside")) == 0
    beside, listened = finished.live.committed("beside"), finished.live.committed("spark-orders")
    assert [offset for offset, _ in beside.values()] == [offset for offset, _ in listened.values()]


def test_job_does_not_commit_a_micro_batch_that_is_under_way(finished, spark, tmp_path):
    for folder, batch, text in (
        ("offsets", 0, {"orders": {"0": 3}}),
        ("commits", 0, {}),
        ("offsets", 1, {"orders": {"0": 9}}),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / str(batch)).write_text("v1\n{}\n" + json.dumps(text))
    assert bridge.run(spark, arguments(finished, tmp_path, "under-way")) == 0
    assert finished.live.committed("under-way") == {("under-way", "orders", 0): (3, "spark checkpoint")}


def test_job_says_in_one_sentence_that_there_is_no_checkpoint(finished, spark, tmp_path):
    with pytest.raises(PipelineError, match="has no finished micro-batch"):
        bridge.run(spark, arguments(finished, tmp_path / "nothing", "g"))


def test_positions_leave_out_sources_that_are_not_kafka():
    assert positions([None, {"logOffset": 3}, {"t": {"0": 5, "1": -2}}]) == {("t", 0, None): 5}
