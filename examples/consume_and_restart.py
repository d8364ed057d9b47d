"""Produce, consume in a group, commit, kill the broker with -9, start it again, go on where the group was.

Needs kafka-python (`pip install kafka-python`) and nothing else running: python examples/consume_and_restart.py
"""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer

from momus import Broker


def take(broker: Broker, count: int) -> list[int]:
    """The next messages of the group, committed one by one."""
    consumer = KafkaConsumer(
        "orders",
        **broker.client_config("kafka-python"),
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=1,
    )
    taken: list[int] = []
    while len(taken) < count:
        for records in consumer.poll(timeout_ms=1000).values():
            taken += [int(record.value) for record in records]
            consumer.commit()
    consumer.close()
    return taken


with Broker() as broker:
    producer = KafkaProducer(**broker.client_config("kafka-python"))
    for n in range(10):
        producer.send("orders", b"%d" % n)
    producer.flush()
    producer.close()
    print("before:", take(broker, 4))
    broker.kill()
    broker.start()
    print("after: ", take(broker, 6))
