"""librdkafka's admin client: topics, configs, groups, offsets and records, made, seen, changed and deleted."""

from __future__ import annotations

import pytest
from clientwork import LIMIT_S, until
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
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


@pytest.fixture(scope="module")
def admin(shared_broker):
    return admin_of(shared_broker)


def refusal(futures) -> int:
    """The error code that the only future of an admin call ends with."""
    (future,) = futures.values()
    with pytest.raises(KafkaException) as refused:
        future.result(LIMIT_S)
    return refused.value.args[0].code()


def test_topic_is_created_described_grown_and_deleted(admin, name):
    settled(admin.create_topics([NewTopic(name, 3, 1, config={"retention.ms": "5000"})]))
    assert refusal(admin.create_topics([NewTopic(name, 3, 1)])) == KafkaError.TOPIC_ALREADY_EXISTS
    described = settled(admin.describe_topics(TopicCollection([name])))[name]
    assert [partition.id for partition in described.partitions] == [0, 1, 2]
    assert [node.id for node in described.partitions[0].isr] == [1]
    assert not described.is_internal
    settled(admin.create_partitions([NewPartitions(name, 5)]))
    assert refusal(admin.create_partitions([NewPartitions(name, 2)])) == KafkaError.INVALID_PARTITIONS
    assert len(admin.list_topics(name, LIMIT_S).topics[name].partitions) == 5
    settled(admin.delete_topics([name]))
    assert refusal(admin.delete_topics([name])) == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert name not in admin.list_topics(timeout=LIMIT_S).topics
    assert refusal(admin.create_topics([NewTopic("a b", 1, 1)])) == KafkaError.TOPIC_EXCEPTION
    assert refusal(admin.create_topics([NewTopic(name, 1, 4)])) == KafkaError.INVALID_REPLICATION_FACTOR


def test_topic_configs_are_set_appended_and_deleted_one_by_one(admin, name):
    settled(admin.create_topics([NewTopic(name, 1, 1, config={"retention.ms": "5000"})]))
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    operation = AlterConfigOpType
    changes = [
        ConfigEntry("max.message.bytes", "1000", incremental_operation=operation.SET),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=operation.APPEND),
        ConfigEntry("retention.ms", None, incremental_operation=operation.DELETE),
    ]
    settled(admin.incremental_alter_configs([ConfigResource(resource.restype, name, incremental_configs=changes)]))
    found = settled(admin.describe_configs([resource]))[resource]
    assert found["max.message.bytes"].value == "1000"
    assert found["cleanup.policy"].value == "delete,compact"
    assert (found["retention.ms"].value, found["retention.ms"].is_default) == ("604800000", True)
    wrong = [ConfigEntry("retention.ms", "soon", incremental_operation=operation.SET)]
    asked = admin.incremental_alter_configs([ConfigResource(resource.restype, name, incremental_configs=wrong)])
    assert refusal(asked) == KafkaError.INVALID_CONFIG


def test_broker_configs_and_the_cluster_are_described(admin):
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    found = settled(admin.describe_configs([resource]))[resource]
    assert found["group.initial.rebalance.delay.ms"].value == "0"
    cluster = admin.describe_cluster().result(LIMIT_S)
    assert ([node.id for node in cluster.nodes], cluster.controller.id) == ([1], 1)
    assert len(cluster.cluster_id) == 22


def test_offsets_of_partitions_are_listed_by_kind_and_time(admin, shared_broker, name):
    create(shared_broker, name)
    producer = producer_of(shared_broker, batch_num_messages=1)
    deliver(producer, [{"topic": name, "value": b"x", "timestamp": timestamp} for timestamp in (1000, 3000, 2000)])
    for asked, expected in [
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 3),
        (OffsetSpec.max_timestamp(), 1),
        (OffsetSpec.for_timestamp(1500), 1),
        (OffsetSpec.for_timestamp(4000), -1),
    ]:
        level = IsolationLevel.READ_COMMITTED
        (found,) = settled(admin.list_offsets({TopicPartition(name, 0): asked}, isolation_level=level)).values()
        assert found.offset == expected


def test_records_are_deleted_up_to_an_offset(admin, shared_broker, name):
    create(shared_broker, name)
    deliver(producer_of(shared_broker), [{"topic": name, "value": b"%d" % number} for number in range(10)])
    (deleted,) = settled(admin.delete_records([TopicPartition(name, 0, 4)])).values()
    assert deleted.low_watermark == 4
    assert refusal(admin.delete_records([TopicPartition(name, 0, 11)])) == KafkaError.OFFSET_OUT_OF_RANGE
    with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert [record.offset() for record in read(consumer, 6)] == list(range(4, 10))
        assert consumer.get_watermark_offsets(TopicPartition(name, 0)) == (4, 10)


def test_running_group_is_listed_described_and_protected(admin, shared_broker, name):
    create(shared_broker, name, 2)
    member = LibrdkafkaMember(shared_broker, name, name, client_id="me")
    member.start()
    until(lambda: len(member.assigned) == 2, "the member owns the topic")
    stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(LIMIT_S)
    assert name in [group.group_id for group in stable.valid]
    described = settled(admin.describe_consumer_groups([name]))[name]
    assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, "range")
    (seen,) = described.members
    assert (seen.client_id, seen.host) == ("me", "/127.0.0.1")
    assert {partition.partition for partition in seen.assignment.topic_partitions} == {0, 1}
    assert refusal(admin.delete_consumer_groups([name])) == KafkaError.NON_EMPTY_GROUP
    member.leave()
    settled(admin.delete_consumer_groups([name]))
    assert refusal(admin.delete_consumer_groups([name])) == KafkaError.GROUP_ID_NOT_FOUND
    everyone = admin.list_consumer_groups().result(LIMIT_S)
    assert name not in [group.group_id for group in everyone.valid]


def test_offsets_of_an_idle_group_are_altered_and_listed(admin, shared_broker, name):
    create(shared_broker, name, 2)
    wanted = [TopicPartition(name, 0, 3), TopicPartition(name, 1, 4)]
    settled(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(name, wanted)]))
    assert committed_offsets(shared_broker, name, name) == {0: 3, 1: 4}
    asked = [ConsumerGroupTopicPartitions(name, [TopicPartition(name, 1), TopicPartition(name, 9)])]
    found = settled(admin.list_consumer_group_offsets(asked))[name].topic_partitions
    assert sorted((each.partition, each.offset) for each in found) == [(1, 4), (9, -1001)]


def test_leaders_spread_over_three_brokers_and_the_admin_finds_each_coordinator(trio, name):
    create(trio, name, 6)
    admin = admin_of(trio)
    topic = admin.list_topics(name, LIMIT_S).topics[name]
    leaders = sorted(partition.leader for partition in topic.partitions.values())
    assert len(set(leaders)) == 3
    assert all(leaders.count(leader) == 2 for leader in leaders)
    groups = [f"{name}-{number}" for number in range(8)]
    for number, group in enumerate(groups):
        told = [ConsumerGroupTopicPartitions(group, [TopicPartition(name, 0, number)])]
        settled(admin.alter_consumer_group_offsets(told))
    assert [committed_offsets(trio, group, name) for group in groups] == [{0: number} for number in range(8)]
    assert set(groups) <= {group.group_id for group in admin.list_consumer_groups().result(LIMIT_S).valid}
    settled(admin.delete_consumer_groups(groups))
    deliver(producer_of(trio), [{"topic": name, "value": b"x", "partition": number} for number in range(6)])
    deleted = settled(admin.delete_records([TopicPartition(name, number, 1) for number in range(6)]))
    assert [each.low_watermark for each in deleted.values()] == [1] * 6


def test_acls_are_refused_because_there_is_no_authorizer(admin, name):
    acl = (ResourceType.TOPIC, name, ResourcePatternType.LITERAL, "User:a", "*", AclOperation.READ)
    some = AclBindingFilter(*acl, AclPermissionType.ALLOW)
    assert refusal(admin.create_acls([AclBinding(*acl, AclPermissionType.ALLOW)])) == KafkaError.SECURITY_DISABLED
    assert refusal(admin.delete_acls([some])) == KafkaError.SECURITY_DISABLED
    assert admin.describe_acls(some).result(LIMIT_S) == []  # it does not look at the error, with Apache Kafka either
