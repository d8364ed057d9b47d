"""A service that turns orders into invoices, each exactly once: aiokafka, with transactions.

It reads `orders` ("alice 3") and writes `invoices` ("alice 30"). The invoices and the offsets that it has read up to
belong to one transaction, so an invoice exists if and only if its order counts as read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, ProducerFenced

PRICE = 10


class Orders:
    """One worker. `config`: what aiokafka takes, such as bootstrap_servers."""

    def __init__(self, config: dict[str, Any], worker: str = "orders-1") -> None:
        self._config = config
        self._worker = worker
        self._consumer: Any = None
        self._producer: Any = None

    async def start(self) -> None:
        """Take over from whoever worked under this name before: that one is fenced."""
        self._consumer = AIOKafkaConsumer(
            "orders",
            **self._config,
            group_id="orders",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        await self._start_producer()
        await self._consumer.start()

    async def _start_producer(self) -> None:
        self._producer = AIOKafkaProducer(
            **self._config, transactional_id=self._worker, client_id=self._worker, retry_backoff_ms=20
        )
        await self._producer.start()

    async def stop(self) -> None:
        """Leave the group. A worker that was fenced meanwhile has no transaction left to end."""
        await self._consumer.stop()
        with suppress(ProducerFenced):
            await self._producer.stop()

    async def work(self, wanted: int) -> int:
        """Work until so many orders have been invoiced. Returns how many steps had to be taken again.

        Errors: ProducerFenced: another worker has this name now.
        """
        done = again = 0
        while done < wanted:
            try:
                done += await self.step()
            except ProducerFenced:
                raise
            except KafkaError:
                again += 1
                await self._go_back()
        return again

    async def step(self) -> int:
        """Invoice the next orders. Returns how many; 0: none have come. Errors: KafkaError."""
        batch = await self._consumer.getmany(timeout_ms=200, max_records=5)
        return await self._step(batch) if batch else 0

    async def _step(self, batch: dict[TopicPartition, list[Any]]) -> int:
        """One transaction: invoices, and the offsets after their orders."""
        orders = [record for records in batch.values() for record in records]
        async with self._producer.transaction():
            sent = []
            for order in orders:
                customer, count = order.value.decode().split()
                sent.append(await self._producer.send("invoices", f"{customer} {int(count) * PRICE}".encode()))
            await asyncio.gather(*sent)
            positions = {partition: records[-1].offset + 1 for partition, records in batch.items()}
            await self._producer.send_offsets_to_transaction(positions, "orders")
        return len(orders)

    async def _go_back(self) -> None:
        """Read again what the aborted transaction had read, and write with a new producer: the old one may be in any
        state."""
        await self._producer.stop()
        await self._start_producer()
        for partition in self._consumer.assignment():
            committed = await self._consumer.committed(partition)
            if committed is None:
                await self._consumer.seek_to_beginning(partition)
            else:
                self._consumer.seek(partition, committed)


async def supervise(config: dict[str, Any], is_done: Callable[[], Awaitable[bool]]) -> None:
    """Let workers live, one after the other, until all is done: any error of Kafka's ends a life, a fence too."""
    while True:
        worker = Orders(config)
        try:
            await worker.start()
            while not await is_done():
                await worker.step()
            return
        except KafkaError:
            await asyncio.sleep(0.05)
        finally:
            # aiokafka 0.14: stop() ends with CancelledError where it cancels a fetch that waits for its next try.
            with suppress(KafkaError, asyncio.CancelledError):
                await worker.stop()
