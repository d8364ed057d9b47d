"""CreateTopics, DeleteTopics and CreatePartitions: what is made, and what is refused with which code."""

from __future__ import annotations

import pytest
from admin_broker import AdminBroker

from broker.handlers.topics import create_partitions, create_topics, delete_topics
from protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)


def topic(name, partitions=1, factor=1, assignments=(), **configs):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(nodes)) for index, nodes in assignments
        ],
        configs=[CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()],
    )


def create(broker, *topics, version=None, validate_only=False):
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return {t.name: t for t in broker.call(create_topics, request, version).topics}


def codes(replies):
    return {name: reply.error_code for name, reply in replies.items()}


def grow(broker, *topics, validate_only=False):
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [CreatePartitionsAssignment(broker_ids=nodes) for nodes in assignments],
            )
            for name, count, assignments in topics
        ],
        validate_only=validate_only,
    )
    return {r.name: r for r in broker.call(create_partitions, request).results}


def delete(broker, *topics):
    states = [DeleteTopicState(name=name, topic_id=topic_id or bytes(16)) for name, topic_id in topics]
    return broker.call(delete_topics, DeleteTopicsRequest(topics=states)).responses


def test_create_makes_topic_with_id_and_tells_its_configs():
    broker = AdminBroker()
    reply = create(broker, topic("t", 3, retention_ms="5"))["t"]
    made = broker.metadata.topics["t"]
    assert (reply.error_code, reply.error_message) == (0, None)
    assert (reply.num_partitions, reply.replication_factor) == (3, 1)
    assert reply.topic_id == made.topic_id != bytes(16)
    assert len(made.partitions) == 3
    told = {c.name: (c.value, c.config_source) for c in reply.configs}
    assert len(told) == 37
    assert told["retention.ms"] == ("5", 1)
    assert told["segment.bytes"] == ("1073741824", 5)
    assert broker.metadata.value(made, "retention.ms") == 5
    broker.check_reload()


def test_create_is_one_batch_for_all_topics_of_a_request():
    broker = AdminBroker()
    before = len(broker.batches)
    create(broker, topic("a"), topic("b"), topic("a b"))
    assert len(broker.batches) == before + 1
    assert set(broker.metadata.topics) == {"__consumer_offsets", "a", "b"}


@pytest.mark.parametrize("version", range(2, 8))
def test_create_is_answered_in_every_version(version):
    broker = AdminBroker()
    assert codes(create(broker, topic("t"), topic("é"), version=version)) == {"t": 0, "é": 17}


def test_create_defaults_are_the_brokers():
    broker = AdminBroker((1, 2), num_partitions="4", default_replication_factor="2")
    reply = create(broker, topic("t", -1, -1))["t"]
    assert (reply.num_partitions, reply.replication_factor) == (4, 2)


def test_create_default_replication_shrinks_to_the_nodes():
    assert create(AdminBroker(default_replication_factor="3"), topic("t", 1, -1))["t"].error_code == 0


def test_create_spreads_leaders_over_nodes():
    broker = AdminBroker((1, 2, 3))
    create(broker, topic("a", 3), topic("b", 3))
    for name in "ab":
        assert sorted(p.leader for p in broker.metadata.topics[name].partitions) == [1, 2, 3]
    create(broker, *(topic(f"single{i}") for i in range(3)))
    leaders = [broker.metadata.topics[f"single{i}"].partitions[0].leader for i in range(3)]
    assert sorted(leaders) == [1, 2, 3]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic(""), 17),
        (topic("."), 17),
        (topic("x" * 250), 17),
        (topic("a/b"), 17),
        (topic("/" * 32_000), 17),
        (topic("t", **{"n" * 32_000: "1"}), 40),
        (topic("taken"), 36),
        (topic("has.dot"), 36),
        (topic("has_dot"), 17),
        (topic("__consumer_offsets"), 36),
        (topic("__transaction_state"), 42),
        (topic("__cluster_metadata"), 42),
        (topic("t", 0), 37),
        (topic("t", -2), 37),
        (topic("t", 1, 0), 38),
        (topic("t", 1, -2), 38),
        (topic("t", 1, 2), 38),
        (topic("t", retention_ms="abc"), 40),
        (topic("t", retention_ms="-2"), 40),
        (topic("t", nope="1"), 40),
        (topic("t", retention_ms=None), 40),
        (topic("t", remote_storage_enable="true"), 40),
        (topic("t", -1, -1, [(0, [1]), (2, [1])]), 39),
        (topic("t", -1, -1, [(0, [1]), (0, [1])]), 39),
        (topic("t", -1, -1, [(0, [9])]), 39),
        (topic("t", -1, -1, [(0, [1, 1])]), 39),
        (topic("t", -1, -1, [(0, [])]), 39),
        (topic("t", 1, -1, [(0, [1])]), 42),
        (topic("t", -1, 1, [(0, [1])]), 42),
        (topic("t", 10_001), 44),
    ],
)
def test_create_refuses_with_kafkas_code(asked, code):
    broker = AdminBroker()
    create(broker, topic("taken"), topic("has.dot"))
    before = len(broker.batches)
    reply = create(broker, asked)[asked.name]
    assert reply.error_code == code
    assert reply.error_message
    assert len(broker.batches) == before


def test_create_twice_in_a_request_makes_neither():
    broker = AdminBroker()
    assert codes(create(broker, topic("d"), topic("d"), topic("e"))) == {"d": 42, "e": 0}
    assert "d" not in broker.metadata.topics


def test_create_assignment_is_kept():
    broker = AdminBroker((1, 2))
    create(broker, topic("t", -1, -1, [(1, [2, 1]), (0, [1, 2])]))
    assert [p.replicas for p in broker.metadata.topics["t"].partitions] == [[1, 2], [2, 1]]
    assert [p.leader for p in broker.metadata.topics["t"].partitions] == [1, 2]


def test_create_validate_only_writes_nothing():
    broker = AdminBroker()
    assert codes(create(broker, topic("t"), validate_only=True)) == {"t": 0}
    assert "t" not in broker.metadata.topics


def test_delete_by_name_and_by_id():
    broker = AdminBroker()
    create(broker, topic("a", retention_ms="7"), topic("b"))
    replies = delete(broker, ("a", None), (None, broker.metadata.topics["b"].topic_id))
    assert {r.name: r.error_code for r in replies} == {"a": 0, "b": 0}
    assert set(broker.metadata.topics) == {"__consumer_offsets"}
    broker.check_reload()


def test_delete_then_create_gives_another_id_and_no_old_configs():
    broker = AdminBroker()
    old = create(broker, topic("t", retention_ms="7"))["t"].topic_id
    delete(broker, ("t", None))
    new = create(broker, topic("t"))["t"].topic_id
    assert new != old
    assert broker.metadata.topics["t"].configs == {}
    broker.check_reload()


def test_delete_frees_the_names_that_collided():
    broker = AdminBroker()
    create(broker, topic("a.b"))
    delete(broker, ("a.b", None))
    assert create(broker, topic("a_b"))["a_b"].error_code == 0


def test_delete_refuses_what_is_unknown_or_said_twice():
    broker = AdminBroker()
    ids = {name: create(broker, topic(name))[name].topic_id for name in ("a", "b", "c")}
    replies = delete(
        broker,
        ("nope", None),
        (None, b"x" * 16),
        (None, None),
        ("a", ids["a"]),
        ("b", None),
        ("b", None),
        ("c", None),
        (None, ids["c"]),
        ("__consumer_offsets", None),
    )
    assert sorted(r.error_code for r in replies) == [3, 17, 42, 42, 42, 42, 100]
    assert {"a", "b", "c", "__consumer_offsets"} == set(broker.metadata.topics)


def test_delete_switched_off_is_told():
    broker = AdminBroker(delete_topic_enable="false")
    create(broker, topic("a"))
    assert delete(broker, ("a", None))[0].error_code == 73
    request = DeleteTopicsRequest(topic_names=["a"])
    assert broker.call(delete_topics, request, 2).responses[0].error_code == 42
    assert "a" in broker.metadata.topics


@pytest.mark.parametrize("version", range(1, 6))
def test_delete_by_names_in_older_versions(version):
    broker = AdminBroker()
    create(broker, topic("a"))
    replies = broker.call(delete_topics, DeleteTopicsRequest(topic_names=["a", "b"]), version).responses
    assert {r.name: r.error_code for r in replies} == {"a": 0, "b": 3}


def test_grow_adds_partitions_and_keeps_the_others():
    broker = AdminBroker((1, 2))
    create(broker, topic("t", 1))
    first = broker.metadata.topics["t"].partitions[0].leader
    assert codes(grow(broker, ("t", 4, None))) == {"t": 0}
    leaders = [p.leader for p in broker.metadata.topics["t"].partitions]
    assert leaders == [first, 3 - first, first, 3 - first]
    broker.check_reload()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (("nope", 2, None), 3),
        (("t", 2, None), 37),
        (("t", 1, None), 37),
        (("t", -1, None), 37),
        (("__consumer_offsets", 60, None), 37),
        (("t", 4, [[1]]), 39),
        (("t", 3, [[9]]), 39),
        (("t", 3, [[]]), 39),
        (("t", 3, []), 39),
        (("t", 1_000_000, None), 44),
    ],
)
def test_grow_refuses_with_kafkas_code(asked, code):
    broker = AdminBroker()
    create(broker, topic("t", 2))
    assert grow(broker, asked)[asked[0]].error_code == code
    assert len(broker.metadata.topics["t"].partitions) == 2


def test_grow_validate_only_and_twice_named_write_nothing():
    broker = AdminBroker()
    create(broker, topic("t"))
    assert grow(broker, ("t", 2, None), validate_only=True)["t"].error_code == 0
    assert grow(broker, ("t", 2, None), ("t", 3, None))["t"].error_code == 42
    assert len(broker.metadata.topics["t"].partitions) == 1


def test_grow_with_assignment_is_kept():
    broker = AdminBroker((1, 2))
    create(broker, topic("t", 1))
    assert grow(broker, ("t", 2, [[2]]))["t"].error_code == 0
    assert broker.metadata.topics["t"].partitions[1].replicas == [2]
