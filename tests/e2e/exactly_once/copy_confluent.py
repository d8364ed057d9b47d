"""Copies records in transactions with confluent-kafka: one consumer of a group, one transactional producer."""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from copy_kit import (
    BATCH,
    BEGUN,
    ENDING,
    FENCED,
    IDLE,
    LIMIT_S,
    OFFSETS,
    REFUSED,
    arguments,
    dwell_s,
    tell,
    transformed,
)

PROMPT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "log_level": 2,
    # librdkafka 2.16 may give up the broker for good when it bootstraps anew
    "metadata.recovery.strategy": "none",
}


class Copier:
    """Reads, writes and commits until it is killed or its producer is fenced."""

    def __init__(self) -> None:
        self.task = task = arguments()
        basics = PROMPT | {"bootstrap.servers": task.servers, "client.id": f"copier-{task.number}"}
        timing = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300} if task.protocol == "classic" else {}
        self.producer = Producer(basics | {"transactional.id": f"{task.group}-{task.number}", "linger.ms": 1})
        self.consumer = Consumer(
            basics
            | timing
            | {
                "group.id": task.group,
                "group.protocol": task.protocol,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )

    def run(self) -> None:
        self.again(lambda: self.producer.init_transactions(LIMIT_S))
        # with a callback partitions are given back inside consume, so never in a transaction
        self.consumer.subscribe([self.task.source], on_revoke=lambda consumer, partitions: None)
        while True:
            messages = [m for m in self.consumer.consume(BATCH, 0.1) if m.error() is None]
            if not messages:
                continue
            try:
                self.copy(messages)
            except KafkaException as failure:
                if not failure.args[0].txn_requires_abort():
                    raise
                tell(REFUSED)
                self.again(lambda: self.producer.abort_transaction(LIMIT_S))
                self.rewind()
            tell(IDLE)

    def copy(self, messages: list[Message]) -> None:
        # now: a client that is expelled forgets who it was, and who says nothing of itself is not refused
        group = self.consumer.consumer_group_metadata()
        self.producer.begin_transaction()
        tell(BEGUN)
        offsets = {}
        for at, message in enumerate(messages):
            partition = message.partition()
            self.producer.produce(self.task.target, transformed(message.value()), partition=partition)
            offsets[partition] = TopicPartition(self.task.source, partition, message.offset() + 1)
            if at == len(messages) // 2:
                self.producer.flush(LIMIT_S)
                time.sleep(dwell_s())
        self.again(lambda: self.producer.send_offsets_to_transaction(list(offsets.values()), group, LIMIT_S))
        tell(OFFSETS)
        time.sleep(dwell_s())
        tell(ENDING)
        self.again(lambda: self.producer.commit_transaction(LIMIT_S))

    def again(self, call) -> None:
        """While the broker is down the client says that one may ask again."""
        while True:
            try:
                return call()
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise

    def rewind(self) -> None:
        """Back to what is committed, in whatever of the partitions is still ours."""
        while True:
            try:
                committed = self.consumer.committed(self.consumer.assignment(), LIMIT_S)
                break
            except KafkaException as failure:
                sys.stderr.write(f"committed: {failure}\n")
        for place in committed:
            if place.error is not None:
                raise KafkaException(place.error)
            place.offset = max(place.offset, 0)
            try:
                self.consumer.seek(place)
            except KafkaException as failure:
                if failure.args[0].code() != KafkaError._STATE:  # given back meanwhile
                    raise


if __name__ == "__main__":
    try:
        Copier().run()
    except KafkaException as failure:
        sys.stderr.write(f"ended: {failure}\n")
        sys.exit(FENCED if failure.args[0].fatal() else 1)
