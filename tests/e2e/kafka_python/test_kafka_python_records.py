"""kafka-python: records go in and come out as they were, by every codec, and are found by offset and time."""

from __future__ import annotations

import pytest
from clientwork import BIG_VALUE, CODECS, RECORDS
from kafka import TopicPartition
from kafka.errors import MessageSizeTooLargeError
from kafka_python_kit import consumer_of, create, producer_of, read

# kafka-python sends no header without a value
SENDABLE = [(key, value, [header for header in headers if header[1] is not None]) for key, value, headers in RECORDS]


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_shape_come_back_as_sent(shared_broker, name, codec):
    settings = {"compression_type": None if codec == "none" else codec, "linger_ms": 20}
    with producer_of(shared_broker, **settings) as producer:
        sent = [
            producer.send(name, value, key, headers, 0, 1000 + i) for i, (key, value, headers) in enumerate(SENDABLE)
        ]
        offsets = [future.get(60).offset for future in sent]
    assert offsets == list(range(len(SENDABLE)))
    with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        records = read(consumer, len(SENDABLE))
    assert [(record.key, record.value, list(record.headers)) for record in records] == SENDABLE
    assert [record.timestamp for record in records] == [1000 + i for i in range(len(SENDABLE))]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_of_every_acknowledgement_level_arrive_in_order(shared_broker, name, acks):
    create(shared_broker, name)
    values = [b"%d" % number for number in range(200)]
    settings = {"acks": acks, "enable_idempotence": acks == "all", "batch_size": 200}
    with producer_of(shared_broker, **settings) as producer:
        for value in values:
            producer.send(name, value)
        producer.flush(60)
    with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert [record.value for record in read(consumer, 200)] == values


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_record_of_900_kilobytes_comes_back_and_a_larger_one_is_refused(shared_broker, name, codec):
    compression = None if codec == "none" else codec
    settings = {"compression_type": compression, "max_request_size": 10_000_000, "enable_idempotence": False}
    with producer_of(shared_broker, **settings) as producer:
        producer.send(name, BIG_VALUE).get(60)
        if codec == "none":
            with pytest.raises(MessageSizeTooLargeError):
                producer.send(name, BIG_VALUE * 2).get(60)
        producer.send(name, b"after").get(60)
    with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert [record.value for record in read(consumer, 2)] == [BIG_VALUE, b"after"]


def test_consumer_with_small_fetches_still_gets_every_record(shared_broker, name):
    create(shared_broker, name, 3)
    with producer_of(shared_broker, batch_size=2000) as producer:
        for number in range(60):
            producer.send(name, b"%d" % number + b"x" * 5000, partition=number % 3)
        producer.flush(60)
    with consumer_of(shared_broker, max_partition_fetch_bytes=1, fetch_max_bytes=1, max_poll_records=1) as consumer:
        consumer.assign([TopicPartition(name, partition) for partition in range(3)])
        numbers = sorted(int(record.value.rstrip(b"x")) for record in read(consumer, 60))
    assert numbers == list(range(60))


def test_consumer_seeks_to_any_offset_the_beginning_and_the_end(shared_broker, name):
    with producer_of(shared_broker) as producer:
        for number in range(50):
            producer.send(name, b"%d" % number).get(60)  # a batch each
    partition = TopicPartition(name, 0)
    with consumer_of(shared_broker) as consumer:
        consumer.assign([partition])
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 50}
        consumer.seek(partition, 43)
        assert [record.offset for record in read(consumer, 7)] == list(range(43, 50))
        assert consumer.position(partition) == 50
        consumer.seek_to_beginning(partition)
        assert read(consumer, 50)[0].offset == 0
        consumer.seek(partition, 1000)  # out of range: reset to the earliest
        assert read(consumer, 50)[0].offset == 0
        consumer.seek_to_end(partition)
        assert consumer.position(partition) == 50
        consumer.pause(partition)
        assert consumer.poll(50) == {}


def test_offsets_are_found_by_time(shared_broker, name):
    with producer_of(shared_broker) as producer:
        for number in range(20):
            producer.send(name, b"%d" % number, timestamp_ms=1_700_000_000_000 + 1000 * number).get(60)
    partition = TopicPartition(name, 0)
    with consumer_of(shared_broker) as consumer:
        for asked, expected in [(0, 0), (1_700_000_004_500, 5), (1_700_000_019_000, 19)]:
            found = consumer.offsets_for_times({partition: asked})[partition]
            assert (found.offset, found.timestamp) == (expected, 1_700_000_000_000 + 1000 * expected)
        assert consumer.offsets_for_times({partition: 1_800_000_000_000}) == {partition: None}


def test_records_appended_by_the_broker_s_clock_bear_its_time(shared_broker, name):
    create(shared_broker, name, **{"message.timestamp.type": "LogAppendTime"})
    with producer_of(shared_broker, compression_type="gzip") as producer:
        stamped = producer.send(name, b"old", timestamp_ms=1).get(60)
    assert stamped.timestamp > 1_700_000_000_000
    with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        (record,) = read(consumer, 1)
    assert (record.timestamp, record.timestamp_type) == (stamped.timestamp, 1)
