"""What is different between two clusters, or snapshots of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from test_control import momus as command

import momus
from momus import Broker, Cluster
from momus.control import ControlError


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


def test_clusters_of_two_processes_are_compared_as_those_of_one(process: Broker, cluster: Cluster) -> None:
    with Broker(flush="memory") as elsewhere, process.create_cluster() as near:
        for other in (elsewhere, near):
            other.create_topics({"orders": 2, "more": 1}, config={"retention.bytes": 8888})
            other.produce("orders", "a", "b", partition=1, headers={"h": "1"}, timestamp_ms=5)
            consumer = Consumer({**other.client_config("confluent-kafka"), "group.id": "g"})
            consumer.commit(offsets=[TopicPartition("orders", 1, 2)], asynchronous=False)
            consumer.close()
        far, here = momus.diff(cluster, elsewhere), momus.diff(cluster, near)
        assert far == here
        assert far.records[("orders", 1)][1][0].value == b"b"
        assert momus.diff(elsewhere.snapshot(), cluster).offsets == {("g", "orders", 1): (2, None)}


def test_http_and_the_command_line_say_what_is_different(process: Broker, cluster: Cluster) -> None:
    before = cluster.snapshot("before")
    control = ("--control", process.control.address)
    names = (f"{cluster.name}@before", cluster.name)
    same = command("cluster", "diff", *names, *control)
    assert (same.returncode, same.stdout) == (0, "no difference\n")
    cluster.produce("orders", b"\xff", partition=0, timestamp_ms=7)
    cluster.create_topic("made", config={"retention.ms": 5})
    sides = {"first": {"cluster": cluster.name, "snapshot": "before"}, "second": {"cluster": cluster.name}}
    answer = process.control.ask("POST", "/_admin/diff", sides)
    record = {"partition": 0, "offset": 0, "timestamp_ms": 7, "key": None, "value": {"base64": "/w=="}, "headers": []}
    assert answer == {
        "different": True,
        "topics": [{"topic": "made", "second": 1}],
        "settings": [{"topic": "made", "name": "retention.ms", "second": "5"}],
        "records": [{"topic": "orders", "partition": 0, "first": [], "second": [record]}],
        "offsets": [],
        "members": [],
    }
    told = command("cluster", "diff", *names, "--json", *control)
    assert (told.returncode, json.loads(told.stdout)) == (1, answer)
    text = command("cluster", "diff", *names, *control)
    assert (text.returncode, text.stdout) == (1, f"{momus.diff(before, cluster)}\n")
    assert "topic made: none, then 1 partitions" in text.stdout
    assert len(process.control.ask("GET", "/_admin/clusters")) == 2  # the fork of the snapshot is gone
    with pytest.raises(ControlError, match="no such cluster: nowhere"):
        process.control.ask("POST", "/_admin/diff", {"first": {"cluster": "nowhere"}, "second": {}})
    with pytest.raises(ControlError, match="no-such"):
        process.control.ask("POST", "/_admin/diff", {"first": {"snapshot": "no-such"}, "second": {}})


def test_topics_are_created_all_or_none(process: Broker, cluster: Cluster) -> None:
    with pytest.raises(ControlError, match=r"topic orders: TOPIC_ALREADY_EXISTS.*; topic a b: INVALID_TOPIC"):
        cluster.create_topics({"new": 3, "orders": 1, "a b": 1})
    with pytest.raises(ControlError, match="no topic new"):
        cluster.consume("new")
    cluster.create_topics({"new": 3, "newer": 1}, replicas=2)
    made = cluster.control.ask("POST", f"{cluster.control.prefix}/create-topics", {"topics": {"last": -1}})
    assert made == [{"name": "last", "partitions": 1}]
    done = command("topic", "create", "eggs=4", "salt", "-p", "2", "-b", cluster.bootstrap_servers)
    assert done.returncode == 0, done.stderr
    for name, count in {"new": 3, "newer": 1, "eggs": 4, "salt": 2}.items():
        with pytest.raises(ControlError, match=f"has no partition {count}, but 0 to {count - 1}"):
            cluster.consume(name, partition=count)
    assert "'eggs=x' is not NAME=PARTITIONS" in command("topic", "create", "eggs=x").stderr
