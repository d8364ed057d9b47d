"""/metrics: read by Prometheus' own parser, and equal to what the admin API of a client says."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from momus.control import ControlError

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana-dashboard.json"
Sample = tuple[str, frozenset[tuple[str, str]]]


def scrape(broker, cluster: str = "") -> dict[Sample, float]:
    """(name, labels) -> value."""
    path = f"/_admin/clusters/{cluster}/metrics" if cluster else "/metrics"
    with urllib.request.urlopen(f"http://{broker.control.address}{path}", timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(found: dict[Sample, float], name: str, **labels: object) -> float:
    return found[name, frozenset((key, str(each)) for key, each in labels.items())]


@pytest.fixture
def busy(broker_factory):
    """A broker with two topics, one of three partitions, and a group that is two records behind."""
    broker = broker_factory()
    config = broker.client_config("kafka-python")
    broker.create_topic("orders", partitions=3)
    with_orders = KafkaProducer(**config)
    for number in range(9):
        with_orders.send("orders", b"x", partition=number % 3).get(60)
    with_orders.close()
    consumer = KafkaConsumer(**config, group_id="shop", enable_auto_commit=False)
    consumer.assign([TopicPartition("orders", index) for index in range(3)])
    consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(3, "", -1)})
    consumer.commit({TopicPartition("orders", 1): OffsetAndMetadata(1, "", -1)})
    consumer.close()
    return broker


def test_offsets_and_lag_are_those_that_a_client_sees(busy):
    found = scrape(busy)
    config = busy.client_config("kafka-python")
    consumer, admin = KafkaConsumer(**config), KafkaAdminClient(**config)
    partitions = [TopicPartition("orders", index) for index in range(3)]
    ends, beginnings = consumer.end_offsets(partitions), consumer.beginning_offsets(partitions)
    committed = admin.list_group_offsets("shop")
    consumer.close()
    admin.close()
    for partition in partitions:
        labels = {"topic": "orders", "partition": partition.partition}
        assert value(found, "kafka_topic_partition_current_offset", **labels) == ends[partition] == 3
        assert value(found, "kafka_topic_partition_oldest_offset", **labels) == beginnings[partition] == 0
        assert value(found, "kafka_topic_partition_under_replicated_partition", **labels) == 0
        if partition in committed:
            offset = committed[partition].offset
            mine = {"consumergroup": "shop", **labels}
            assert value(found, "kafka_consumergroup_current_offset", **mine) == offset
            assert value(found, "kafka_consumergroup_lag", **mine) == 3 - offset
    assert value(found, "kafka_consumergroup_lag_sum", consumergroup="shop", topic="orders") == 2
    assert value(found, "kafka_topic_partitions", topic="orders") == 3
    assert value(found, "kafka_brokers") == 1
    assert value(found, "momus_group_partitions_not_loaded") == 0


def test_latencies_and_counters_are_those_of_the_requests(busy):
    scrape(busy)  # begins to measure
    before = scrape(busy)
    config = busy.client_config("kafka-python")
    producer = KafkaProducer(**config)
    for _ in range(5):
        producer.send("orders", b"x").get(60)
    producer.close()
    after = scrape(busy)

    def more(name: str, **labels: object) -> float:
        key = name, frozenset((each, str(label)) for each, label in labels.items())
        return after[key] - before.get(key, 0.0)

    assert more("momus_requests_total", api="Produce") == 5
    for part in ("queue", "work", "total"):
        assert more("momus_request_seconds_count", api="Produce", part=part) == 5
        assert more("momus_request_seconds_bucket", api="Produce", part=part, le="+Inf") == 5
    assert more("momus_request_seconds_sum", api="Produce", part="total") > 0
    assert more("momus_bytes_in_total") > 0


def test_each_cluster_has_its_own_metrics_and_a_reset_begins_anew(busy):
    other = busy.create_cluster(name="other")
    other.produce("tea", "x")
    mine, theirs = scrape(busy), scrape(busy, "other")
    assert value(theirs, "kafka_topic_partition_current_offset", topic="tea", partition=0) == 1
    assert not any(("topic", "tea") in labels for _, labels in mine)
    assert not any(("topic", "orders") in labels for _, labels in theirs)
    other.reset()
    assert not any(("topic", "tea") in labels for _, labels in scrape(busy, "other"))


def test_offsets_of_logs_that_nobody_has_opened_since_a_restart_are_told(busy):
    busy.kill()
    busy.start()
    found = scrape(busy)
    assert value(found, "kafka_topic_partition_current_offset", topic="orders", partition=2) == 3
    assert value(found, "kafka_consumergroup_lag", consumergroup="shop", topic="orders", partition=1) == 2


def test_lag_that_is_not_known_is_left_out_and_not_taken_for_none(broker_factory, tmp_path):
    """One of two logs cannot be read: the sum was the lag of the other, and the page said 0."""
    broker = broker_factory(data_dir=tmp_path / "data")
    broker.create_topic("orders", partitions=2)
    for index in range(2):
        broker.produce("orders", *"abc", partition=index)
    consumer = KafkaConsumer(**broker.client_config("kafka-python"), group_id="shop", enable_auto_commit=False)
    consumer.assign([TopicPartition("orders", index) for index in range(2)])
    consumer.commit({TopicPartition("orders", index): OffsetAndMetadata(1, "", -1) for index in range(2)})
    consumer.close()
    assert value(scrape(broker), "kafka_consumergroup_lag_sum", consumergroup="shop", topic="orders") == 4
    broker.kill()
    (log,) = (tmp_path / "data" / "orders-0").glob("*.log")
    log.unlink()
    log.mkdir()
    broker.start()
    assert broker.committed("shop") == {("orders", 0): 1, ("orders", 1): 1}
    lags = {name: found for (name, _), found in scrape(broker).items() if name.startswith("kafka_consumergroup_lag")}
    assert lags == {"kafka_consumergroup_lag": 2}
    (row,) = broker.control.ask("GET", "/_admin/groups")["groups"]
    assert "lag" not in row
    offsets = broker.control.ask("GET", "/_admin/groups/shop/details")["offsets"]
    assert [(each.get("end"), each.get("lag")) for each in offsets] == [(None, None), (3, 2)]
    for word in ("earliest", "latest"):  # both were offset 0
        with pytest.raises(ControlError, match="the log of orders-0 cannot be read"):
            broker.control.ask("POST", "/_admin/groups/shop/seek", {"to": word})
    assert broker.committed("shop") == {("orders", 0): 1, ("orders", 1): 1}


def test_names_with_quotes_and_new_lines_are_read_back_as_they_are(broker_factory):
    broker, group = broker_factory(), 'a"b\\c\nd<script>'
    broker.create_topic("t")
    consumer = KafkaConsumer(**broker.client_config("kafka-python"), group_id=group, enable_auto_commit=False)
    consumer.assign([TopicPartition("t", 0)])
    consumer.commit({TopicPartition("t", 0): OffsetAndMetadata(0, "", -1)})
    consumer.close()
    found = scrape(broker)
    assert value(found, "kafka_consumergroup_current_offset", consumergroup=group, topic="t", partition=0) == 0


def test_dashboard_asks_for_metrics_that_are_there(busy):
    scrape(busy)  # begins to measure
    consumer = KafkaConsumer("orders", **busy.client_config("kafka-python"), group_id="joins")
    consumer.poll(timeout_ms=2000)  # its first JoinGroup is answered MEMBER_ID_REQUIRED
    consumer.close()
    names = {name for name, _ in scrape(busy)}
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(queries) > 8
    asked = {name for query in queries for name in re.findall(r"\b(?:kafka|momus)_\w+", query)}
    assert asked <= names, asked - names
