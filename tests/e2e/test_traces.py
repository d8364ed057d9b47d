"""Traces, as a collector gets them: what a span says, whose child it is, and what happens where nobody listens."""

from __future__ import annotations

import threading
import urllib.request
from collections import Counter
from typing import Any

import pytest
from clientwork import LIMIT_S, until
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from otlp_collector import Collector, attributes

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def collector(monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    made = Collector()
    yield made
    made.close()


def spans_of(broker: Any) -> dict[str, float]:
    """What /metrics says of spans."""
    with urllib.request.urlopen(f"http://{broker.control.address}/metrics", timeout=LIMIT_S) as answer:
        text = answer.read().decode()
    said = [line for line in text.splitlines() if line.startswith("momus_spans_total{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in said}


def produce(broker: Any, headers: list[tuple[str, bytes]], topic: str = "t", client_id: str = "maker") -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=client_id)
    try:
        producer.send(topic, b"v", headers=headers).get(LIMIT_S)
    finally:
        producer.close()


def read(broker: Any, topic: str = "t") -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, 0)])
        until(lambda: any(consumer.poll(200).values()), "records")
    finally:
        consumer.close()


def test_produce_is_the_child_of_its_records_and_fetch_is_linked_to_it(broker_factory, collector):
    broker = broker_factory(otel=collector.url)
    produce(broker, [("traceparent", f"00-{TRACE}-{PARENT}-01".encode())])
    read(broker)
    until(lambda: any(span.links for span in collector.named("Fetch")), "spans")
    assert collector.paths == {"/v1/traces"}
    (span,) = collector.named("Produce")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert span.end_time_unix_nano > span.start_time_unix_nano > 1_700_000_000 * 10**9
    said = attributes(span)
    assert said["messaging.system"] == "kafka"
    assert said["messaging.client.id"] == "maker"
    assert said["kafka.topics"] == ["t"]
    assert said["kafka.api.key"] == 0
    assert "kafka.errors" not in said
    fetch = next(span for span in collector.named("Fetch") if span.links)
    assert [link.span_id for link in fetch.links] == [span.span_id]
    assert fetch.links[0].trace_id == span.trace_id
    assert fetch.parent_span_id == b""


def test_record_with_a_broken_traceparent_has_no_parent(broker_factory, collector):
    broker = broker_factory(otel=collector.url)
    produce(broker, [("traceparent", b"\xff nonsense"), ("traceparent", b"00-0-0-01")])
    until(lambda: bool(collector.named("Produce")), "spans")
    (span,) = collector.named("Produce")
    assert span.parent_span_id == b""
    assert not span.links


def test_errors_are_said(broker_factory, collector):
    from kafka.errors import KafkaError as ClientError

    broker = broker_factory(otel=collector.url)
    broker.faults.inject_error("Produce", "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(ClientError):
        produce(broker, [])
    until(lambda: bool(collector.named("Produce")), "spans")
    span = collector.named("Produce")[0]
    assert attributes(span)["kafka.errors"] == ["TOPIC_AUTHORIZATION_FAILED"]
    assert span.status.code == 2


def test_counts_are_in_the_metrics_and_reset_goes_on(broker_factory, collector):
    broker = broker_factory(otel=collector.url)
    produce(broker, [])
    until(lambda: spans_of(broker).get("exported", 0) > 0, "spans")
    broker.reset()
    before = len(collector.named("Produce"))
    produce(broker, [])
    until(lambda: len(collector.named("Produce")) > before, "spans")
    assert Counter(spans_of(broker))["dropped"] == 0


def test_collector_that_hangs_costs_spans_and_no_request(broker_factory, collector, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "5")
    collector.hold = threading.Event()
    broker = broker_factory(otel=collector.url)
    for _ in range(6):
        produce(broker, [])
    until(lambda: spans_of(broker)["dropped"] > 0, "spans")
    assert spans_of(broker)["exported"] == 0
    collector.hold.set()
    until(lambda: spans_of(broker)["exported"] > 0, "spans")


def test_collector_that_is_gone_is_counted(broker_factory, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    refusing = Collector(status=400)
    broker = broker_factory(otel=refusing.url, log_level="critical")
    produce(broker, [])
    until(lambda: spans_of(broker).get("failed", 0) > 0, "spans")
    refusing.close()


def test_without_traces_nothing_of_them_is_loaded_or_counted(broker_factory):
    broker = broker_factory()
    produce(broker, [])
    assert spans_of(broker) == {}
