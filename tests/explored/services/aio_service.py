"""A service on aiokafka, and its supervisor: it starts the service again when a client's error has ended it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import ClassVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError

COUNT = 6
GROUP = "billing"
LIVES = 6


class Service:
    """One life: a consumer, and a producer if it needs one. Subclasses say what they do with a batch."""

    transactional = False
    producing = True
    settings: ClassVar[dict] = {}

    def __init__(self, cluster, done):
        self.done = done  # what all lives have worked on
        config = cluster.client_config("aiokafka")
        self.consumer = AIOKafkaConsumer(
            **config,
            group_id=GROUP,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            heartbeat_interval_ms=200,
            retry_backoff_ms=20,
            **{"enable_auto_commit": False, **self.settings},
        )
        words = {"transactional_id": "biller"} if self.transactional else {}
        self.producer = AIOKafkaProducer(**config, **words, retry_backoff_ms=20)

    async def start(self):
        self.consumer.subscribe(["orders"], listener=self.listener())
        if self.producing:
            await self.producer.start()
        await self.consumer.start()

    def listener(self):
        return None

    async def stop(self):
        # aiokafka 0.14: stop() awaits a fetch that it has cancelled while that one slept before its next try, and ends
        # with CancelledError (Fetcher.close, _proc_fetch_request) where the broker has just restarted.
        with suppress(KafkaError, asyncio.CancelledError):
            await self.consumer.stop()
        with suppress(KafkaError):
            await self.producer.stop()

    async def batch(self):
        found = await self.consumer.getmany(timeout_ms=50, max_records=3)
        return [record for records in found.values() for record in records]

    async def work(self, records):
        """What becomes of a batch."""
        raise NotImplementedError


class Listener(ConsumerRebalanceListener):
    def __init__(self, revoked=None, assigned=None):
        self._revoked, self._assigned = revoked, assigned

    async def on_partitions_revoked(self, revoked):
        if self._revoked is not None:
            await self._revoked(revoked)

    async def on_partitions_assigned(self, assigned):
        if self._assigned is not None:
            await self._assigned(assigned)


async def supervise(kind, cluster, is_done=None, seconds=8.0):
    """Let a service live until the group has committed all, or `is_done`; a client's error ends a life.

    Returns what all lives have worked on.
    """
    done: list = []

    async def all_committed():
        return (await cluster.aio.committed(GROUP)).get(("orders", 0)) == COUNT

    is_done = is_done or all_committed
    end = asyncio.get_running_loop().time() + seconds
    for _ in range(LIVES):
        service = kind(cluster, done)
        try:
            await service.start()
            while asyncio.get_running_loop().time() < end:
                records = await service.batch()
                if records:
                    await service.work(records)
                elif await is_done():
                    return done
        except KafkaError:
            pass
        finally:
            await service.stop()
    return done
