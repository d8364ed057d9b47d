"""Structured Streaming reads from the broker and writes to it, over restarts of the query and of the broker."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from spark_kit import LIMIT_S, drain, make_topic, read, send, spark_options, stream, values

from momus import Broker


def numbered(stage: str, count: int) -> list[bytes]:
    return [b"%s-%04d" % (stage.encode(), number) for number in range(count)]


def test_stream_into_parquet_goes_on_from_its_checkpoint(spark, broker, topic, tmp_path):
    make_topic(broker, topic, 2)
    source = stream(spark, broker, subscribe=topic).select("partition", "offset", "value")
    expected = []
    for stage in ("first", "second", "third"):
        for partition in range(2):
            send(broker, topic, numbered(f"{stage}-{partition}", 40), partition)
            expected += numbered(f"{stage}-{partition}", 40)
        drain(source, tmp_path / "out", tmp_path / "checkpoint")
        assert values(spark.read.parquet(str(tmp_path / "out"))) == sorted(expected)


def test_stream_goes_on_after_the_broker_was_killed_under_it(spark, topic, tmp_path):
    with Broker() as broker:
        make_topic(broker, topic)
        source = stream(spark, broker, subscribe=topic).select("value")
        writer = source.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(processingTime="200 milliseconds").start(str(tmp_path / "out"))
        try:
            send(broker, topic, numbered("before", 100))
            query.processAllAvailable()
            broker.kill()
            broker.start()
            send(broker, topic, numbered("after", 100))
            query.processAllAvailable()
        finally:
            query.stop()
        found = values(spark.read.parquet(str(tmp_path / "out")))
        assert found == sorted(numbered("before", 100) + numbered("after", 100))


def test_stream_takes_no_more_offsets_a_batch_than_it_was_told(spark, broker, topic, tmp_path):
    make_topic(broker, topic)
    send(broker, topic, numbered("r", 100))
    source = stream(spark, broker, subscribe=topic, maxOffsetsPerTrigger=30).select("value")
    batches = drain(source, tmp_path / "out", tmp_path / "checkpoint")
    assert batches >= 4
    assert values(spark.read.parquet(str(tmp_path / "out"))) == numbered("r", 100)


def test_stream_into_kafka_carries_every_record_over(spark, broker, topic, tmp_path):
    target = f"{topic}-copy"
    for name in (topic, target):
        make_topic(broker, name, 2)
    source = stream(spark, broker, subscribe=topic).select("key", "value", "partition")
    options = spark_options(broker, {"topic": target, "checkpointLocation": tmp_path / "checkpoint"})
    for stage in ("first", "second"):
        for partition in range(2):
            send(broker, topic, numbered(f"{stage}-{partition}", 50), partition)
        query = source.writeStream.format("kafka").options(**options).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
    columns = ("partition", "offset", "key", "value")
    copied = read(spark, broker, subscribe=target).select(*columns)
    assert copied.count() == 200
    assert copied.exceptAll(read(spark, broker, subscribe=topic).select(*columns)).count() == 0


def test_stream_of_committed_records_passes_over_aborted_ones(spark, broker, topic, tmp_path):
    make_topic(broker, topic)
    producer = Producer(broker.client_config("confluent") | {"transactional.id": topic})
    producer.init_transactions(LIMIT_S)
    source = stream(spark, broker, subscribe=topic, **{"kafka.isolation.level": "read_committed"}).select("value")
    for stage in ("first", "second"):
        for end in ("abort", "commit"):
            producer.begin_transaction()
            for value in numbered(f"{stage}-{end}", 30):
                producer.produce(topic, value)
            producer.flush(LIMIT_S)
            if end == "commit":
                producer.commit_transaction(LIMIT_S)
            else:
                producer.abort_transaction(LIMIT_S)
        drain(source, tmp_path / "out", tmp_path / "checkpoint")
    found = values(spark.read.parquet(str(tmp_path / "out")))
    assert found == numbered("first-commit", 30) + numbered("second-commit", 30)


def test_stream_by_pattern_finds_a_topic_made_later(spark, broker, topic, tmp_path):
    source = stream(spark, broker, subscribePattern=f"{topic}-.*").select("value")
    for name in (f"{topic}-a", f"{topic}-b"):
        make_topic(broker, name)
        send(broker, name, [name.encode()])
        drain(source, tmp_path / "out", tmp_path / "checkpoint")
    assert values(spark.read.parquet(str(tmp_path / "out"))) == [f"{topic}-a".encode(), f"{topic}-b".encode()]


def test_stream_that_finds_offsets_through_a_group_reads_the_same(spark, broker, topic, tmp_path):
    make_topic(broker, topic, 2)
    send(broker, topic, numbered("r", 20), 1)
    spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    try:
        source = stream(spark, broker, subscribe=topic).select("value")
        drain(source, tmp_path / "out", tmp_path / "checkpoint")
    finally:
        spark.conf.unset("spark.sql.streaming.kafka.useDeprecatedOffsetFetching")
    assert values(spark.read.parquet(str(tmp_path / "out"))) == numbered("r", 20)


@pytest.mark.parametrize("strict", [True, False])
def test_stream_whose_records_were_deleted_fails_only_if_told_to(spark, broker, topic, tmp_path, strict):
    make_topic(broker, topic)
    send(broker, topic, numbered("r", 10))
    source = stream(spark, broker, subscribe=topic, failOnDataLoss=str(strict).lower()).select("value")
    drain(source, tmp_path / "out", tmp_path / "checkpoint")
    send(broker, topic, numbered("s", 10))
    admin = AdminClient(broker.client_config("confluent"))
    for deleted in admin.delete_records([TopicPartition(topic, 0, 15)]).values():
        deleted.result(LIMIT_S)
    if strict:
        with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
            drain(source, tmp_path / "out", tmp_path / "checkpoint")
    else:
        drain(source, tmp_path / "out", tmp_path / "checkpoint")
        found = values(spark.read.parquet(str(tmp_path / "out")))
        assert found == numbered("r", 10) + numbered("s", 10)[5:]
