"""DogStatsD from a running broker to a socket of ours."""

from __future__ import annotations

import socket
import time

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition


@pytest.fixture
def agent():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(60)
        yield agent


def heard(agent: socket.socket, wanted: set[str]) -> dict[str, str]:
    """What was sent until every wanted metric has come: name with tags -> value with type."""
    found: dict[str, str] = {}
    while not wanted <= found.keys():
        try:
            lines = agent.recv(65536).decode().splitlines()
        except TimeoutError:
            pytest.fail(f"{wanted - found.keys()} not among {found}")
        for line in lines:
            name, _, rest = line.partition(":")
            value, kind, *tags = rest.split("|")
            found[name + "".join(tags)] = f"{value}|{kind}"
    return found


def test_requests_and_sizes_arrive_at_the_agent_last_of_all_when_the_broker_stops(agent, broker_factory):
    broker = broker_factory(statsd=f"127.0.0.1:{agent.getsockname()[1]}")
    config = broker.client_config("kafka-python")
    producer = KafkaProducer(**config)
    for _ in range(3):
        producer.send("t", b"x").get(60)
    producer.close()
    consumer = KafkaConsumer(**config, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition("t", 0)])
    while not consumer.poll(timeout_ms=100):
        pass
    consumer.commit()
    consumer.close()
    broker.stop()  # sends the sizes, which are due every tenth second only
    found = heard(agent, {"kafka.consumer_lag#consumer_group:g,topic:t,partition:0", "momus_groups"})
    assert found["momus_requests_total#api:Produce"].endswith("|c")
    assert found["kafka.broker_offset#topic:t,partition:0"] == "3|g"
    assert found["kafka.consumer_offset#consumer_group:g,topic:t,partition:0"] == "3|g"
    assert found["kafka.consumer_lag#consumer_group:g,topic:t,partition:0"] == "0|g"
    assert int(found["momus_log_bytes#topic:t,partition:0"].removesuffix("|g")) > 0


def test_metrics_go_on_from_zero_after_a_reset(agent, broker_factory):
    broker = broker_factory(statsd=f"127.0.0.1:{agent.getsockname()[1]}")
    for reset in (True, False):
        producer = KafkaProducer(**broker.client_config("kafka-python"))
        producer.send("t", b"x").get(60)
        producer.close()
        found = heard(agent, {"momus_requests_total#api:Produce"})
        assert found["momus_requests_total#api:Produce"] == "1|c"
        if reset:
            broker.control.ask("POST", "/_admin/reset")
    assert not any(value.startswith("-") for value in found.values())


def test_broker_whose_agent_is_gone_serves_all_the_same(agent, broker_factory):
    address = f"127.0.0.1:{agent.getsockname()[1]}"
    agent.close()
    broker = broker_factory(statsd=address)
    producer = KafkaProducer(**broker.client_config("kafka-python"))
    assert producer.send("t", b"x").get(60).offset == 0
    time.sleep(2.5)  # a few intervals
    assert producer.send("t", b"x").get(60).offset == 1
    producer.close()
    assert broker.stop() == 0
    assert "Traceback" not in broker.log
