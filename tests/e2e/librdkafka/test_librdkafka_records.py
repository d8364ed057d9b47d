"""librdkafka: records go in and come out as they were, by every codec, and are found by offset and time."""

from __future__ import annotations

import pytest
from clientwork import BIG_VALUE, CODECS, LIMIT_S, RECORDS, until
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition
from librdkafka_kit import consumer_of, create, deliver, producer_of, read


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_shape_come_back_as_sent(shared_broker, name, codec):
    create(shared_broker, name)
    producer = producer_of(shared_broker, compression_type=codec, linger_ms=20)
    sent = deliver(
        producer,
        [
            {"topic": name, "value": value, "key": key, "headers": headers, "partition": 0, "timestamp": 1000 + i}
            for i, (key, value, headers) in enumerate(RECORDS)
        ],
    )
    assert [message.offset() for message in sent] == list(range(len(RECORDS)))
    with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        records = read(consumer, len(RECORDS))
    assert [(record.key(), record.value(), record.headers() or []) for record in records] == RECORDS
    assert [record.timestamp() for record in records] == [(1, 1000 + i) for i in range(len(RECORDS))]


@pytest.mark.parametrize("acks", ["0", "1", "all", "idempotent"])
def test_records_of_every_acknowledgement_level_arrive_in_order(shared_broker, name, acks):
    create(shared_broker, name)
    values = [b"%d" % number for number in range(200)]
    settings = {"enable_idempotence": True} if acks == "idempotent" else {"acks": acks}
    producer = producer_of(shared_broker, batch_num_messages=20, linger_ms=1, **settings)
    deliver(producer, [{"topic": name, "value": value} for value in values])
    with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert [record.value() for record in read(consumer, 200)] == values


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_record_of_900_kilobytes_comes_back_and_a_larger_one_is_refused(shared_broker, name, codec):
    create(shared_broker, name)
    producer = producer_of(shared_broker, compression_type=codec, message_max_bytes=10_000_000)
    deliver(producer, [{"topic": name, "value": BIG_VALUE}])
    if codec == "none":
        with pytest.raises(KafkaException) as refused:
            deliver(producer, [{"topic": name, "value": BIG_VALUE * 2}])
        assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    deliver(producer, [{"topic": name, "value": b"after"}])
    with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert [record.value() for record in read(consumer, 2)] == [BIG_VALUE, b"after"]


def test_consumer_with_small_fetches_still_gets_every_record(shared_broker, name):
    create(shared_broker, name, 3)
    deliver(
        producer_of(shared_broker, batch_size=2000),
        [{"topic": name, "value": b"%d" % n + b"x" * 5000, "partition": n % 3} for n in range(60)],
    )
    with consumer_of(
        shared_broker, max_partition_fetch_bytes=1, fetch_max_bytes=2000, message_max_bytes=1000
    ) as consumer:
        consumer.assign([TopicPartition(name, partition) for partition in range(3)])
        numbers = sorted(int(record.value().rstrip(b"x")) for record in read(consumer, 60))
    assert numbers == list(range(60))


def test_consumer_seeks_to_any_offset_the_beginning_and_the_end(shared_broker, name):
    create(shared_broker, name)
    producer = producer_of(shared_broker, batch_num_messages=1)
    deliver(producer, [{"topic": name, "value": b"%d" % number} for number in range(50)])
    with consumer_of(shared_broker, enable_partition_eof=False) as consumer:
        consumer.assign([TopicPartition(name, 0, 40)])
        assert [record.offset() for record in read(consumer, 10)] == list(range(40, 50))
        assert consumer.get_watermark_offsets(TopicPartition(name, 0)) == (0, 50)
        consumer.seek(TopicPartition(name, 0, 43))
        assert [record.offset() for record in read(consumer, 7)] == list(range(43, 50))
        assert consumer.position([TopicPartition(name, 0)])[0].offset == 50
        consumer.seek(TopicPartition(name, 0, OFFSET_BEGINNING))
        assert read(consumer, 50)[0].offset() == 0
        consumer.seek(TopicPartition(name, 0, 1000))  # out of range: reset to the earliest
        assert read(consumer, 50)[0].offset() == 0
        consumer.seek(TopicPartition(name, 0, OFFSET_END))
        assert consumer.poll(0.1) is None


def test_offsets_are_found_by_time(shared_broker, name):
    create(shared_broker, name)
    producer = producer_of(shared_broker, batch_num_messages=1)
    start = 1_700_000_000_000
    deliver(producer, [{"topic": name, "value": b"x", "timestamp": start + 1000 * number} for number in range(20)])
    with consumer_of(shared_broker) as consumer:
        for asked, expected in [(1, 0), (start + 4500, 5), (start + 19_000, 19), (start + 20_000, OFFSET_END)]:
            (found,) = consumer.offsets_for_times([TopicPartition(name, 0, asked)], LIMIT_S)
            assert found.offset == expected


def test_producer_is_refused_where_it_may_not_write(shared_broker, name):
    create(shared_broker, name, 1, **{"cleanup.policy": "compact"})
    producer = producer_of(shared_broker, enable_idempotence=False, message_send_max_retries=0)
    with consumer_of(shared_broker, group_id=name) as consumer:  # makes the offsets topic
        consumer.commit(offsets=[TopicPartition(name, 0, 1)], asynchronous=False)
    for topic, partition, code in [
        (name, 0, KafkaError.INVALID_RECORD),  # a compacted topic wants keys
        ("__consumer_offsets", 0, KafkaError.TOPIC_EXCEPTION),
        (name, 7, KafkaError._UNKNOWN_PARTITION),
    ]:
        with pytest.raises(KafkaException) as refused:
            deliver(producer, [{"topic": topic, "value": b"x", "partition": partition}])
        assert refused.value.args[0].code() == code
    deliver(producer, [{"topic": name, "key": b"k", "value": b"x", "partition": 0}])


def test_topic_that_a_producer_names_is_made(shared_broker, name):
    deliver(producer_of(shared_broker), [{"topic": name, "value": b"x"}])
    with consumer_of(shared_broker) as consumer:
        assert list(consumer.list_topics(name, LIMIT_S).topics[name].partitions) == [0]
        consumer.subscribe([name])
        until(lambda: consumer.poll(0.2), "the record is there")
