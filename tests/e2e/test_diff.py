"""What is different between two clusters, or snapshots of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

import momus
from momus import Broker, Cluster


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker(seed=5) as broker:
        yield broker


@pytest.fixture
def cluster(process: Broker) -> Iterator[Cluster]:
    with process.create_cluster(brokers=2) as cluster:
        cluster.create_topics({"orders": 2, "kept": 1}, config={"retention.bytes": 9999})
        cluster.produce("orders", "a", partition=1, headers={"h": "1"})
        yield cluster


def test_nothing_is_different_between_a_cluster_and_itself(cluster: Cluster) -> None:
    difference = momus.diff(cluster.snapshot(), cluster)
    assert not difference
    assert str(difference) == "no difference"
    with cluster.fork() as fork:
        assert not momus.diff(cluster, fork)


def test_each_kind_of_difference_is_found(cluster: Cluster) -> None:
    before = cluster.snapshot()
    cluster.produce("orders", "b", "c", partition=1)
    cluster.produce("made", "x")
    consumer = Consumer({**cluster.client_config("confluent-kafka"), "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("orders", 1, 2)], asynchronous=False)
    consumer.close()
    difference = momus.diff(before, cluster)
    assert difference.topics == {"made": (None, 1)}
    assert {place: [each.value for each in found] for place, (_, found) in difference.records.items()} == {
        ("made", 0): [b"x"],
        ("orders", 1): [b"b", b"c"],
    }
    assert all(not first for first, _ in difference.records.values())
    assert difference.offsets == {("g", "orders", 1): (None, 2)}
    text = str(difference)
    assert "topic made: none, then 1 partitions" in text
    assert "orders-1: only the second has offset 1, key None, value b'b'" in text
    assert "group g at orders-1: None, then 2" in text
    back = momus.diff(cluster, before)
    assert back.offsets == {("g", "orders", 1): (2, None)}
    before.restore()
    assert not momus.diff(before, cluster)


def test_settings_and_members_of_two_clusters_are_compared(process: Broker, cluster: Cluster) -> None:
    with process.create_cluster() as other:
        other.create_topics({"orders": 3, "kept": 1}, config={"retention.bytes": 9999, "retention.ms": 1000})
        other.produce("orders", "a", partition=1, headers={"h": "2"})
        consumer = Consumer({**other.client_config("confluent-kafka"), "group.id": "g", "client.id": "one"})
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        difference = momus.diff(cluster, other)
        consumer.close()
    assert difference.topics == {"orders": (2, 3)}
    assert difference.settings == {("kept", "retention.ms"): (None, "1000"), ("orders", "retention.ms"): (None, "1000")}
    ((mine,), (theirs,)) = difference.records["orders", 1]
    assert (mine.headers, theirs.headers) == ([("h", b"1")], [("h", b"2")])
    assert difference.members.keys() == {"g"}
    assert difference.members["g"][0] == []
    assert len(difference.members["g"][1]) == 1
