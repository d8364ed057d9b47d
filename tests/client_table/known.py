"""Two things of librdkafka that the cells do not show, each proved again by runs of its own.

A consumer with enable.auto.commit, its default, commits and is told once that this is not the coordinator. And a
producer has an open transaction as its broker is killed and started again at once: then it sends offsets.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition, libversion

from client_table.cell_run import CONFIG
from client_table.proof import extract
from momus import Broker

ROUNDS = 8
LANES = 4
COMMIT_LIMIT_S = 90.0
SEND_LIMIT_S = 45.0
TOPIC, GROUP = "orders", "billing"
PROMPT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}


def _timed(act: Callable[[], object], limit_s: float) -> dict[str, Any]:
    """How long a call took, and the name of its error; it goes on in a thread where it takes longer than the limit."""
    found: dict[str, Any] = {}

    def call() -> None:
        try:
            act()
            found["error"] = ""
        except KafkaException as failure:
            found["error"] = failure.args[0].name()

    begun = time.monotonic()
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(limit_s)
    return {"s": round(time.monotonic() - begun, 1), "error": found.get("error", "has not returned")}


def _member(broker: Broker, **settings: Any) -> Consumer:
    """One that has read the topic's first record."""
    basics = {"bootstrap.servers": broker.bootstrap_servers, "group.id": GROUP, "auto.offset.reset": "earliest"}
    made = Consumer({**basics, "log_level": 0, **settings})
    made.subscribe([TOPIC])
    while made.poll(0.1) is None:
        pass
    return made


def commit(broker: Broker) -> dict[str, Any]:
    """commit(asynchronous=False) of a consumer that also commits by itself, which is told NOT_COORDINATOR once."""
    consumer = _member(broker)
    broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", trigger="once")
    found = _timed(lambda: consumer.commit(asynchronous=False), COMMIT_LIMIT_S)
    return {**found, "is_kept": broker.committed(GROUP) != {}}


def send_offsets(broker: Broker) -> dict[str, Any]:
    """send_offsets_to_transaction after the broker was killed and started again."""
    metadata = _member(broker, **PROMPT).consumer_group_metadata()
    producer = Producer({**PROMPT, "bootstrap.servers": broker.bootstrap_servers, "transactional.id": "copier"})
    producer.init_transactions(SEND_LIMIT_S)
    producer.begin_transaction()
    producer.produce(TOPIC, b"copy")
    producer.flush(SEND_LIMIT_S)
    broker.kill()
    broker.start()
    places = [TopicPartition(TOPIC, 0, 1)]
    return _timed(lambda: producer.send_offsets_to_transaction(places, metadata, SEND_LIMIT_S), 2 * SEND_LIMIT_S)


def rounds(story: Callable[[Broker], dict[str, Any]], before: dict[str, Any] | None) -> dict[str, Any]:
    """What the file of results holds of a story: each run, and the journal of the longest.

    before   what it holds already: how long they take is chance, so more runs tell more.
    """

    def once(_: int) -> tuple[dict[str, Any], list[str]]:
        with tempfile.TemporaryDirectory() as folder, Broker(data_dir=folder, config=CONFIG, journal_mb=4) as broker:
            broker.create_topic(TOPIC)
            broker.produce(TOPIC, "order")
            return story(broker), extract(broker)

    with ThreadPoolExecutor(LANES) as lanes:
        told = sorted(lanes.map(once, range(ROUNDS)), key=lambda each: float(each[0]["s"]))
    runs, proof = [run for run, _ in told], told[-1][1]
    client = f"librdkafka {libversion()[0]}"
    if before is not None and before["client"] == client:
        if before["runs"][-1]["s"] > runs[-1]["s"]:
            proof = before["proof"]
        runs = sorted([*before["runs"], *runs], key=lambda run: float(run["s"]))
    return {"client": client, "runs": runs, "proof": proof}
