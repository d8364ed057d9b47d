"""librdkafka: transactions commit or abort as a whole, offsets go with the records, zombies are fenced."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest
from clientwork import LIMIT_S, until
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from librdkafka_kit import committed_offsets, consumer_of, create, deliver, producer_of, read


def transactional(broker, name, **settings):
    producer = producer_of(broker, transactional_id=name, **settings)
    producer.init_transactions(LIMIT_S)
    return producer


def seen(broker, topic, count, isolation="read_committed", partitions=1):
    """The values a new consumer reads: the first `count`, and that nothing else follows."""
    with consumer_of(broker, isolation_level=isolation) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        values = [message.value() for message in read(consumer, count)]
        assert consumer.poll(0.3) is None
        return values


def test_reader_of_committed_sees_what_was_committed(shared_broker, name):
    create(shared_broker, name)
    producer = transactional(shared_broker, name)
    for number, end in enumerate(("commit", "abort", "commit", "abort")):
        producer.begin_transaction()
        for part in range(3):
            producer.produce(name, f"{number}-{part}".encode())
        producer.flush(LIMIT_S)
        if end == "commit":
            producer.commit_transaction(LIMIT_S)
        else:
            producer.abort_transaction(LIMIT_S)
    committed = [f"{number}-{part}".encode() for number in (0, 2) for part in range(3)]
    everything = [f"{number}-{part}".encode() for number in range(4) for part in range(3)]
    assert seen(shared_broker, name, 6) == committed
    assert seen(shared_broker, name, 12, "read_uncommitted") == everything


def test_open_transaction_hides_what_follows_it(shared_broker, name):
    create(shared_broker, name)
    first, second = transactional(shared_broker, f"{name}-1"), transactional(shared_broker, f"{name}-2")
    first.begin_transaction()
    first.produce(name, b"first")
    first.flush(LIMIT_S)
    second.begin_transaction()
    second.produce(name, b"second")
    second.commit_transaction(LIMIT_S)
    with consumer_of(shared_broker, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(name, 0, 0)])
        assert consumer.poll(0.5) is None
        first.commit_transaction(LIMIT_S)
        assert [message.value() for message in read(consumer, 2)] == [b"first", b"second"]


def copy_in_transactions(broker, name, total):
    """Read, write and commit in transactions, some of which are aborted and done again."""
    source, target = f"{name}-in", f"{name}-out"
    with consumer_of(broker, group_id=name, isolation_level="read_committed") as consumer:
        producer = transactional(broker, name)
        consumer.subscribe([source])
        copied, rounds = 0, 0
        while copied < total:
            messages = [m for m in consumer.consume(20, 0.5) if m.error() is None]
            if not messages:
                continue
            rounds += 1
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, message.value().upper(), partition=message.partition())
            positions = consumer.position(consumer.assignment())
            told = [position for position in positions if position.offset >= 0]
            producer.send_offsets_to_transaction(told, consumer.consumer_group_metadata(), LIMIT_S)
            if rounds % 3 == 0:
                producer.abort_transaction(LIMIT_S)
                for partition in consumer.committed(consumer.assignment(), LIMIT_S):
                    partition.offset = max(partition.offset, 0)
                    consumer.seek(partition)
            else:
                producer.commit_transaction(LIMIT_S)
                copied += len(messages)


def test_consume_transform_produce_copies_each_record_once(shared_broker, name):
    total = 300
    create(shared_broker, f"{name}-in", 3)
    create(shared_broker, f"{name}-out", 3)
    values = [f"value-{number}".encode() for number in range(total)]
    deliver(
        producer_of(shared_broker),
        [{"topic": f"{name}-in", "value": value, "partition": n % 3} for n, value in enumerate(values)],
    )
    copy_in_transactions(shared_broker, name, total)
    found = seen(shared_broker, f"{name}-out", total, partitions=3)
    assert Counter(found) == Counter(value.upper() for value in values)
    assert sum(committed_offsets(shared_broker, name, f"{name}-in").values()) == total


def test_producer_that_was_replaced_is_fenced(shared_broker, name):
    create(shared_broker, name)
    zombie = transactional(shared_broker, name)
    zombie.begin_transaction()
    zombie.produce(name, b"of the zombie")
    zombie.flush(LIMIT_S)
    successor = transactional(shared_broker, name)
    with pytest.raises(KafkaException) as failure:
        zombie.commit_transaction(LIMIT_S)
    error = failure.value.args[0]
    assert error.code() == KafkaError._FENCED
    assert error.fatal()
    successor.begin_transaction()
    successor.produce(name, b"of the successor")
    successor.commit_transaction(LIMIT_S)
    assert seen(shared_broker, name, 1) == [b"of the successor"]


def test_producer_that_was_replaced_is_fenced_at_its_next_record(shared_broker, name):
    create(shared_broker, name)
    zombie = transactional(shared_broker, name)
    zombie.begin_transaction()
    zombie.produce(name, b"of the zombie")
    zombie.flush(LIMIT_S)
    transactional(shared_broker, name)
    zombie.produce(name, b"late")
    with pytest.raises(KafkaException) as failure:  # noqa: PT012 - confluent-kafka raises what is fatal in any call
        zombie.flush(LIMIT_S)
        zombie.commit_transaction(LIMIT_S)
    error = failure.value.args[0]
    assert error.code() == KafkaError._FENCED
    assert error.fatal()
    assert "old epoch" in error.str()
    assert seen(shared_broker, name, 0) == []


def test_consumer_that_was_replaced_cannot_send_offsets(shared_broker, name):
    create(shared_broker, name)
    settings = {"group_id": name, "session_timeout_ms": 30_000, "heartbeat_interval_ms": 100}
    producer = transactional(shared_broker, name)
    with consumer_of(shared_broker, **settings) as zombie:
        zombie.subscribe([name])
        until(lambda: zombie.poll(0.05) is None and zombie.assignment(), "the group has a member")
        metadata = zombie.consumer_group_metadata()
        with consumer_of(shared_broker, **settings) as other:
            other.subscribe([name])
            until(
                lambda: (
                    (zombie.poll(0.05), other.poll(0.05))
                    and (zombie.assignment() or other.assignment())
                    # the generation lies behind the version byte
                    and zombie.consumer_group_metadata() != metadata
                ),
                "a rebalance",
            )
            producer.begin_transaction()
            producer.produce(name, b"of the zombie")
            with pytest.raises(KafkaException) as failure:
                producer.send_offsets_to_transaction([TopicPartition(name, 0, 1)], metadata, LIMIT_S)
            error = failure.value.args[0]
            assert error.code() == KafkaError.ILLEGAL_GENERATION
            assert error.txn_requires_abort()
            producer.abort_transaction(LIMIT_S)
    assert committed_offsets(shared_broker, name, name) == {}


def test_transaction_outlives_a_killed_broker(broker_factory, name):
    broker = broker_factory()
    create(broker, name)
    # librdkafka 2.16 may give up the broker for good when it bootstraps anew
    producer = transactional(broker, name, metadata_recovery_strategy="none")
    for number in range(6):
        producer.begin_transaction()
        producer.produce(name, f"{number}-a".encode())
        producer.flush(LIMIT_S)
        if number % 2:
            broker.kill()
            broker.start()
        producer.produce(name, f"{number}-b".encode())
        while True:
            try:
                producer.commit_transaction(LIMIT_S)
                break
            except KafkaException as failure:
                error = failure.args[0]
                if error.txn_requires_abort():
                    producer.abort_transaction(LIMIT_S)
                    break
                if not error.retriable():
                    raise
    with suppress(KafkaException):
        producer.flush(LIMIT_S)
    transactional(broker, name)  # ends what may be open
    with consumer_of(broker, isolation_level="read_committed", enable_partition_eof=True) as consumer:
        consumer.assign([TopicPartition(name, 0, 0)])
        values = []
        while (message := consumer.poll(LIMIT_S)).error() is None:
            values.append(message.value().decode())
        assert message.error().code() == KafkaError._PARTITION_EOF
    pairs = [values[at : at + 2] for at in range(0, len(values), 2)]
    assert all(pair[0][:1] == pair[1][:1] and pair[0][-1] + pair[1][-1] == "ab" for pair in pairs)
    assert {pair[0][0] for pair in pairs} >= {"0", "2", "4"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumer_that_left_cannot_send_offsets(shared_broker, name, protocol):
    create(shared_broker, name)
    producer = transactional(shared_broker, name)
    with consumer_of(shared_broker, group_id=name, group_protocol=protocol) as zombie:
        zombie.subscribe([name])
        until(lambda: zombie.poll(0.05) is None and zombie.assignment(), "the group has a member")
        metadata = zombie.consumer_group_metadata()
    producer.begin_transaction()
    with pytest.raises(KafkaException) as failure:
        producer.send_offsets_to_transaction([TopicPartition(name, 0, 1)], metadata, LIMIT_S)
    assert failure.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    assert failure.value.args[0].txn_requires_abort()
    producer.abort_transaction(LIMIT_S)
    assert committed_offsets(shared_broker, name, name) == {}


def test_consumer_with_a_double_cannot_send_offsets(shared_broker, name):
    create(shared_broker, name)
    producer = transactional(shared_broker, name)
    settings = {"group_id": name, "group_instance_id": "only"}
    with consumer_of(shared_broker, **settings) as zombie, consumer_of(shared_broker, **settings) as double:
        zombie.subscribe([name])
        until(lambda: zombie.poll(0.05) is None and zombie.assignment(), "the group has a member")
        metadata = zombie.consumer_group_metadata()
        double.subscribe([name])
        until(lambda: double.poll(0.05) is None and double.assignment(), "the double has taken its place")
        producer.begin_transaction()
        with pytest.raises(KafkaException) as failure:
            producer.send_offsets_to_transaction([TopicPartition(name, 0, 1)], metadata, LIMIT_S)
        assert failure.value.args[0].code() == KafkaError.FENCED_INSTANCE_ID
        assert failure.value.args[0].txn_requires_abort()
        producer.abort_transaction(LIMIT_S)
    assert committed_offsets(shared_broker, name, name) == {}
