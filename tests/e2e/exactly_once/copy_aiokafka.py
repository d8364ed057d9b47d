"""Copies records in transactions with aiokafka, which cannot tell its group's generation: partitions are given out.

TxnOffsetCommit of aiokafka 0.14 is version 0, without member and generation. So the zombie is fenced as before
KIP-447: whoever reads a partition has the transactional id that belongs to it.
"""

from __future__ import annotations

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from copy_kit import BATCH, BEGUN, ENDING, FENCED, IDLE, OFFSETS, arguments, dwell_s, tell, transformed


async def main() -> None:
    task = arguments()
    producer = AIOKafkaProducer(
        bootstrap_servers=task.servers, transactional_id=f"{task.group}-{task.number}", retry_backoff_ms=20
    )
    await producer.start()  # ends what the one before left open: only now is what it committed known
    consumer = AIOKafkaConsumer(
        bootstrap_servers=task.servers,
        group_id=task.group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=BATCH,
    )
    await consumer.start()
    consumer.assign([TopicPartition(task.source, p) for p in range(task.number, task.partitions, task.workers)])
    while True:
        batches = await consumer.getmany(timeout_ms=100)
        if not batches:
            continue
        await producer.begin_transaction()
        tell(BEGUN)
        for place, records in batches.items():
            for record in records:
                await producer.send(task.target, transformed(record.value), partition=place.partition)
        await producer.flush()
        await asyncio.sleep(dwell_s())
        await producer.send_offsets_to_transaction({p: r[-1].offset + 1 for p, r in batches.items()}, task.group)
        tell(OFFSETS)
        await asyncio.sleep(dwell_s())
        tell(ENDING)
        await producer.commit_transaction()
        tell(IDLE)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KafkaError as failure:
        # whatever it was, the next process with this transactional id aborts the transaction and begins where it began
        sys.stderr.write(f"ended: {failure!r}\n")
        sys.exit(FENCED)
