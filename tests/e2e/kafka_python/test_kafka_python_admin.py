"""kafka-python's admin client: topics, configs, groups, offsets and records, made, seen, changed and deleted."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from clientwork import share_evenly, until
from kafka import TopicPartition
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, OffsetSpec, OffsetTimestamp
from kafka.errors import (
    GroupSubscribedToTopicError,
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    NoError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata
from kafka_python_kit import (
    KafkaPythonMember,
    admin_of,
    committed_offsets,
    consumer_of,
    create,
    producer_of,
    read,
)


@pytest.fixture(scope="module")
def admin(shared_broker):
    with admin_of(shared_broker) as client:
        yield client


def test_topic_is_created_described_grown_and_deleted(admin, name):
    created = admin.create_topics({name: {"num_partitions": 3, "configs": {"retention.ms": "5000"}}})["topics"][0]
    assert (created["num_partitions"], created["replication_factor"]) == (3, 1)
    assert created["configs"]["retention.ms"]["value"] == "5000"
    (described,) = admin.describe_topics([name])
    assert described["topic_id"] == created["topic_id"]
    assert [partition["partition_index"] for partition in described["partitions"]] == [0, 1, 2]
    assert described["partitions"][0]["isr_nodes"] == [1]
    admin.create_partitions({name: 5})
    (described,) = admin.describe_topics([uuid.UUID(created["topic_id"])])
    assert (described["name"], len(described["partitions"])) == (name, 5)
    assert name in admin.list_topics()
    admin.delete_topics([name])
    assert name not in admin.list_topics()
    again = admin.create_topics([name])["topics"][0]
    assert again["topic_id"] != created["topic_id"]
    admin.delete_topics([uuid.UUID(again["topic_id"])])
    assert name not in admin.list_topics()


def test_topics_that_cannot_be_are_refused_by_name(admin, name):
    admin.create_topics([name])
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([name])
    for refused, error in [
        ({"a b": {}}, InvalidTopicError),
        ({name + "x": {"num_partitions": 0}}, InvalidPartitionsError),
        ({name + "x": {"replication_factor": 2}}, InvalidReplicationFactorError),
        ({name + "x": {"configs": {"retention.ms": "soon"}}}, InvalidConfigurationError),
        ({name + "x": {"configs": {"no.such.config": "1"}}}, InvalidConfigurationError),
    ]:
        with pytest.raises(error):
            admin.create_topics(refused)
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({name: 1})
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([name + "x"])
    assert name + "x" not in admin.list_topics()


def test_topic_only_validated_is_not_made(admin, name):
    validated = admin.create_topics({name: {"num_partitions": 2}}, validate_only=True)["topics"][0]
    assert validated["num_partitions"] == 2
    assert name not in admin.list_topics()


def test_topic_configs_are_set_appended_and_deleted_one_by_one(admin, name):
    admin.create_topics({name: {"configs": {"retention.ms": "5000"}}})
    resource = ConfigResourceType.TOPIC

    def modified() -> dict[str, str]:
        found = admin.describe_configs([ConfigResource(resource, name)])["topic"][name]
        return {key: config["value"] for key, config in found.items()}

    assert modified() == {"retention.ms": "5000"}
    changes = {
        "max.message.bytes": "1000",
        "cleanup.policy": (AlterConfigOp.APPEND, "compact"),
        "retention.ms": (AlterConfigOp.DELETE, None),
    }
    admin.alter_configs([ConfigResource(resource, name, changes)])
    assert modified() == {"max.message.bytes": "1000", "cleanup.policy": "delete,compact"}
    admin.alter_configs([ConfigResource(resource, name, {"segment.bytes": "2000000"})], incremental=False)
    admin.reset_configs([ConfigResource(resource, name, {"cleanup.policy": None, "max.message.bytes": None})])
    assert modified() == {"segment.bytes": "2000000"}
    everything = admin.describe_configs([ConfigResource(resource, name)], config_filter="all")["topic"][name]
    assert everything["max.message.bytes"]["value"] == "1048588"
    assert len(everything) > 20


def test_broker_configs_are_described(admin):
    found = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")], config_filter="all")["broker"]["1"]
    assert found["group.initial.rebalance.delay.ms"]["value"] == "0"
    assert found["offsets.topic.num.partitions"]["value"] == "50"
    assert found["num.partitions"]["config_type"] == "INT"


def test_cluster_features_log_dirs_and_resources_are_described(admin, shared_broker, name):
    with producer_of(shared_broker) as producer:
        producer.send(name, b"x" * 1000).get(60)
    cluster = admin.describe_cluster()
    assert [broker["broker_id"] for broker in cluster["brokers"]] == [1]
    assert len(cluster["cluster_id"]) == 22
    features = admin.describe_features()
    assert features["metadata.version"]["finalized"][1] > 0
    (directory,) = [each for broker in admin.describe_log_dirs([name]) for each in broker["log_dirs"]]
    assert Path(directory["log_dir"], f"{name}-0").is_dir()
    (topic,) = directory["topics"]
    assert topic["name"] == name
    assert topic["partitions"][0]["partition_size"] > 1000
    assert name in admin.list_config_resources([ConfigResourceType.TOPIC])["topic"]


def test_offsets_of_partitions_are_listed_by_kind_and_time(admin, shared_broker, name):
    with producer_of(shared_broker) as producer:
        for timestamp in (1000, 3000, 2000):
            producer.send(name, b"x", timestamp_ms=timestamp).get(60)
    partition = TopicPartition(name, 0)
    for asked, expected in [
        (OffsetSpec.EARLIEST, (0, -1)),
        (OffsetSpec.LATEST, (3, -1)),
        (OffsetSpec.MAX_TIMESTAMP, (1, 3000)),
        (OffsetTimestamp(1500), (1, 3000)),
        (OffsetTimestamp(4000), (-1, -1)),
    ]:
        found = admin.list_partition_offsets({partition: asked})[partition]
        assert (found.offset, found.timestamp) == expected


def test_records_are_deleted_up_to_an_offset(admin, shared_broker, name):
    with producer_of(shared_broker) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number).get(60)
    partition = TopicPartition(name, 0)
    assert admin.delete_records({partition: 4})[partition]["low_watermark"] == 4
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({partition: 11})
    with consumer_of(shared_broker) as consumer:
        consumer.assign([partition])
        assert consumer.beginning_offsets([partition]) == {partition: 4}
        assert read(consumer, 6)[0].value == b"4"
    assert admin.delete_records({partition: -1})[partition]["low_watermark"] == 10


def test_running_group_is_listed_described_and_protected(admin, shared_broker, name):
    create(shared_broker, name, 2)
    member = KafkaPythonMember(shared_broker, name, name, client_id="me")
    member.start()
    until(lambda: share_evenly([member], 2), "the member owns the topic")
    assert name in [group["group_id"] for group in admin.list_groups(states_filter=["stable"])]
    assert name not in [group["group_id"] for group in admin.list_groups(states_filter=["empty"])]
    described = admin.describe_groups([name])[name]
    assert (described["group_state"], described["protocol_type"]) == ("Stable", "consumer")
    assert described["protocol_data"] == "range"
    (seen,) = described["members"]
    assert (seen["client_id"], seen["client_host"]) == ("me", "/127.0.0.1")
    assert seen["member_id"].startswith("me-")
    assert admin.delete_groups([name]) == {name: "NonEmptyGroupError"}
    partition = TopicPartition(name, 0)
    assert admin.delete_group_offsets(name, [partition]) == {partition: GroupSubscribedToTopicError}
    member.leave()
    assert name in [group["group_id"] for group in admin.list_groups(states_filter=["empty"])]
    assert admin.delete_groups([name]) == {name: "OK"}
    assert name not in [group["group_id"] for group in admin.list_groups()]
    assert admin.delete_groups([name]) == {name: "GroupIdNotFoundError"}


def test_offsets_of_an_idle_group_are_altered_reset_and_deleted(admin, shared_broker, name):
    create(shared_broker, name, 2)
    with producer_of(shared_broker) as producer:
        for number in range(10):
            producer.send(name, b"x", partition=0, timestamp_ms=1000 * number).get(60)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    wanted = {first: OffsetAndMetadata(3, "note", -1), second: OffsetAndMetadata(0, "", -1)}
    assert set(admin.alter_group_offsets(name, wanted).values()) == {NoError}
    assert admin.list_group_offsets({name: None, name + "-unknown": None}) == {name: wanted, name + "-unknown": {}}
    for asked, expected in [(OffsetSpec.LATEST, 10), (OffsetTimestamp(6500), 7), (2, 2)]:
        admin.reset_group_offsets(name, {first: asked})
        assert committed_offsets(shared_broker, name, name) == {0: expected, 1: 0}
    assert admin.delete_group_offsets(name, [second]) == {second: NoError}
    assert committed_offsets(shared_broker, name, name) == {0: 2}
    admin.delete_topics([name])
    until(lambda: committed_offsets(shared_broker, name, name) == {}, "a deleted topic's offsets are gone")


def test_internal_topic_is_described_and_can_be_read(admin, shared_broker, name):
    create(shared_broker, name)
    admin.alter_group_offsets(name, {TopicPartition(name, 0): OffsetAndMetadata(1, "", -1)})
    (described,) = admin.describe_topics(["__consumer_offsets"])
    assert (described["is_internal"], len(described["partitions"])) == (True, 50)
    with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition("__consumer_offsets", number) for number in range(50)])
        until(lambda: consumer.poll(100), "the commit is there to be read")


def test_settings_topics_and_groups_survive_a_restart_and_a_kill(broker_factory, name):
    broker = broker_factory()
    create(broker, name, 2, **{"retention.ms": "5000"})
    with admin_of(broker) as before:
        before.create_partitions({name: 3})
        before.alter_group_offsets("g", {TopicPartition(name, 2): OffsetAndMetadata(7, "kept", -1)})
        before.alter_configs([ConfigResource(ConfigResourceType.BROKER, "1", {"log.cleaner.threads": "2"})])
        seen = (before.describe_topics([name]), before.describe_cluster()["cluster_id"])
    for again in (broker.restart, lambda: (broker.kill(), broker.start())):
        again()
        with admin_of(broker) as after:
            assert (after.describe_topics([name]), after.describe_cluster()["cluster_id"]) == seen
            assert after.list_group_offsets("g")["g"] == {TopicPartition(name, 2): OffsetAndMetadata(7, "kept", -1)}
            topic = after.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])["topic"][name]
            assert topic["retention.ms"]["value"] == "5000"
            found = after.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")])["broker"]["1"]
            assert found["log.cleaner.threads"]["value"] == "2"
