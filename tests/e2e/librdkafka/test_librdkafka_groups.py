"""librdkafka: members share a topic, come and go, and the group goes on where it was."""

from __future__ import annotations

import pytest
from clientwork import LIMIT_S, play_group, share_evenly, until
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from librdkafka_kit import (
    LibrdkafkaMember,
    admin_of,
    committed_offsets,
    consumer_of,
    create,
    deliver,
    producer_of,
    read,
    settled,
)


def play(broker, name, **settings):
    create(broker, name, 6)
    producer = producer_of(broker)
    play_group(
        lambda: LibrdkafkaMember(broker, name, name, **settings),
        lambda partition, values: deliver(
            producer, [{"topic": name, "value": value, "partition": partition} for value in values]
        ),
        lambda: committed_offsets(broker, name, name),
    )


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_group_of_three_rebalances_when_one_leaves_and_one_joins(shared_broker, name, strategy):
    play(shared_broker, name, partition_assignment_strategy=strategy)


def test_group_on_three_brokers_finds_its_coordinator_and_its_leaders(trio, name):
    play(trio, name)


def test_cooperative_rebalance_takes_only_what_moves(shared_broker, name):
    create(shared_broker, name, 6)
    settings = {"partition_assignment_strategy": "cooperative-sticky"}
    members = [LibrdkafkaMember(shared_broker, name, name, **settings) for _ in range(2)]
    members[0].start()
    until(lambda: len(members[0].assigned) == 6, "the first member owns all")
    members[1].start()
    until(lambda: share_evenly(members, 6), "both share")
    assert len(members[0].revoked) == 3
    assert set(members[0].revoked) == members[1].assigned
    for member in members:
        member.leave()


def test_static_member_that_returns_in_time_keeps_its_share_and_fences_its_double(shared_broker, name):
    create(shared_broker, name, 4)
    members = [LibrdkafkaMember(shared_broker, name, name, group_instance_id=instance) for instance in "ab"]
    for member in members:
        member.start()
    until(lambda: share_evenly(members, 4), "both share")
    share = members[0].assigned
    members[0].leave()
    admin = admin_of(shared_broker)
    described = settled(admin.describe_consumer_groups([name]))[name]
    assert sorted(member.group_instance_id for member in described.members) == ["a", "b"]
    members[0] = LibrdkafkaMember(shared_broker, name, name, group_instance_id="a")
    members[0].start()
    until(lambda: share_evenly(members, 4), "the member is back")
    assert members[0].assigned == share
    double = LibrdkafkaMember(shared_broker, name, name, group_instance_id="a")
    double.start()
    until(lambda: members[0].failure is not None, "the older one is fenced")
    assert isinstance(members[0].failure, KafkaException)
    assert members[0].failure.args[0].code() in (KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID)
    until(lambda: double.assigned == share, "its double has its share")
    for member in (double, members[1]):
        member.leave()


def test_commit_with_metadata_is_read_back_and_an_unknown_one_is_none(shared_broker, name):
    create(shared_broker, name, 2)
    with consumer_of(shared_broker, group_id=name) as consumer:
        consumer.commit(offsets=[TopicPartition(name, 0, 17, "größe €")], asynchronous=False)
        first, second = consumer.committed([TopicPartition(name, 0), TopicPartition(name, 1)], LIMIT_S)
        assert (first.offset, first.metadata) == (17, "größe €")
        assert (second.offset, second.error) == (OFFSET_INVALID, None)
        with pytest.raises(KafkaException) as refused:
            consumer.commit(offsets=[TopicPartition(name, 1, 1, "x" * 4097)], asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE


def test_group_goes_on_where_it_committed(shared_broker, name):
    create(shared_broker, name)
    deliver(producer_of(shared_broker), [{"topic": name, "value": b"%d" % number} for number in range(10)])
    for expected in (range(4), range(4, 8), range(8, 10)):
        with consumer_of(shared_broker, group_id=name) as consumer:
            consumer.subscribe([name])
            records = read(consumer, len(expected))
            assert [int(record.value()) for record in records] == list(expected)
            consumer.commit(records[-1], asynchronous=False)


def test_subscription_to_a_pattern_finds_a_topic_made_later(shared_broker, name):
    create(shared_broker, f"{name}-1")
    producer = producer_of(shared_broker)
    with consumer_of(shared_broker, group_id=name) as consumer:
        consumer.subscribe([f"^{name}-[0-9]"])
        deliver(producer, [{"topic": f"{name}-1", "value": b"one"}])
        (first,) = read(consumer, 1)
        assert first.value() == b"one"
        consumer.commit(first, asynchronous=False)
        deliver(producer, [{"topic": f"{name}-2", "value": b"two"}])
        assert read(consumer, 1)[0].value() == b"two"


def test_member_of_a_deleted_generation_cannot_commit(shared_broker, name):
    create(shared_broker, name, 2)
    with consumer_of(shared_broker, group_id=name) as consumer:
        consumer.subscribe([name])
        until(lambda: consumer.poll(0.05) is None and consumer.assignment(), "the member is in")
        told = [TopicPartition(name, 0, 1)]
        consumer.commit(offsets=told, asynchronous=False)
        with consumer_of(shared_broker, group_id=name) as stranger, pytest.raises(KafkaException) as refused:
            stranger.commit(offsets=told, asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    assert committed_offsets(shared_broker, name, name) == {0: 1}
