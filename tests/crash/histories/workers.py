"""One worker process: a client of some library that does one kind of thing until it is told to stop.

python -m histories.workers KIND ADDRESS FOLDER NAME SEED
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from core_requests import commit_request, fetch_request, produce_request
from txn_kit import not_aborted
from wire_peer import Peer

from histories.history import Journal
from histories.places import PARTITIONS, TOPIC
from histories.repeats import raw_repeats
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState

LIMIT_S = 60
PROMPT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "log_level": 0,
    "metadata.recovery.strategy": "none",
}


class Worker:
    """What each has: its journal, its chance, and when to stop."""

    def __init__(self, address: str, folder: Path, name: str, seed: str) -> None:
        self.address = address
        self.name = name
        self.rng = Random(f"{seed} {name}")
        self.journal = Journal(folder / f"{name}.jsonl", name, time.monotonic_ns)
        self._stop = folder / "stop"
        self._number = 0

    @property
    def is_over(self) -> bool:
        return self._stop.exists()

    def number(self) -> int:
        self._number += 1
        return self._number

    def transaction(self) -> dict[str, Any]:
        """What the next transaction does."""
        number = self.number()
        values = {
            str(partition): [f"{self.name}-{number}-{partition}-{each}" for each in range(self.rng.randint(1, 3))]
            for partition in self.rng.sample(range(PARTITIONS), 2)
        }
        return {"values": values, "group": f"group-{self.name}", "offset": number, "commit": self.rng.random() < 0.8}

    def send(self, run: str | None, partition: int, *, plain: bool = False) -> tuple[int, str]:
        """About to send one record, which a plain producer sends again where the answer is lost.

        Returns the number of the operation, and the value.
        """
        value = f"{self.name}-{self.number()}"
        return self.journal.ask("send", value=value, partition=partition, run=run, plain=plain), value


# -- transactions


def confluent_transactions(worker: Worker) -> None:
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    def again(call: Callable[..., Any], *given: Any) -> None:
        while True:
            try:
                return call(*given)
            except KafkaException as failure:
                if not failure.args[0].retriable() or worker.is_over:
                    raise

    base = PROMPT | {"bootstrap.servers": worker.address}
    member = Consumer(base | {"group.id": f"group-{worker.name}"})
    while not worker.is_over:
        producer = Producer(base | {"transactional.id": worker.name, "linger.ms": 0, "transaction.timeout.ms": 30_000})
        with suppress(KafkaException):
            again(producer.init_transactions, LIMIT_S)
            while not worker.is_over:
                what = worker.transaction()
                op = worker.journal.ask("transaction", **what)
                try:
                    producer.begin_transaction()
                    for partition, values in what["values"].items():
                        for value in values:
                            producer.produce(TOPIC, value.encode(), partition=int(partition))
                    place = TopicPartition(TOPIC, 0, what["offset"])
                    again(producer.send_offsets_to_transaction, [place], member.consumer_group_metadata(), LIMIT_S)
                    again(producer.commit_transaction if what["commit"] else producer.abort_transaction, LIMIT_S)
                except KafkaException as failure:
                    if not failure.args[0].txn_requires_abort():
                        raise
                    again(producer.abort_transaction, LIMIT_S)
                    worker.journal.end(op, False)
                else:
                    worker.journal.end(op, True)


async def aiokafka_transactions(worker: Worker) -> None:
    from aiokafka import AIOKafkaProducer, TopicPartition

    while not worker.is_over:
        producer = AIOKafkaProducer(
            bootstrap_servers=worker.address,
            transactional_id=worker.name,
            retry_backoff_ms=20,
            transaction_timeout_ms=30_000,
            request_timeout_ms=5000,
        )
        try:
            await asyncio.wait_for(producer.start(), LIMIT_S)
            while not worker.is_over:
                what = worker.transaction()
                op = worker.journal.ask("transaction", **what)
                await asyncio.wait_for(_aiokafka_one(producer, what, TopicPartition(TOPIC, 0)), LIMIT_S)
                worker.journal.end(op, True)
        except Exception:  # whatever it was: the outcome is unknown, and the next producer fences this one
            await asyncio.sleep(0.05)
        finally:
            with suppress(Exception):
                await asyncio.wait_for(producer.stop(), 1)


async def _aiokafka_one(producer: Any, what: dict[str, Any], place: Any) -> None:
    await producer.begin_transaction()
    for partition, values in what["values"].items():
        for value in values:
            await producer.send_and_wait(TOPIC, value.encode(), partition=int(partition))
    await producer.send_offsets_to_transaction({place: what["offset"]}, what["group"])
    await (producer.commit_transaction() if what["commit"] else producer.abort_transaction())


# -- records


def confluent_idempotent(worker: Worker) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        PROMPT
        | {"bootstrap.servers": worker.address, "enable.idempotence": True, "linger.ms": 1, "request.timeout.ms": 5000}
    )
    partition = worker.rng.randrange(PARTITIONS)

    def told(op: int) -> Callable[[Any, Any], None]:
        def tell(error: Any, message: Any) -> None:
            if error is None:
                worker.journal.end(op, True, offset=message.offset())
            else:
                worker.journal.end(op, None, failed=str(error))

        return tell

    while not worker.is_over:
        for _ in range(worker.rng.randint(1, 20)):
            op, value = worker.send(worker.name, partition)
            producer.produce(TOPIC, value.encode(), partition=partition, on_delivery=told(op))
        producer.poll(worker.rng.random() * 0.05)
        while len(producer) > 500 and not worker.is_over:
            producer.poll(0.1)
    producer.flush(20)


def kafka_python_idempotent(worker: Worker) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=worker.address, enable_idempotence=True, retry_backoff_ms=20)
    partition = worker.rng.randrange(PARTITIONS)
    waiting: list[Any] = []
    while not worker.is_over:
        op, value = worker.send(worker.name, partition)
        future = producer.send(TOPIC, value.encode(), partition=partition)
        future.add_callback(lambda told, op=op: worker.journal.end(op, True, offset=told.offset))
        future.add_errback(lambda error, op=op: worker.journal.end(op, None, failed=repr(error)))
        waiting = [each for each in waiting if not each.is_done] + [future]
        time.sleep(0.002 if len(waiting) < 200 else 0.1)
    producer.flush(20)


async def aiokafka_plain(worker: Worker) -> None:
    from aiokafka import AIOKafkaProducer

    while not worker.is_over:
        producer = AIOKafkaProducer(
            bootstrap_servers=worker.address, acks="all", retry_backoff_ms=20, request_timeout_ms=5000
        )
        try:
            await asyncio.wait_for(producer.start(), LIMIT_S)
            while not worker.is_over:
                partition = worker.rng.randrange(PARTITIONS)
                op, value = worker.send(None, partition, plain=True)
                told = await asyncio.wait_for(
                    producer.send_and_wait(TOPIC, value.encode(), partition=partition), LIMIT_S
                )
                worker.journal.end(op, True, offset=told.offset)
        except Exception:  # whatever it was: the outcome is unknown
            await asyncio.sleep(0.05)
        finally:
            with suppress(Exception):
                await asyncio.wait_for(producer.stop(), 1)


# -- raw clients


def connected(work: Callable[[Worker, Peer], None]) -> Callable[[Worker], None]:
    """Do a piece of work again and again, on a new connection whenever one has broken."""

    def run(worker: Worker) -> None:
        while not worker.is_over:
            try:
                with Peer(worker.address) as peer:
                    while not worker.is_over:
                        work(worker, peer)
            except (OSError, ConnectionError):
                time.sleep(0.02)

    return run


def raw_commits(worker: Worker, peer: Peer) -> None:
    """A commit, whose number is the offset; one that was refused has not happened."""
    group, offset = f"register-{worker.name}", worker.number()
    op = worker.journal.ask("commit", group=group, offset=offset)
    answer = peer.call(commit_request(group, {0: offset}, TOPIC), 8)
    code = answer.topics[0].partitions[0].error_code
    worker.journal.end(op, True if code == 0 else None)


def raw_offsets(worker: Worker, peer: Peer) -> None:
    group = f"register-commits{worker.rng.randrange(2)}"
    op = worker.journal.ask("fetch offset", group=group)
    code, offset = committed(peer, group)
    worker.journal.end(op, True if code == 0 else None, offset=offset)


def committed(peer: Peer, group: str, **more: Any) -> tuple[int, int]:
    """Error code and offset of a group's partition 0."""
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)], **more)
    answer = peer.call(question, 8).groups[0]
    parts = [part for topic in answer.topics if topic.name == TOPIC for part in topic.partitions]
    return answer.error_code or (parts[0].error_code if parts else 0), parts[0].committed_offset if parts else -1


def raw_reads(worker: Worker, peer: Peer) -> None:
    """Read a partition from some place on, read_committed."""
    partition = worker.rng.randrange(PARTITIONS)
    places = vars(worker).setdefault("places", {})
    offset = places.get(partition, 0)
    if worker.rng.random() < 0.1:
        offset = max(0, offset - worker.rng.randint(0, 50))
    op = worker.journal.ask("read", partition=partition)
    answer = fetched(peer, TOPIC, partition, offset, 1, partition_max_bytes=20_000)
    if answer.error_code:
        worker.journal.end(op, None)
        return
    data = bytes(answer.records or b"")
    found = list(not_aborted(data, answer.aborted_transactions))
    records = [(each.offset, (each.value or b"").decode()) for each in found if each.offset >= offset]
    worker.journal.end(op, True, records=records, high=answer.high_watermark, stable=answer.last_stable_offset)
    places[partition] = records[-1][0] + 1 if records else offset


def fetched(
    peer: Peer, topic: str, partition: int, offset: int, level: int, *, partition_max_bytes: int = 1 << 24
) -> Any:
    """What Fetch answers of one partition."""
    request = fetch_request(topic, partition, offset, min_bytes=0, isolation_level=level)
    request.topics[0].partitions[0].partition_max_bytes = partition_max_bytes
    return peer.call(request, 11).responses[0].partitions[0]


def raw_remakes(worker: Worker, peer: Peer) -> None:
    """Delete a topic, make it again, write to it and read all of it."""
    topic = f"remade-{worker.name}"
    while (
        peer.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=1000), 6)
        .responses[0]
        .error_code
        == 0
    ):
        continue
    op = worker.journal.ask("remake", topic=topic)
    made = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    if peer.call(CreateTopicsRequest(topics=[made], timeout_ms=1000), 7).topics[0].error_code:
        return
    sent = [f"{topic}-{worker.number()}" for _ in range(worker.rng.randint(1, 10))]
    for value in sent:
        if peer.call(produce_request(topic, 0, value.encode()), 9).responses[0].partition_responses[0].error_code:
            return
    if worker.rng.random() < 0.3:
        time.sleep(worker.rng.random())  # a kill may come
    answer = fetched(peer, topic, 0, 0, 0)
    found = [(each.value or b"").decode() for each in not_aborted(bytes(answer.records or b""), None)]
    worker.journal.end(op, True, sent=sent, found=found)


KINDS: dict[str, Callable[[Worker], Any]] = {
    "confluent-transactions": confluent_transactions,
    "aiokafka-transactions": aiokafka_transactions,
    "confluent-idempotent": confluent_idempotent,
    "kafka-python-idempotent": kafka_python_idempotent,
    "aiokafka-plain": aiokafka_plain,
    "raw-commits": connected(raw_commits),
    "raw-offsets": connected(raw_offsets),
    "raw-reads": connected(raw_reads),
    "raw-remakes": connected(raw_remakes),
    "raw-repeats": connected(raw_repeats),
}


def main() -> None:
    kind, address, folder, name, seed = sys.argv[1:]
    worker = Worker(address, Path(folder), name, seed)
    work = KINDS[kind]
    if asyncio.iscoroutinefunction(work):
        asyncio.run(work(worker))
    else:
        work(worker)
    os._exit(0)  # clients may wait for a broker that is gone


if __name__ == "__main__":
    main()
