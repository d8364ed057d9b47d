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

    def work(self, until: int) -> Message | None:
        """Work until the invoices before this offset are stored and committed. Returns the last.

        Not until so many have come: one may come twice. And a commit that was refused is made up for.
        """
        last, committed = None, 0
        while committed < until:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is not None:
                if message.error().fatal():
                    raise KafkaException(message.error())
                continue  # the client goes on by itself
            if message is not None:
                last = message
                self._add(message)
            if last is not None and self.commit(last):
                committed = last.offset() + 1
        return last

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

    def commit(self, message: Message) -> bool:
        """Tell the broker how far we are. Whether it was taken: a refusal is no loss, the invoice is read again."""
        try:
            self._consumer.commit(message, asynchronous=False)
        except KafkaException as error:
            kafka_error: KafkaError = error.args[0]
            self.refused.append(str(kafka_error.name()))
            return False
        return True

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
