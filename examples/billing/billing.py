"""A service that adds up invoices: confluent-kafka, with commits after the sums are stored.

It reads `invoices` ("alice 30") and keeps a sum for each customer in SQLite, together with the offset of the next
invoice: so an invoice that is delivered twice is added once.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

GROUP = "billing"


class Billing:
    """One worker. `config`: what confluent-kafka takes; `database`: a path of SQLite, or ":memory:"."""

    def __init__(self, config: dict[str, Any], database: str = ":memory:", **settings: Any) -> None:
        self._sums = sqlite3.connect(database, check_same_thread=False)
        self._sums.execute("create table if not exists sums (customer text primary key, cents integer)")
        self._sums.execute("create table if not exists positions (part integer primary key, next integer)")
        self._consumer = Consumer(
            {
                **config,
                "group.id": GROUP,
                "client.id": "billing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                **settings,
            }
        )
        self._consumer.subscribe(["invoices"])
        self.refused: list[str] = []  # names of errors that refused a commit

    def work(self, wanted: int) -> Message | None:
        """Work until so many messages have come. Returns the last. Errors: KafkaException."""
        message = None
        while wanted:
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            self._add(message)
            wanted -= 1
            self.commit(message)
        return message

    def _add(self, message: Message) -> None:
        part, offset = message.partition(), message.offset()
        found = self._sums.execute("select next from positions where part = ?", (part,)).fetchone()
        if found is not None and offset < found[0]:
            return  # it came before
        value = message.value()
        assert value is not None
        customer, cents = value.decode().split()
        with self._sums:
            self._sums.execute(
                "insert into sums values (?, ?) on conflict do update set cents = cents + excluded.cents",
                (customer, int(cents)),
            )
            self._sums.execute("insert or replace into positions values (?, ?)", (part, offset + 1))

    def commit(self, message: Message) -> None:
        """Tell the broker how far we are. A refusal is no loss: whoever is next reads the invoice again."""
        try:
            self._consumer.commit(message, asynchronous=False)
        except KafkaException as error:
            kafka_error: KafkaError = error.args[0]
            self.refused.append(str(kafka_error.name()))

    def wait_for_partitions(self) -> list[TopicPartition]:
        """Join the group."""
        while not self._consumer.assignment():
            self._consumer.poll(0.05)
        return self._consumer.assignment()

    def sums(self) -> dict[str, int]:
        """Customer -> cents."""
        return dict(self._sums.execute("select customer, cents from sums"))

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
        self._sums.close()
