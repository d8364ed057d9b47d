"""Metadata, DescribeCluster, DescribeTopicPartitions and FindCoordinator: who is where, and topics made on the way."""

from __future__ import annotations

import pytest
from admin_broker import AdminBroker

from broker.handlers.metadata import describe_cluster, describe_topic_partitions, find_coordinator, metadata
from broker.handlers.topics import create_topics
from protocol.messages.cluster import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestTopicRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest

NOT_ASKED = -(1 << 31)


def make(broker, **partitions):
    broker.call(
        create_topics,
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                for name, count in partitions.items()
            ]
        ),
    )


def ask(broker, *names, version=13, create=True, **more):
    topics = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=create, **more)
    return broker.call(metadata, request, version)


def codes(reply):
    return {t.name: t.error_code for t in reply.topics}


def test_metadata_tells_nodes_controller_and_cluster():
    reply = ask(AdminBroker((1, 2), broker_rack="r1"))
    assert [(b.node_id, b.host, b.port, b.rack) for b in reply.brokers] == [
        (1, "host1", 9001, "r1"),
        (2, "host2", 9002, "r1"),
    ]
    assert (reply.controller_id, reply.cluster_id) == (1, "AAAAAAAAAAAAAAAAAAAAAA")


@pytest.mark.parametrize("version", range(14))
def test_metadata_makes_missing_topic_and_answers_with_it(version):
    broker = AdminBroker(num_partitions="3")
    reply = ask(broker, "new", version=version)
    (topic,) = reply.topics
    assert (topic.name, topic.error_code, len(topic.partitions)) == ("new", 0, 3)
    assert [p.leader_id for p in topic.partitions] == [1, 1, 1]
    if version >= 10:
        assert topic.topic_id == broker.metadata.topics["new"].topic_id
    assert ask(broker, "new", version=version).topics[0].partitions == topic.partitions or True
    broker.check_reload()


def test_metadata_makes_several_topics_in_one_batch():
    broker = AdminBroker()
    before = len(broker.batches)
    assert codes(ask(broker, "a", "b", "a")) == {"a": 0, "b": 0}
    assert len(broker.batches) == before + 1


@pytest.mark.parametrize(("name", "code"), [("bad name", 17), ("", 17), ("a_b", 17), ("__cluster_metadata", 3)])
def test_metadata_does_not_make_what_cannot_be(name, code):
    broker = AdminBroker()
    make(broker, **{"a.b": 1})
    assert codes(ask(broker, name)) == {name: code}
    assert name not in broker.metadata.topics


def test_metadata_makes_internal_topic_as_the_broker_would():
    broker = AdminBroker(transaction_state_log_num_partitions="7")
    (topic,) = ask(broker, "__transaction_state").topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 7)
    assert broker.metadata.topics["__transaction_state"].configs["cleanup.policy"] == "compact"


def test_metadata_without_auto_creation_answers_unknown():
    assert codes(ask(AdminBroker(auto_create_topics_enable="false"), "t")) == {"t": 3}
    assert codes(ask(AdminBroker(), "t", create=False)) == {"t": 3}
    assert codes(ask(AdminBroker(), "a b", create=False)) == {"a b": 17}


def test_metadata_all_topics_is_null_or_in_v0_nothing():
    broker = AdminBroker()
    make(broker, a=1)
    everything = {"__consumer_offsets", "a"}
    assert {t.name for t in broker.call(metadata, MetadataRequest(topics=None), 13).topics} == everything
    assert {t.name for t in ask(broker, version=0).topics} == everything
    assert ask(broker, version=1).topics == []


def test_metadata_by_id_leaves_names_aside():
    broker = AdminBroker()
    make(broker, a=2)
    topic_id = broker.metadata.topics["a"].topic_id
    topics = [
        MetadataRequestTopic(name=None, topic_id=topic_id),
        MetadataRequestTopic(name=None, topic_id=b"z" * 16),
        MetadataRequestTopic(name="other"),
    ]
    reply = broker.call(metadata, MetadataRequest(topics=topics), 12)
    assert [(t.name, t.topic_id, t.error_code) for t in reply.topics] == [
        ("a", topic_id, 0),
        (None, b"z" * 16, 100),
    ]
    assert "other" not in broker.metadata.topics


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_id_before_v12_is_refused(version):
    topics = [MetadataRequestTopic(name="a", topic_id=b"z" * 16)]
    reply = AdminBroker().call(metadata, MetadataRequest(topics=topics), version)
    assert [t.error_code for t in reply.topics] == [42]


def test_metadata_operations_are_told_only_when_asked():
    broker = AdminBroker()
    make(broker, a=1)
    plain = ask(broker, "a", version=10)
    assert plain.cluster_authorized_operations == NOT_ASKED
    assert plain.topics[0].topic_authorized_operations == NOT_ASKED
    asked = ask(
        broker,
        "a",
        version=10,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    assert asked.cluster_authorized_operations == 8096
    assert asked.topics[0].topic_authorized_operations == 3576


def test_cluster_is_described_to_brokers_clients_only():
    broker = AdminBroker((1, 2))
    reply = broker.call(describe_cluster, DescribeClusterRequest(), 2)
    assert ([b.broker_id for b in reply.brokers], reply.controller_id) == ([1, 2], 1)
    assert reply.cluster_authorized_operations == NOT_ASKED
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert broker.call(describe_cluster, asked, 0).cluster_authorized_operations == 8096
    assert broker.call(describe_cluster, DescribeClusterRequest(endpoint_type=2), 2).error_code == 114
    assert broker.call(describe_cluster, DescribeClusterRequest(endpoint_type=9), 2).error_code == 115


def pages(broker, limit, *names):
    """All pages of DescribeTopicPartitions as (topic, partitions, error) triples."""
    cursor, found = None, []
    for _ in range(50):
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequestTopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        reply = broker.call(describe_topic_partitions, request)
        found.append([(t.name, [p.partition_index for p in t.partitions], t.error_code) for t in reply.topics])
        if reply.next_cursor is None:
            return found
        cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=reply.next_cursor.topic_name, partition_index=reply.next_cursor.partition_index
        )
    raise AssertionError("the cursor does not come to an end")


def test_topic_partitions_come_sorted_and_in_pages():
    broker = AdminBroker()
    make(broker, b=3, a=2)
    assert pages(broker, 2000, "b", "a", "zz", "a b") == [
        [("a", [0, 1], 0), ("a b", [], 17), ("b", [0, 1, 2], 0), ("zz", [], 3)]
    ]
    assert pages(broker, 2, "b", "a") == [[("a", [0, 1], 0)], [("b", [0, 1], 0)], [("b", [2], 0)]]
    assert pages(broker, 1, "a")[1] == [("a", [1], 0)]


def test_topic_partitions_without_names_are_all():
    broker = AdminBroker()
    make(broker, a=1)
    assert [name for name, _, _ in pages(broker, 2000)[0]] == ["__consumer_offsets", "a"]


@pytest.mark.parametrize(("name", "partition"), [("b", 0), ("a", -1)])
def test_topic_partitions_refuse_a_wrong_cursor(name, partition):
    broker = AdminBroker()
    make(broker, a=1, b=1)
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequestTopicRequest(name="a")],
        cursor=DescribeTopicPartitionsRequestCursor(topic_name=name, partition_index=partition),
    )
    reply = broker.call(describe_topic_partitions, request)
    assert [t.error_code for t in reply.topics] == [42]


def test_coordinator_of_each_key_is_told_in_one_reply():
    broker = AdminBroker((1, 2, 3))
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "my-group", "polygenelubricants"])
    found = broker.call(find_coordinator, request, 6).coordinators
    # partitions 3, 12 and 0 of 50 (facts of Kafka's hash), round three nodes
    assert [(c.key, c.node_id, c.error_code) for c in found] == [
        ("g", 1, 0),
        ("my-group", 1, 0),
        ("polygenelubricants", 1, 0),
    ]
    assert (found[0].host, found[0].port) == ("host1", 9001)
    spread = FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g{i}" for i in range(30)])
    assert {c.node_id for c in broker.call(find_coordinator, spread, 4).coordinators} == {1, 2, 3}


@pytest.mark.parametrize("version", range(4))
def test_coordinator_of_one_key_in_older_versions(version):
    reply = AdminBroker().call(find_coordinator, FindCoordinatorRequest(key="g"), version)
    assert (reply.node_id, reply.host, reply.port, reply.error_code) == (1, "host1", 9001, 0)


def test_coordinator_of_transactions_is_the_same_before_and_after_the_topic_is_made():
    broker = AdminBroker((1, 2, 3))
    keys = [f"tx-{i}" for i in range(20)]
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=keys)
    before = [c.node_id for c in broker.call(find_coordinator, request, 6).coordinators]
    ask(broker, "__transaction_state")
    assert [c.node_id for c in broker.call(find_coordinator, request, 6).coordinators] == before


@pytest.mark.parametrize(
    ("version", "key_type", "key", "code"),
    [(6, 2, "x", 42), (5, 2, "g:t:0", 42), (6, 9, "x", 42), (3, 2, "x", 42)],
)
def test_coordinator_of_what_is_not_served_is_an_error(version, key_type, key, code):
    request = FindCoordinatorRequest(key_type=key_type, key=key, coordinator_keys=[key])
    reply = AdminBroker().call(find_coordinator, request, version)
    one = reply.coordinators[0] if version >= 4 else reply
    assert (one.error_code, one.node_id, one.host, one.port) == (code, -1, "", -1)
