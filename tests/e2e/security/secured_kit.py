"""Real clients that ask a cluster with security for its topics."""

from __future__ import annotations

import asyncio
from typing import Any

import aiokafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from garbage import collect
from kafka import KafkaProducer

WORDS = ("sasl_ssl", "sasl_plaintext", "ssl", "mtls")
USERS = {"alice": 'pen"cil\\1', "bob": "b"}
LIMIT_S = 60.0


# -- a client asks for topics: nothing when it is served, else its exception


def kafka_python(settings: dict[str, Any], limit_ms: int = 60_000) -> None:
    KafkaProducer(**settings, bootstrap_timeout_ms=limit_ms).close()


def in_aiokafka(settings: dict[str, Any], limit_ms: int = 60_000) -> None:
    async def ask() -> None:
        producer = aiokafka.AIOKafkaProducer(**settings, request_timeout_ms=limit_ms)
        try:
            await producer.start()
        finally:
            await producer.stop()

    asyncio.run(ask())
    collect()  # the loop has ended before its TLS connections were closed


def librdkafka(settings: dict[str, Any], limit_ms: int = 60_000) -> None:
    errors: list[Any] = []
    admin = AdminClient({**settings, "error_cb": errors.append, "log_level": 0})
    try:
        admin.list_topics(timeout=limit_ms / 1000)
    except KafkaException as error:
        admin.poll(0)
        raise RuntimeError(" ".join(str(each) for each in errors) or str(error)) from None


CLIENTS = {"kafka-python": kafka_python, "aiokafka": in_aiokafka, "confluent": librdkafka}
