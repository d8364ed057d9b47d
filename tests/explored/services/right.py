"""Services without a bug: whatever happens, nothing is lost, and nothing is done twice that may not be."""

from __future__ import annotations

import time
from contextlib import suppress

from aio_service import COUNT, Service, supervise
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, KafkaException, Producer

ORDERS = TopicPartition("orders", 0)
ALL = [f"order {number}" for number in range(COUNT)]


def bills(cluster):
    return [record.value.decode() for record in cluster.consume("bills", isolation="committed")]


class AtLeastOnce(Service):
    producing = False

    async def work(self, records):
        for record in records:
            self.done.append(record.value.decode())
        await self.consumer.commit({ORDERS: records[-1].offset + 1})


async def test_at_least_once(cluster):
    done = await supervise(AtLeastOnce, cluster, seconds=30)
    assert sorted(set(done)) == ALL
    assert cluster.committed("billing") == {("orders", 0): COUNT}


class OneByOne(AtLeastOnce):
    async def work(self, records):
        for record in records:
            self.done.append(record.value.decode())
            await self.consumer.commit({ORDERS: record.offset + 1})


async def test_one_by_one(cluster):
    done = await supervise(OneByOne, cluster, seconds=30)
    assert sorted(set(done)) == ALL


class ExactlyOnce(Service):
    transactional = True

    async def work(self, records):
        async with self.producer.transaction():
            for record in records:
                await self.producer.send_and_wait("bills", record.value)
            await self.producer.send_offsets_to_transaction({ORDERS: records[-1].offset + 1}, "billing")


async def test_exactly_once(cluster):
    await supervise(ExactlyOnce, cluster, seconds=30)
    assert bills(cluster) == ALL


class Keyed(Service):
    """Work that may be done twice, for its outcome is kept by the offset."""

    producing = False
    stored: dict

    async def work(self, records):
        self.done.extend((record.offset, record.value.decode()) for record in records)
        try:
            await self.consumer.commit({ORDERS: records[-1].offset + 1})
        except KafkaError:
            self.consumer.seek(ORDERS, records[0].offset)
            raise


async def test_keyed_by_offset(cluster):
    done = await supervise(Keyed, cluster, seconds=30)
    assert dict(done) == dict(enumerate(ALL))


class Idempotent(Service):
    """Sends again what it does not know to be there; who reads drops what came before."""

    async def work(self, records):
        for record in records:
            await self.producer.send_and_wait("bills", record.value, key=str(record.offset).encode())
        await self.consumer.commit({ORDERS: records[-1].offset + 1})


async def test_reader_drops_what_came_before(cluster):
    await supervise(Idempotent, cluster, seconds=30)
    assert sorted(set(bills(cluster))) == ALL


def lives(cluster, work, is_done, seconds=60.0):
    """Let confluent-kafka's consumer live until all is done; an error that is not to be tried again ends a life."""
    end = time.monotonic() + seconds
    while not is_done() and time.monotonic() < end:
        consumer = Consumer(
            {
                **cluster.client_config("confluent"),
                "group.id": "billing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 200,
                "fetch.wait.max.ms": 50,
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe(["orders"])
        try:
            while not is_done() and time.monotonic() < end:
                message = consumer.poll(0.05)
                if message is None or message.error() is not None:
                    continue
                work(consumer, message)
        except KafkaException:
            pass
        finally:
            consumer.close()


def test_confluent_at_least_once(cluster):
    done = {}

    def work(consumer, message):
        done[message.offset()] = message.value().decode()
        consumer.commit(message, asynchronous=False)

    lives(cluster, work, lambda: cluster.committed("billing") == {("orders", 0): COUNT})
    assert done == dict(enumerate(ALL))


def test_confluent_ends_by_what_is_stored(cluster):
    done = {}

    def work(consumer, message):
        done[message.offset()] = message.value().decode()
        with suppress(KafkaException):  # whoever reads it again stores the same
            consumer.commit(message, asynchronous=False)

    lives(cluster, work, lambda: len(done) == COUNT)
    assert done == dict(enumerate(ALL))


def test_confluent_producer_of_transactions(cluster):
    """What a transaction that was not committed had is sent again, by a new producer where this one is fenced."""
    left = list(ALL)
    for _ in range(6):
        producer = Producer({**cluster.client_config("confluent"), "transactional.id": "biller"})
        try:
            producer.init_transactions(30)
            while left:
                producer.begin_transaction()
                producer.produce("bills", left[0])
                producer.commit_transaction(30)
                left.pop(0)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                producer.abort_transaction(30)
            continue
        break
    assert bills(cluster) == ALL
