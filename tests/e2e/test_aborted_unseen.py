"""What the page shows of a topic is what a consumer sees: aborted records on no route, unless they are asked for."""

from __future__ import annotations

import json
from http.client import HTTPConnection

import pytest
from confluent_kafka import Producer

SEEN = ["before", "kept"]
ROUTES = ("messages?", "search?value=e", "tail?")


def values(broker, name, route, more=""):
    """The values of what a route shows."""
    host, _, port = broker.control.address.rpartition(":")
    client = HTTPConnection(host, int(port), timeout=60)
    client.request("GET", f"/_admin/clusters/{broker.name}/topics/{name}/{route}{more}")
    answer = client.getresponse()
    text = answer.read().decode()
    client.close()
    assert answer.status == 200, text
    lines = [json.loads(line) for line in text.splitlines()]
    rows = [line["hit"] for line in lines if "hit" in line] if route.startswith("search") else lines[0]["messages"]
    return sorted(row["value"]["text"] for row in rows if row["value"]["text"].isalpha())


@pytest.fixture
def topic(kafka_broker):
    kafka_broker.create_topic("t", partitions=1)
    kafka_broker.produce("t", "before")
    producer = Producer({**kafka_broker.client_config("confluent"), "transactional.id": "x"})
    producer.init_transactions()
    for value, end in (("aborted", producer.abort_transaction), ("kept", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("t", value)
        producer.flush()
        end()
    return "t"


@pytest.mark.parametrize("route", ROUTES)
def test_aborted_records_are_shown_only_when_asked_for(kafka_broker, topic, route):
    assert values(kafka_broker, topic, route) == SEEN
    assert values(kafka_broker, topic, route, "&aborted=yes") == ["aborted", *SEEN]
