"""aiokafka's way of doing the work of clientwork.py."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import OffsetAndMetadata
from clientwork import LIMIT_S, Member

from momus import Broker


@asynccontextmanager
async def admin_of(broker: Broker) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


def producer_of(broker: Broker, **settings: Any) -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, **settings)


def consumer_of(broker: Broker, **settings: Any) -> AIOKafkaConsumer:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False} | settings
    return AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers, **settings)


async def create(broker: Broker, topic: str, partitions: int = 1, **configs: str) -> None:
    async with admin_of(broker) as admin:
        response = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])
        assert [error for _, error, _ in response.topic_errors] == [0], response


async def read(consumer: AIOKafkaConsumer, count: int) -> list[Any]:
    """The next `count` records of whatever the consumer reads."""
    records: list[Any] = []
    end = time.monotonic() + LIMIT_S
    while len(records) < count:
        assert time.monotonic() < end, f"{len(records)} of {count} records"
        for batch in (await consumer.getmany(timeout_ms=200)).values():
            records.extend(batch)
    assert len(records) == count
    return records


class AiokafkaMember(Member, ConsumerRebalanceListener):
    """Runs a loop of its own in its thread; commits what it processed after each poll."""

    def __init__(self, broker: Broker, topic: str, group: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.broker, self.topic, self.group = broker, topic, group

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.assigned = frozenset(partition.partition for partition in assigned)

    def consume(self) -> None:
        asyncio.run(self._consume())
        self.assigned = frozenset()

    async def _consume(self) -> None:
        settings = {"group_id": self.group, "heartbeat_interval_ms": 100, "session_timeout_ms": 30_000}
        async with consumer_of(self.broker, **(settings | self.settings)) as consumer:
            consumer.subscribe([self.topic], listener=self)
            while not self.stopping.is_set():
                batches = await consumer.getmany(timeout_ms=50)
                if batches:
                    await consumer.commit()
                    for batch in batches.values():
                        self.received += [record.value for record in batch]


def committed_offsets(broker: Broker, group: str, topic: str) -> dict[int, int]:
    async def ask() -> dict[int, int]:
        async with admin_of(broker) as admin:
            found = await admin.list_consumer_group_offsets(group)
        return {partition.partition: at.offset for partition, at in found.items() if partition.topic == topic}

    return asyncio.run(ask())


@contextmanager
def committer_of(broker: Broker, group: str, topic: str) -> Iterator[Callable[[dict[int, int]], None]]:
    """A consumer outside any generation, which commits what it is told."""
    with asyncio.Runner() as runner:
        consumer: AIOKafkaConsumer | None = None

        async def start() -> AIOKafkaConsumer:
            consumer = consumer_of(broker, group_id=group, request_timeout_ms=3000)
            await consumer.start()
            consumer.assign([TopicPartition(topic, partition) for partition in range(20)])
            return consumer

        consumer = runner.run(start())

        async def send(offsets: dict[int, int]) -> None:
            told = {TopicPartition(topic, p): OffsetAndMetadata(at, str(at)) for p, at in offsets.items()}
            await asyncio.wait_for(consumer.commit(told), 5)

        try:
            yield lambda offsets: runner.run(send(offsets))
        finally:
            with suppress(asyncio.CancelledError):  # of aiokafka 0.14, where a fetch waits to be tried again
                runner.run(consumer.stop())
