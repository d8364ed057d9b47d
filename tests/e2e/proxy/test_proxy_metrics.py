"""Metrics and traces of a proxy: what its clients do, and nothing of what only the cluster knows."""

from __future__ import annotations

import socket
import urllib.request

import pytest
from clientwork import LIMIT_S, until
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from otlp_collector import Collector, attributes

from momus import Broker

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
OF_THE_CLUSTER = ("momus_topics", "momus_groups", "kafka_topic", "kafka_consumergroup", "momus_log_bytes")


def send(broker: Broker, topic: str, headers: list[tuple[str, bytes]] | None = None) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="maker")
    producer.send(topic, b"v", headers=headers or []).get(LIMIT_S)
    producer.close()


def test_statsd_and_metrics_tell_of_requests_and_not_of_a_cluster_that_the_proxy_has_not(upstream):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(LIMIT_S)
        address = f"127.0.0.1:{agent.getsockname()[1]}"
        with Broker(upstream=upstream.bootstrap_servers, statsd=address) as proxy:
            send(proxy, "metrics")
            with urllib.request.urlopen(f"http://{proxy.control.address}/metrics", timeout=LIMIT_S) as answer:
                scraped = answer.read().decode()
            proxy.stop()  # with its last word come the gauges
        lines: list[str] = []
        while not any(line.startswith("momus_parked_requests") for line in lines):
            lines += agent.recv(65536).decode().splitlines()
    for text in (lines, scraped.splitlines()):
        assert [line for line in text if line.startswith(OF_THE_CLUSTER)] == []
    assert "momus_requests_total:1|c|#api:Produce" in lines
    assert "momus_request_seconds_count:1|c|#api:Produce,part:total" in lines
    assert 'momus_requests_total{api="Produce"} 1.0' in scraped
    assert "kafka_brokers 3.0" in scraped


@pytest.fixture
def collector(monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    made = Collector()
    yield made
    made.close()


def test_traces_of_a_proxy_have_parents_links_topics_and_errors(upstream, collector):
    upstream.create_topic("traced")
    with Broker(upstream=upstream.bootstrap_servers, otel=collector.url) as proxy:
        send(proxy, "traced", [("traceparent", f"00-{TRACE}-{PARENT}-01".encode())])
        consumer = KafkaConsumer(bootstrap_servers=proxy.bootstrap_servers, auto_offset_reset="earliest")
        consumer.assign([TopicPartition("traced", 0)])
        until(lambda: any(consumer.poll(200).values()), "records")
        consumer.close()
        until(lambda: any(span.links for span in collector.named("Fetch")), "spans")
        (span,) = collector.named("Produce")
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
        assert span.end_time_unix_nano > span.start_time_unix_nano > 1_700_000_000 * 10**9
        said = attributes(span)
        assert (said["messaging.client.id"], said["kafka.topics"]) == ("maker", ["traced"])
        fetch = next(span for span in collector.named("Fetch") if span.links)
        assert [link.span_id for link in fetch.links] == [span.span_id]
        proxy.faults.inject_error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="traced", trigger="once")
        send(proxy, "traced")  # it tries again
        until(lambda: len(collector.named("Produce")) == 3, "spans")
        assert [attributes(each).get("kafka.errors") for each in collector.named("Produce")] == [
            None,
            ["NOT_LEADER_OR_FOLLOWER"],
            None,
        ]
