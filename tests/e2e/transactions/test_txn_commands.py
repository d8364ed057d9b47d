"""`momus txn`: whose transaction is it, what does it touch, and whose offsets go with it."""

from __future__ import annotations

import json
import subprocess
import sys

from clientwork import LIMIT_S, until
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def momus(broker, *words, code=0):
    command = [sys.executable, "-m", "momus", *words, "-b", broker.bootstrap_servers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_transactions_are_listed_and_described_with_their_groups(shared_broker, name):
    basics = {"bootstrap.servers": shared_broker.bootstrap_servers, "log_level": 0}
    admin = AdminClient(basics)
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(LIMIT_S)
    producer = Producer({**basics, "transactional.id": name})
    consumer = Consumer({**basics, "group.id": name, "client.id": "worker-7", "group.instance.id": "seven"})
    try:
        consumer.subscribe([name])
        until(lambda: consumer.poll(0.05) is None and consumer.assignment(), "the group has a member")
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        producer.produce(name, b"x", partition=1)
        producer.flush(LIMIT_S)
        producer.send_offsets_to_transaction(
            [TopicPartition(name, 0, 3), TopicPartition(name, 1, 4)], consumer.consumer_group_metadata(), LIMIT_S
        )
        (row,) = json.loads(momus(shared_broker, "txn", "describe", name, "--json"))
        assert (row["state"], row["error"]) == ("Ongoing", None)
        assert f"{name}-1" in row["partitions"]
        assert any(place.startswith("__consumer_offsets-") for place in row["partitions"])
        assert row["groups"] == []  # told with the decision
        producer.abort_transaction(LIMIT_S)
        (row,) = json.loads(momus(shared_broker, "txn", "describe", name, "--json"))
        assert (row["state"], row["partitions"]) == ("CompleteAbort", [])
        (group,) = row["groups"]
        assert (group["group"], group["instance"], group["generation"]) == (name, "seven", 1)
        assert (group["client"], group["partitions"]) == ("rdkafka", [f"{name}-0", f"{name}-1"])
        assert group["member"].startswith("seven-")
        assert (group["producer_id"], group["producer_epoch"]) == (row["producer_id"], 0)
    finally:
        consumer.close()
    printed = momus(shared_broker, "txn", "describe", name)
    assert f"{name}  CompleteAbort  producer {row['producer_id']}" in printed
    assert f"{name}-0,{name}-1" in printed
    assert name in momus(shared_broker, "txn", "list")


def test_unknown_transaction_is_an_error(shared_broker, name):
    (row,) = json.loads(momus(shared_broker, "txn", "describe", name, "--json", code=1))
    assert row == {"transactional_id": name, "error": "TRANSACTIONAL_ID_NOT_FOUND"}
