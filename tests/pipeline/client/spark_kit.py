"""What Spark's tests as a client share: records put there by librdkafka, and Spark's reader and writer for a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, Row, SparkSession

from momus import Broker

LIMIT_S = 30
# A consumer that asks for 500 records at a time asks for two log ends each time as well. The one that is done
# waits for the fetch it sent ahead.
OPTIONS = {"kafka.max.poll.records": "10000", "kafka.fetch.max.wait.ms": "50", "startingOffsets": "earliest"}


def make_topic(broker: Broker, name: str, partitions: int = 1) -> None:
    admin = AdminClient(broker.client_config("confluent"))
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(LIMIT_S)


def send(broker: Broker, topic: str, values: Iterable[bytes], partition: int = 0, start_ms: int = 0) -> None:
    """One record a value; with start_ms, that and one millisecond more each."""
    producer = Producer(broker.client_config("confluent") | {"linger.ms": 0})
    for number, value in enumerate(values):
        stamp = {"timestamp": start_ms + number} if start_ms else {}
        producer.produce(topic, value, key=value, partition=partition, **stamp)
    assert producer.flush(LIMIT_S) == 0


def spark_options(broker: Broker, options: Mapping[str, Any]) -> dict[str, str]:
    return {**OPTIONS, **broker.client_config("spark"), **{key: str(value) for key, value in options.items()}}


def read(spark: SparkSession, broker: Broker, **options: Any) -> DataFrame:
    return spark.read.format("kafka").options(**spark_options(broker, options)).load()


def stream(spark: SparkSession, broker: Broker, **options: Any) -> DataFrame:
    return spark.readStream.format("kafka").options(**spark_options(broker, options)).load()


def values(frame: DataFrame) -> list[bytes]:
    return sorted(bytes(row.value) for row in frame.select("value").collect())


def drain(frame: DataFrame, output: Path, checkpoint: Path) -> int:
    """Append all that is there now to Parquet; returns how many batches that took."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(str(output))
    assert query.awaitTermination(120)
    return len(query.recentProgress)


def rows(frame: DataFrame) -> list[Row]:
    return frame.orderBy("topic", "partition", "offset").collect()
