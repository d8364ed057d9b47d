"""Services with a bug each that a plain run does not show (confluent-kafka)."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

COUNT = 6
ALL = [f"order {number}" for number in range(COUNT)]


def consumer_of(cluster, **settings):
    made = Consumer(
        {
            **cluster.client_config("confluent"),
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            "fetch.wait.max.ms": 50,
            **settings,
        }
    )
    made.subscribe(["orders"])
    return made


def test_commits_out_of_order(cluster):
    """A commit that was refused is made again later, behind newer ones."""
    failed = []

    def done(error, partitions):
        if error is not None:
            failed.extend(partitions)

    consumer = consumer_of(cluster, on_commit=done)
    seen, end = 0, time.monotonic() + 8
    while seen < COUNT and time.monotonic() < end:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            seen += 1
            consumer.commit(message, asynchronous=True)
    consumer.poll(0.2)
    for each in failed:
        consumer.commit(offsets=[TopicPartition(each.topic, each.partition, each.offset)], asynchronous=False)
    consumer.close()
    assert cluster.committed("billing") == {("orders", 0): COUNT}


def test_counts_deliveries_not_orders(cluster):
    """Ends after so many messages, though one came twice; and gives up a refused commit."""
    consumer, seen, count, end = consumer_of(cluster), [], 0, time.monotonic() + 8
    while count < COUNT and time.monotonic() < end:
        message = consumer.poll(0.05)
        if message is None or message.error() is not None:
            continue
        count += 1
        seen.append(message.value().decode())
        try:
            consumer.commit(message, asynchronous=False)
        except KafkaException:
            continue
    consumer.close()
    assert sorted(set(seen)) == ALL


def test_error_is_taken_for_a_message(cluster):
    """An error of poll counts as one of the orders."""
    consumer, seen, count, end = consumer_of(cluster), [], 0, time.monotonic() + 8
    while count < COUNT and time.monotonic() < end:
        message = consumer.poll(0.05)
        if message is None:
            continue
        count += 1
        if message.error() is None:
            seen.append(message.value().decode())
    consumer.close()
    assert sorted(set(seen)) == ALL


def test_transaction_that_fails_is_forgotten(cluster):
    """An error of a transaction is taken for the end of the work."""
    producer = Producer({**cluster.client_config("confluent"), "transactional.id": "biller"})
    producer.init_transactions(10)
    for order in ALL:
        producer.begin_transaction()
        producer.produce("bills", order)
        try:
            producer.commit_transaction(10)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                producer.abort_transaction(10)
    assert [record.value.decode() for record in cluster.consume("bills", isolation="committed")] == ALL
