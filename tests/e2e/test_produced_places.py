"""Where records go that a test produces: by their key as Java's producer sends it, else round, the same in each run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from momus import Broker, Cluster
from momus.control import ControlError


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker(seed=5) as broker:
        yield broker


@pytest.fixture
def cluster(process: Broker) -> Iterator[Cluster]:
    with process.create_cluster() as cluster:
        cluster.create_topic("t", 3)
        yield cluster


def partitions(places: list[tuple[int, int]]) -> list[int]:
    return [partition for partition, _ in places]


def test_key_goes_where_a_client_with_javas_partitioner_sends_it(cluster: Cluster) -> None:
    cluster.create_topic("keyed", 7)
    landed: dict[bytes, int] = {}
    producer = Producer({**cluster.client_config("confluent"), "partitioner": "murmur2"})
    for key in (b"a", b"order-17", b"x" * 33, b"\xff\xfe", b""):
        producer.produce("keyed", b"v", key=key, on_delivery=lambda _, m: landed.__setitem__(m.key(), m.partition()))
    producer.flush(60)
    assert len(landed) == 5
    assert {key: cluster.produce("keyed", "ours", key=key)[0][0] for key in landed} == landed


def test_records_without_a_key_go_round_from_partition_0_and_further_calls_go_on(cluster: Cluster) -> None:
    assert cluster.produce("t", "a", "b", None, "d") == [(0, 0), (1, 0), (2, 0), (0, 1)]
    assert partitions(cluster.produce("t", "keyed", "too", key="table 4", partition=None)) == [2, 2]
    assert cluster.produce("t", "named", partition=2) == [(2, 3)]
    with pytest.raises(ControlError, match="t has no partition 9, but 0 to 2"):
        cluster.produce("t", "x", partition=9)
    another = Cluster.found(cluster.control, cluster.control.ask("GET", cluster.control.prefix))
    assert cluster.produce("t", "e") == [(1, 1)]
    assert another.produce("t", "f") == [(2, 4)]
    assert cluster.produce("made", "x") == [(0, 0)]


def test_round_begins_at_partition_0_again_where_the_data_does(cluster: Cluster, process: Broker) -> None:
    before = cluster.snapshot()
    assert partitions(cluster.produce("t", "a", "b")) == [0, 1]
    with cluster.fork() as fork, process.create_cluster() as other:
        other.create_topic("t", 3)
        assert [each.produce("t", "c")[0][0] for each in (fork, other, cluster)] == [0, 0, 2]
    cluster.restore(before)
    assert partitions(cluster.produce("t", "a", "b")) == [0, 1]
    cluster.reset()
    cluster.create_topic("t", 3)
    assert partitions(cluster.produce("t", "a", "b")) == [0, 1]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics(["t"])["t"].result(60)
    cluster.create_topic("t", 3)
    assert partitions(cluster.produce("t", "a", "b")) == [0, 1]


def test_round_begins_at_partition_0_after_a_start() -> None:
    with Broker() as broker:
        broker.create_topic("t", 3)
        assert broker.produce("t", "a", "b") == [(0, 0), (1, 0)]
        broker.kill()
        broker.start()
        assert broker.produce("t", "c") == [(0, 1)]


def test_dicts_and_lists_are_json(cluster: Cluster) -> None:
    given = [{"cups": 2, "größe": "ß"}, [1, None, True], {"base64": "AA=="}, {}]
    cluster.produce("t", *given, partition=0)
    values = [record.value or b"" for record in cluster.consume("t")]
    assert [json.loads(each) for each in values] == given
    assert values[0] == '{"cups":2,"größe":"ß"}'.encode()
    with pytest.raises(ValueError, match="JSON"):
        cluster.produce("t", {"n": float("nan")})
    with pytest.raises(TypeError, match="serializable"):
        cluster.produce("t", {"n": object()})


def test_http_takes_json_and_bytes_as_values(cluster: Cluster) -> None:
    path = f"{cluster.control.prefix}/topics/t/records"
    values = [{"cups": 2}, [1], {"base64": "/w=="}, {"base64": "/w==", "more": 1}, "text", None]
    rows = [{"value": value, "partition": 1} for value in values]
    assert cluster.control.ask("POST", path, {"records": [*rows, {"value": "round"}]}) == [
        *({"partition": 1, "offset": offset} for offset in range(6)),
        {"partition": 0, "offset": 0},
    ]
    assert [record.value for record in cluster.consume("t", partition=1)] == [
        b'{"cups":2}',
        b"[1]",
        b"\xff",
        b'{"base64":"/w==","more":1}',
        b"text",
        None,
    ]
    for wrong in (5, True, {"base64": 5}, {"base64": "?"}, ["\ud800"]):
        with pytest.raises(ControlError, match=r"records\[0\].value"):
            cluster.control.ask("POST", path, {"records": [{"value": wrong}]})
    with pytest.raises(ControlError, match=r'"records\[0\].partition" and .* take whole numbers'):
        cluster.control.ask("POST", path, {"records": [{"value": "x", "partition": "0"}]})
