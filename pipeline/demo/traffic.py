"""Traffic for the demo by real clients: groups that rebalance, transactions that commit and abort, fenced producers.

Five kinds of clients share a topic of orders. A librdkafka producer writes it. `billing` is a classic group of
kafka-python members that join and leave; `analytics` is one aiokafka member that is too slow; `shipping` is a consumer
group (KIP-848) of librdkafka members that turn orders into shipments in transactions and abort every fifth one. Once a
second a producer takes over another's transactional id, and the other's commit is refused. With faults, a member of
`rereading` also commits below what it has committed, which the audit finds, and an operator resets `nightly`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer
from kafka.errors import KafkaError as KafkaPythonError
from kafka.structs import OffsetAndMetadata

ORDERS, SHIPMENTS = "orders", "shipments"
PARTITIONS = 6
ORDERS_A_SECOND = 300
LIMIT_S = 30.0
FEW = 20  # records
QUIET = {"log_level": 0}
Headers = list[tuple[str, str | bytes | None]]
# librdkafka would log that a producer was fenced, which happens here on purpose.
SILENT = logging.Logger("librdkafka", logging.CRITICAL + 1)


class Traffic:
    """All clients of the demo; `done` counts what they did."""

    def __init__(self, bootstrap_servers: str, *, with_faults: bool = False) -> None:
        self.servers = bootstrap_servers
        self._with_faults = with_faults
        self.done: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._closing = threading.Event()

    def run(self, seconds: float) -> Counter[str]:
        """Run all clients for so long; may be called again. Raises the first failure of any client."""
        admin = AdminClient({"bootstrap.servers": self.servers, **QUIET})
        there = admin.list_topics(timeout=LIMIT_S).topics
        absent = [NewTopic(topic, PARTITIONS, 1) for topic in (ORDERS, SHIPMENTS) if topic not in there]
        if absent:
            for made in admin.create_topics(absent).values():
                made.result(LIMIT_S)
        shares = [
            # client, its start and its end as fractions of the time
            (self._order, 0.0, 0.9),
            (self._bill, 0.05, 0.6),
            (self._bill, 0.25, 1.0),
            (self._bill, 0.4, 1.0),
            (self._analyse, 0.1, 1.0),
            (lambda leave: self._ship(leave, 1), 0.05, 1.0),
            (lambda leave: self._ship(leave, 2), 0.35, 0.8),
            (self._fence, 0.2, 0.9),
        ]
        if self._with_faults:
            shares += [(self._go_back, 0.1, 1.0), (self._reset, 0.5, 1.0)]
        threads = [
            _ClientThread(client, begin * seconds, end * seconds, self._closing) for client, begin, end in shares
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 2 * LIMIT_S)
        for thread in threads:
            if thread.failure is not None:
                raise thread.failure
        return self.done

    def _count(self, what: str, number: int = 1) -> None:
        with self._counting:
            self.done[what] += number

    def _order(self, leave: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True, **QUIET})
        number = 0
        while not leave.wait(0.1):
            for _ in range(ORDERS_A_SECOND // 10):
                order = {"order": number, "customer": number % 97, "cents": 100 + number % 900}
                headers: Headers = [("trace", f"{number:08x}".encode())]
                producer.produce(ORDERS, json.dumps(order).encode(), key=str(order["customer"]), headers=headers)
                number += 1
            producer.poll(0)
        producer.flush(LIMIT_S)
        self._count("orders", number)

    def _reader(self, group_id: str) -> KafkaConsumer:
        """The one member of a group that reads the orders. Its commits are explicit."""
        return KafkaConsumer(
            ORDERS,
            bootstrap_servers=self.servers,
            group_id=group_id,
            client_id=group_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    def _bill(self, leave: threading.Event) -> None:
        consumer = self._reader("billing")
        while not leave.is_set():
            records = consumer.poll(timeout_ms=200)
            if records:
                try:
                    consumer.commit()
                    self._count("commits of billing")
                except KafkaPythonError:
                    self._count(
                        "commits of billing refused"
                    )  # a rebalance happened meanwhile: these records are read again
        consumer.close()

    def _analyse(self, leave: threading.Event) -> None:
        asyncio.run(self._analyse_slowly(leave))

    async def _analyse_slowly(self, leave: threading.Event) -> None:
        consumer = AIOKafkaConsumer(
            ORDERS,
            bootstrap_servers=self.servers,
            group_id="analytics",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=20,
        )
        await consumer.start()
        while not leave.is_set():
            if await consumer.getmany(timeout_ms=200):
                await consumer.commit()
                self._count("commits of analytics")
                await asyncio.sleep(0.2)  # reads a hundred a second; three times as many are written
        await consumer.stop()

    def _ship(self, leave: threading.Event, worker: int) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "shipping",
                "group.protocol": "consumer",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                **QUIET,
            }
        )
        producer = self._transactional(f"shipping-{worker}")
        consumer.subscribe([ORDERS])
        transactions = 0
        while not leave.is_set():
            messages = [message for message in consumer.consume(100, 0.3) if message.error() is None]
            if messages:
                transactions += 1
                self._ship_some(consumer, producer, messages, give_up=transactions % 5 == 0)
        consumer.close()

    def _ship_some(self, consumer: Consumer, producer: Producer, messages: list[Message], *, give_up: bool) -> None:
        """One transaction: shipments and the offsets of their orders, or neither. give_up: abort it."""
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(SHIPMENTS, message.value(), key=message.key())
            positions = [p for p in consumer.position(consumer.assignment()) if p.offset >= 0]
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), LIMIT_S)
            if not give_up:
                producer.commit_transaction(LIMIT_S)
                self._count("transactions committed")
                return
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise  # any other failure is not expected here
        producer.abort_transaction(LIMIT_S)
        self._count("transactions aborted")
        for partition in consumer.committed(consumer.assignment(), LIMIT_S):
            partition.offset = max(partition.offset, 0)
            consumer.seek(partition)

    def _fence(self, leave: threading.Event) -> None:
        while not leave.wait(1.0):
            fenced = self._transactional("night-shift")
            fenced.begin_transaction()
            fenced.produce(SHIPMENTS, b"of the zombie")
            fenced.flush(LIMIT_S)
            successor = self._transactional("night-shift")
            try:
                fenced.commit_transaction(LIMIT_S)
                raise AssertionError("a fenced producer committed")
            except KafkaException as refused:
                if refused.args[0].code() != KafkaError._FENCED:
                    raise
            self._count("zombies fenced")
            successor.begin_transaction()
            successor.produce(SHIPMENTS, b"of the successor")
            successor.commit_transaction(LIMIT_S)
            self._count("transactions committed")

    def _go_back(self, leave: threading.Event) -> None:
        """A member that commits below what it has committed: the fault that the audit is to find."""
        consumer = self._reader("rereading")
        is_back = False
        while not leave.is_set():
            if not consumer.poll(timeout_ms=200) or is_back:
                continue
            consumer.commit()
            place = next(iter(consumer.assignment()))
            position = consumer.position(place)
            if position >= FEW:
                consumer.commit({place: OffsetAndMetadata(position - FEW, "", -1)})
                self._count("commits of rereading that go back")
                is_back = True
        consumer.close()

    def _reset(self, leave: threading.Event) -> None:
        """An operator sets a group without members ahead, and back again."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "nightly", **QUIET})
        for offset in (FEW, 0):
            consumer.commit(offsets=[TopicPartition(ORDERS, 0, offset)], asynchronous=False)
        self._count("resets of nightly")
        consumer.close()
        leave.wait()

    def _transactional(self, transactional_id: str) -> Producer:
        settings: dict[str, Any] = {"bootstrap.servers": self.servers, "transactional.id": transactional_id, **QUIET}
        producer = Producer(settings, logger=SILENT)
        producer.init_transactions(LIMIT_S)
        return producer


class _ClientThread(threading.Thread):
    """A thread that runs one client between its start and its end; a failure ends all clients."""

    def __init__(
        self, play: Callable[[threading.Event], None], begin_s: float, end_s: float, closing: threading.Event
    ) -> None:
        super().__init__(daemon=True)
        self._play, self._begin_s, self._end_s, self._closing = play, begin_s, end_s, closing
        self.failure: BaseException | None = None

    def run(self) -> None:
        if self._closing.wait(self._begin_s):
            return
        leave = threading.Event()
        clock = threading.Thread(target=self._watch, args=(leave,), daemon=True)
        clock.start()
        try:
            self._play(leave)
        except BaseException as failure:
            self.failure = failure
            self._closing.set()

    def _watch(self, leave: threading.Event) -> None:
        self._closing.wait(self._end_s - self._begin_s)
        leave.set()
