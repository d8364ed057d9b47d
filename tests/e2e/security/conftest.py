"""A process with security, clusters of it, and whoever asks them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from garbage import collect
from kafka.errors import KafkaError
from secured_kit import CLIENTS, USERS

from momus import Broker
from momus.cluster import Cluster


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker(flush="memory") as broker:
        yield broker


@pytest.fixture
def make(process) -> Iterator[Callable[..., Cluster]]:
    made = []

    def cluster(word: str, **words: Any) -> Cluster:
        users = None if word == "ssl" else USERS
        made.append(process.create_cluster(security=word, users=users, **words))
        return made[-1]

    yield cluster
    for each in made:
        each.close()


@pytest.fixture
def ask(caplog) -> Callable[[str, dict[str, Any]], str]:
    """Have a client connect. Returns "" or its exception, with what it has logged.

    limit_ms   how long a client tries that is to be refused: it tries again and again.
    """

    def connect(client: str, settings: dict[str, Any], limit_ms: int = 1500) -> str:
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            try:
                CLIENTS[client](settings, limit_ms)
            except (KafkaError, KafkaConnectionError, RuntimeError) as error:
                found = f"{type(error).__name__}: {error}\n{caplog.text}"
            else:
                found = ""
        collect()  # clients that were refused leave sockets open
        return found

    return connect
