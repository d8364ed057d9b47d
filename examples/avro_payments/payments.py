"""A service that keeps balances: confluent-kafka, with Avro messages and a schema registry.

Whoever pays writes into `payments`; the service keeps a balance for each account in SQLite, and which payments it has
seen: one that is delivered twice is added once. What cannot be read goes to `payments-refused`.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

TOPIC, REFUSED, GROUP = "payments", "payments-refused", "balances"
CONTEXT = SerializationContext(TOPIC, MessageField.VALUE)
PAYMENT = """
{"type": "record", "name": "Payment", "namespace": "bank", "fields": [
  {"name": "id", "type": "string"},
  {"name": "account", "type": "string"},
  {"name": "cents", "type": "long"}
]}
"""


class Payer:
    """Writes payments. `config`, `registry`: what confluent-kafka's Producer and SchemaRegistryClient take."""

    def __init__(self, config: dict[str, Any], registry: dict[str, Any], schema: str = PAYMENT) -> None:
        self._producer = Producer({**config, "client.id": "payer", "enable.idempotence": True})
        self._serialize = AvroSerializer(SchemaRegistryClient(registry), schema)

    def pay(self, **payment: Any) -> None:
        """Write one. Errors: SchemaRegistryError, SerializationError: nothing was written; KafkaException."""
        told: list[Any] = []
        self._producer.produce(
            TOPIC, self._serialize(payment, CONTEXT), on_delivery=lambda error, _: told.append(error)
        )
        self._producer.flush()
        if told[0] is not None:
            raise KafkaException(told[0])


class Balances:
    """One worker. `config`, `registry`: as of Payer; `database`: a path of SQLite."""

    def __init__(self, config: dict[str, Any], registry: dict[str, Any], database: str = ":memory:") -> None:
        self._database = sqlite3.connect(database, check_same_thread=False)
        self._database.execute("create table if not exists seen (id text primary key)")
        self._database.execute("create table if not exists balances (account text primary key, cents integer)")
        # Without a schema of its own: each payment is read by the one that it was written with.
        self._deserialize = AvroDeserializer(SchemaRegistryClient(registry))
        self._refused = Producer({**config, "client.id": "balances"})
        settings = {"group.id": GROUP, "client.id": "balances", "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**config, **settings, "enable.auto.commit": False})
        self._consumer.subscribe([TOPIC])

    def work(self, wanted: int) -> None:
        """Work until so many messages are committed. Errors: KafkaException."""
        while wanted:
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            self._take(message)
            self._consumer.commit(message, asynchronous=False)
            wanted -= 1

    def _take(self, message: Message) -> None:
        try:
            payment = self._deserialize(message.value(), CONTEXT)
        except SerializationError as error:
            self._refused.produce(REFUSED, message.value(), headers={"reason": str(error)})
            self._refused.flush()
            return
        with self._database:
            new = self._database.execute("insert or ignore into seen values (?)", (payment["id"],))
            if new.rowcount:
                self._database.execute(
                    "insert into balances values (?, ?) on conflict do update set cents = cents + excluded.cents",
                    (payment["account"], payment["cents"]),
                )

    def balances(self) -> dict[str, int]:
        """Account -> cents."""
        return dict(self._database.execute("select account, cents from balances"))

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
        self._database.close()
