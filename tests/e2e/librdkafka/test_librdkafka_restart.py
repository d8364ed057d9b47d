"""librdkafka: kill -9 in the middle of commits, of records and of a group's work, and on it goes."""

from __future__ import annotations

import pytest
from clientwork import LEDGER_PARTITIONS, LIMIT_S, commit_through_kills
from confluent_kafka import TopicPartition
from librdkafka_kit import (
    committed_offsets,
    committer_of,
    consumer_of,
    create,
    deliver,
    producer_of,
    read,
)


@pytest.mark.parametrize("settings", [{}, {"flush": "fsync"}, {"brokers": 3}], ids=["os", "fsync", "three-brokers"])
def test_commits_survive_kill_9_whole_and_none_is_invented(broker_factory, crash_rounds, settings):
    broker = broker_factory(**settings)
    create(broker, "t", LEDGER_PARTITIONS)
    commit_through_kills(
        broker,
        lambda: committer_of(broker, "g", "t"),
        lambda: committed_offsets(broker, "g", "t"),
        crash_rounds,
    )


def test_group_goes_on_after_kill_9_exactly_where_it_was(broker_factory):
    broker = broker_factory(config={"group.initial.rebalance.delay.ms": 0})
    create(broker, "t")
    deliver(producer_of(broker), [{"topic": "t", "value": b"%d" % number} for number in range(20)])
    settings = {"group_id": "g", "heartbeat_interval_ms": 100, "group_instance_id": "i"}
    with consumer_of(broker, **settings) as consumer:
        consumer.subscribe(["t"])
        records = read(consumer, 12)
        consumer.commit(records[-1], asynchronous=False)
        broker.kill()
        broker.start()
        assert [int(record.value()) for record in read(consumer, 8)] == list(range(12, 20))
    with consumer_of(broker, **settings) as consumer:
        consumer.subscribe(["t"])
        assert [int(record.value()) for record in read(consumer, 8)] == list(range(12, 20))


def test_idempotent_producer_writes_each_record_once_through_kill_9(broker_factory):
    broker = broker_factory()
    create(broker, "t")
    producer = producer_of(broker, enable_idempotence=True, batch_num_messages=10, socket_timeout_ms=3000)
    offsets: list[int] = []
    for life in range(3):
        for number in range(200):
            producer.produce(
                "t", b"%d" % (200 * life + number), on_delivery=lambda error, message: offsets.append(message.offset())
            )
        if life < 2:
            producer.poll(0.02)
            broker.kill()
            broker.start()
        assert producer.flush(LIMIT_S) == 0
    with consumer_of(broker) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        assert [int(record.value()) for record in read(consumer, 600)] == list(range(600))
    assert offsets == list(range(600))
