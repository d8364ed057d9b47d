"""Copies records in transactions with kafka-python: one consumer of a group, one transactional producer.

kafka-python 3.0.12 sometimes waits for ever. It forgets the request that ends a transaction when its broker goes while
it connects; on a busy machine its consumer sometimes never asks for its coordinator. So a process that has completed no
transaction for LIMIT_S ends, and is started anew.

It also keeps its position of a partition that it had and has again, though another member had it in a generation
between them that this one missed. So positions are set to what is committed whenever the generation is another one.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from copy_kit import BATCH, BEGUN, ENDING, FENCED, IDLE, LIMIT_S, OFFSETS, arguments, dwell_s, tell, transformed
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata


def give_up(*_: object) -> None:
    """End at once: the client catches exceptions that are raised inside it."""
    sys.stderr.write(f"ended: no transaction within {LIMIT_S} s\n")
    os._exit(FENCED)


def main() -> None:
    task = arguments()
    signal.signal(signal.SIGALRM, give_up)
    producer = KafkaProducer(
        bootstrap_servers=task.servers, transactional_id=f"{task.group}-{task.number}", retry_backoff_ms=20
    )
    producer.init_transactions()
    consumer = KafkaConsumer(
        task.source,
        bootstrap_servers=task.servers,
        client_id=f"copier-{task.number}",
        group_id=task.group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=BATCH,
        session_timeout_ms=2000,
        heartbeat_interval_ms=300,
    )
    signal.alarm(LIMIT_S)
    generation = -1
    while True:
        batches = consumer.poll(100)
        if not batches:
            continue
        group = consumer.group_metadata()
        if group.generation_id != generation:
            generation = group.generation_id
            for place in consumer.assignment():
                consumer.seek(place, consumer.committed(place) or 0)
            continue
        producer.begin_transaction()
        tell(BEGUN)
        offsets = {}
        for place, records in batches.items():
            for record in records:
                producer.send(task.target, transformed(record.value), partition=place.partition)
            offsets[TopicPartition(task.source, place.partition)] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
        producer.flush()
        time.sleep(dwell_s())
        producer.send_offsets_to_transaction(offsets, group)
        tell(OFFSETS)
        time.sleep(dwell_s())
        tell(ENDING)
        producer.commit_transaction()
        signal.alarm(LIMIT_S)
        tell(IDLE)


if __name__ == "__main__":
    try:
        main()
    except KafkaError as failure:
        # whatever it was, the next process with this transactional id aborts the transaction and begins where it began
        sys.stderr.write(f"ended: {failure!r}\n")
        sys.exit(FENCED)
