"""kafka-python: transactions commit or abort as a whole, offsets go with the records, zombies are fenced."""

from __future__ import annotations

from collections import Counter

import pytest
from clientwork import seen_by, until
from kafka import TopicPartition
from kafka.errors import CommitFailedError, ProducerFencedError
from kafka.structs import OffsetAndMetadata
from kafka_python_kit import committed_offsets, consumer_of, create, producer_of, read


def seen(broker, topic, count, isolation="read_committed", partitions=1):
    """The values a new consumer reads: the first `count`, and that nothing else follows."""
    with consumer_of(broker, isolation_level=isolation) as consumer:
        consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])
        consumer.seek_to_beginning()
        values = [record.value for record in read(consumer, count)]
        assert not consumer.poll(300)
        return values


def test_reader_of_committed_sees_what_was_committed(shared_broker, name):
    create(shared_broker, name)
    with producer_of(shared_broker, transactional_id=name) as producer:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            for part in range(3):
                producer.send(name, f"{number}-{part}".encode())
            producer.flush()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    committed = [f"{number}-{part}".encode() for number in (0, 2) for part in range(3)]
    everything = [f"{number}-{part}".encode() for number in range(4) for part in range(3)]
    assert seen(shared_broker, name, 6) == committed
    assert seen(shared_broker, name, 12, "read_uncommitted") == everything


def test_consume_transform_produce_copies_each_record_once(shared_broker, name):
    total, source, target = 120, f"{name}-in", f"{name}-out"
    create(shared_broker, source, 3)
    create(shared_broker, target, 3)
    values = [f"value-{number}".encode() for number in range(total)]
    with producer_of(shared_broker) as producer:
        for number, value in enumerate(values):
            producer.send(source, value, partition=number % 3)
        producer.flush()
    copied, rounds = 0, 0
    settings = {"group_id": name, "isolation_level": "read_committed", "max_poll_records": 20}
    with (
        consumer_of(shared_broker, **settings) as consumer,
        producer_of(shared_broker, transactional_id=name) as producer,
    ):
        producer.init_transactions()
        consumer.subscribe([source])
        seen_by(consumer, source)
        while copied < total:
            batches = consumer.poll(500)
            if not batches:
                continue
            rounds += 1
            producer.begin_transaction()
            for place, records in batches.items():
                for record in records:
                    producer.send(target, record.value.upper(), partition=place.partition)
            offsets = {place: OffsetAndMetadata(records[-1].offset + 1, "", -1) for place, records in batches.items()}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            if rounds % 3 == 0:
                producer.abort_transaction()
                for place in batches:
                    consumer.seek(place, consumer.committed(place) or 0)
            else:
                producer.commit_transaction()
                copied += sum(map(len, batches.values()))
    found = seen(shared_broker, target, total, partitions=3)
    assert Counter(found) == Counter(value.upper() for value in values)
    assert sum(committed_offsets(shared_broker, name, source).values()) == total


def test_producer_that_was_replaced_is_fenced(shared_broker, name):
    create(shared_broker, name)
    with (
        producer_of(shared_broker, transactional_id=name) as zombie,
        producer_of(shared_broker, transactional_id=name) as successor,
    ):
        zombie.init_transactions()
        zombie.begin_transaction()
        zombie.send(name, b"of the zombie")
        zombie.flush()
        successor.init_transactions()
        with pytest.raises(ProducerFencedError):
            zombie.commit_transaction()
        successor.begin_transaction()
        successor.send(name, b"of the successor")
        successor.commit_transaction()
    assert seen(shared_broker, name, 1) == [b"of the successor"]


def test_consumer_that_was_replaced_cannot_send_offsets(shared_broker, name):
    create(shared_broker, name)
    settings = {"group_id": name, "session_timeout_ms": 30_000, "heartbeat_interval_ms": 100}
    with (
        consumer_of(shared_broker, **settings) as consumer,
        producer_of(shared_broker, transactional_id=name) as producer,
    ):
        producer.init_transactions()
        consumer.subscribe([name])
        seen_by(consumer, name)
        until(lambda: consumer.poll(50) or consumer.assignment(), "the group has a member")
        stale = consumer.group_metadata()
        consumer.unsubscribe()
        consumer.subscribe([name])
        until(
            lambda: consumer.poll(50) or (consumer.assignment() and consumer.group_metadata() != stale),
            "a new generation",
        )
        producer.begin_transaction()
        producer.send(name, b"of the zombie")
        offsets = {TopicPartition(name, 0): OffsetAndMetadata(1, "", -1)}
        with pytest.raises(CommitFailedError):
            producer.send_offsets_to_transaction(offsets, stale)
        producer.abort_transaction()
    assert committed_offsets(shared_broker, name, name) == {}
