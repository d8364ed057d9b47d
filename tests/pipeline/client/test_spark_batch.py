"""Spark reads topics in batches and writes to them: by offset, by time, by pattern, in transactions or not."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql import functions as F
from spark_kit import LIMIT_S, make_topic, read, rows, send, spark_options, values

from momus import Broker


def numbered(stage: str, count: int) -> list[bytes]:
    return [b"%s-%04d" % (stage.encode(), number) for number in range(count)]


def test_batch_read_yields_every_column_of_every_record(spark, broker, topic):
    make_topic(broker, topic, 2)
    producer = Producer(broker.client_config("confluent"))
    headers = [("twice", b"1"), ("twice", b"2"), ("empty", b""), ("null", None)]
    producer.produce(topic, b"value", key=b"key", partition=0, timestamp=1_700_000_000_123, headers=headers)
    producer.produce(topic, None, key=b"tombstone", partition=1, timestamp=1_700_000_000_456)
    producer.produce(topic, b"", key=None, partition=1, timestamp=1_700_000_000_789)
    assert producer.flush(LIMIT_S) == 0

    found = rows(read(spark, broker, subscribe=topic, includeHeaders=True))

    stamps = [row[0] for row in read(spark, broker, subscribe=topic).select(F.unix_millis("timestamp")).collect()]
    assert [(row.partition, row.offset, row.key, row.value) for row in found] == [
        (0, 0, b"key", b"value"),
        (1, 0, b"tombstone", None),
        (1, 1, None, b""),
    ]
    assert [(header.key, header.value) for header in found[0].headers] == headers
    assert sorted(stamps) == [1_700_000_000_123, 1_700_000_000_456, 1_700_000_000_789]


def test_batch_read_by_offsets_takes_exactly_that_range(spark, broker, topic):
    make_topic(broker, topic, 3)
    for partition in range(3):
        send(broker, topic, numbered("r", 20), partition)
    start, end = {"0": 5, "1": -2, "2": 19}, {"0": 10, "1": -1, "2": -1}

    frame = read(
        spark,
        broker,
        subscribe=topic,
        startingOffsets=json.dumps({topic: start}),
        endingOffsets=json.dumps({topic: end}),
    )

    counted = {row.partition: row["count"] for row in frame.groupBy("partition").count().collect()}
    assert counted == {0: 5, 1: 20, 2: 1}


def test_batch_read_by_timestamp_begins_and_ends_at_the_first_record_of_that_time(spark, broker, topic):
    make_topic(broker, topic, 2)
    for partition in range(2):
        send(broker, topic, numbered("t", 100), partition, start_ms=1_700_000_000_000)
    times = {"startingTimestamp": 1_700_000_000_030, "endingTimestamp": 1_700_000_000_050}
    each = json.dumps({topic: {"0": 1_700_000_000_099, "1": 1_700_000_000_000}})

    frame = read(spark, broker, subscribe=topic, **times)
    by_partition = read(spark, broker, subscribe=topic, startingOffsetsByTimestamp=each)

    assert values(frame) == sorted(numbered("t", 100)[30:50] * 2)
    assert by_partition.groupBy("partition").count().orderBy("partition").collect() == [(0, 1), (1, 100)]


def test_batch_read_by_timestamp_after_the_last_record_takes_nothing_if_told_so(spark, broker, topic):
    make_topic(broker, topic)
    send(broker, topic, numbered("t", 3), start_ms=1_700_000_000_000)
    late = {"startingTimestamp": 1_800_000_000_000, "startingOffsetsByTimestampStrategy": "latest"}
    assert read(spark, broker, subscribe=topic, **late).count() == 0


def test_subscription_by_pattern_reads_the_topics_that_match_and_no_others(spark, broker, topic):
    for name in (f"{topic}.a", f"{topic}.b", f"other-{topic}.a"):
        make_topic(broker, name)
        send(broker, name, [name.encode()])
    frame = read(spark, broker, subscribePattern=f"^{topic}\\.[ab]")
    assert values(frame) == [f"{topic}.a".encode(), f"{topic}.b".encode()]


def test_many_partitions_are_read_whole_and_can_be_cut_smaller(spark, broker, topic):
    make_topic(broker, topic, 32)
    for partition in range(32):
        send(broker, topic, numbered(str(partition), 25), partition)
    frame = read(spark, broker, subscribe=topic, minPartitions=64)
    assert frame.rdd.getNumPartitions() >= 64
    assert len(set(values(frame))) == 32 * 25


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batch_write_keeps_keys_nulls_headers_and_partitions_in_every_codec(spark, broker, topic, codec):
    make_topic(broker, topic, 3)
    schema = "key binary, value binary, partition int, headers array<struct<key:string,value:binary>>"
    written = [
        (b"key", b"value " * 100, 0, [("twice", b"1"), ("twice", b"2"), ("null", None)]),
        (None, b"no key", 1, None),
        (b"tombstone", None, 2, []),
        (None, None, 2, None),
    ]
    frame = spark.createDataFrame(written, schema).coalesce(1)
    options = spark_options(broker, {"topic": topic, "includeHeaders": True, "kafka.compression.type": codec})

    frame.write.format("kafka").options(**options).save()

    found = rows(read(spark, broker, subscribe=topic, includeHeaders=True))
    assert [(row.key, row.value, row.partition, [tuple(header) for header in row.headers or []]) for row in found] == [
        (key, value, partition, headers or []) for key, value, partition, headers in written
    ]


def test_batch_write_routes_rows_by_their_topic_column(spark, broker, topic):
    names = [f"{topic}-{letter}" for letter in "ab"]
    for name in names:
        make_topic(broker, name)
    frame = spark.range(100).select(
        F.concat(F.lit(f"{topic}-"), F.when(F.col("id") % 2 == 0, "a").otherwise("b")).alias("topic"),
        F.col("id").cast("string").alias("value"),
    )
    frame.write.format("kafka").options(**broker.client_config("spark")).save()
    for remainder, name in enumerate(names):
        expected = sorted(str(number).encode() for number in range(remainder, 100, 2))
        assert values(read(spark, broker, subscribe=name)) == expected


def test_readers_of_committed_records_never_see_aborted_or_open_transactions(spark, broker, topic):
    make_topic(broker, topic, 2)
    producer = Producer(broker.client_config("confluent") | {"transactional.id": topic})
    producer.init_transactions(LIMIT_S)
    for number, end in enumerate(("commit", "abort", "abort", "commit", "leave open")):
        producer.begin_transaction()
        for partition in range(2):
            for value in numbered(f"{number}", 50):
                producer.produce(topic, value, partition=partition)
        producer.flush(LIMIT_S)
        if end == "commit":
            producer.commit_transaction(LIMIT_S)
        elif end == "abort":
            producer.abort_transaction(LIMIT_S)

    committed = read(spark, broker, subscribe=topic, **{"kafka.isolation.level": "read_committed"})
    everything = read(spark, broker, subscribe=topic)

    assert values(committed) == sorted((numbered("0", 50) + numbered("3", 50)) * 2)
    assert everything.count() == 5 * 50 * 2
    producer.abort_transaction(LIMIT_S)


def test_timestamps_are_those_of_the_append_where_the_topic_says_so(spark, broker, topic):
    from confluent_kafka.admin import NewTopic

    admin = AdminClient(broker.client_config("confluent"))
    config = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(LIMIT_S)
    send(broker, topic, [b"old"], start_ms=1_000_000)
    (row,) = read(spark, broker, subscribe=topic).collect()
    assert row.timestampType == 1
    assert row.timestamp > datetime.fromtimestamp(1_700_000_000, UTC).replace(tzinfo=None)


def test_records_are_read_and_written_over_three_brokers(spark, topic):
    with Broker(brokers=3) as trio:
        make_topic(trio, topic, 9)
        frame = spark.range(900).select(
            F.col("id").cast("string").alias("value"), (F.col("id") % 9).cast("int").alias("partition")
        )
        frame.write.format("kafka").options(**spark_options(trio, {"topic": topic})).save()
        found = read(spark, trio, subscribe=topic)
        counted = {row.partition: row["count"] for row in found.groupBy("partition").count().collect()}
        assert counted == dict.fromkeys(range(9), 100)
        assert values(found) == sorted(str(number).encode() for number in range(900))
        assert trio.log == ""


def test_reading_leaves_no_group_behind(spark, broker, topic):
    make_topic(broker, topic)
    send(broker, topic, [b"seen"])
    assert read(spark, broker, subscribe=topic).count() == 1
    admin = AdminClient(broker.client_config("confluent"))
    assert [group.group_id for group in admin.list_consumer_groups().result(LIMIT_S).valid] == []
