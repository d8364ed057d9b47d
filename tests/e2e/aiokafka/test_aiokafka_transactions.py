"""aiokafka: transactions commit or abort as a whole, offsets go with the records, zombies are fenced."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import ProducerFenced
from aiokafka_kit import committed_offsets, consumer_of, create, producer_of, read


async def seen(broker, topic, count, isolation="read_committed", partitions=1):
    """The values a new consumer reads: the first `count`, and that nothing else follows."""
    async with consumer_of(broker, isolation_level=isolation) as consumer:
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        values = [record.value for record in await read(consumer, count)]
        assert not await consumer.getmany(timeout_ms=300)
        return values


async def test_reader_of_committed_sees_what_was_committed(shared_broker, name):
    await create(shared_broker, name)
    async with producer_of(shared_broker, transactional_id=name) as producer:
        for number in range(4):
            try:
                async with producer.transaction():
                    for part in range(3):
                        await producer.send_and_wait(name, f"{number}-{part}".encode())
                    if number % 2:
                        raise RuntimeError("abort")
            except RuntimeError:
                assert number % 2
    committed = [f"{number}-{part}".encode() for number in (0, 2) for part in range(3)]
    everything = [f"{number}-{part}".encode() for number in range(4) for part in range(3)]
    assert await seen(shared_broker, name, 6) == committed
    assert await seen(shared_broker, name, 12, "read_uncommitted") == everything


async def test_consume_transform_produce_copies_each_record_once(shared_broker, name):
    total, source, target = 120, f"{name}-in", f"{name}-out"
    await create(shared_broker, source, 3)
    await create(shared_broker, target, 3)
    values = [f"value-{number}".encode() for number in range(total)]
    async with producer_of(shared_broker) as producer:
        for number, value in enumerate(values):
            await producer.send_and_wait(source, value, partition=number % 3)
    copied, rounds = 0, 0
    async with (
        consumer_of(shared_broker, group_id=name, isolation_level="read_committed", max_poll_records=20) as consumer,
        producer_of(shared_broker, transactional_id=name) as producer,
    ):
        consumer.subscribe([source])
        while copied < total:
            batches = await consumer.getmany(timeout_ms=500)
            if not batches:
                continue
            rounds += 1
            await producer.begin_transaction()
            for place, records in batches.items():
                for record in records:
                    await producer.send(target, record.value.upper(), partition=place.partition)
            offsets = {place: records[-1].offset + 1 for place, records in batches.items()}
            await producer.send_offsets_to_transaction(offsets, name)
            if rounds % 3 == 0:
                await producer.abort_transaction()
                for place in batches:
                    consumer.seek(place, await consumer.committed(place) or 0)
            else:
                await producer.commit_transaction()
                copied += sum(map(len, batches.values()))
    found = await seen(shared_broker, target, total, partitions=3)
    assert Counter(found) == Counter(value.upper() for value in values)


def test_offsets_of_a_copy_are_committed(shared_broker, name):
    async def work():
        await create(shared_broker, name)
        async with producer_of(shared_broker, transactional_id=name) as producer, producer.transaction():
            await producer.send_and_wait(name, b"x")
            await producer.send_offsets_to_transaction({TopicPartition(name, 0): 7}, name)

    asyncio.run(work())
    assert committed_offsets(shared_broker, name, name) == {0: 7}


async def test_producer_that_was_replaced_is_fenced(shared_broker, name):
    await create(shared_broker, name)
    async with producer_of(shared_broker, transactional_id=name) as successor:
        zombie = producer_of(shared_broker, transactional_id=name)
        await zombie.start()
        try:
            await zombie.begin_transaction()
            await zombie.send_and_wait(name, b"of the zombie")
            await successor.begin_transaction()  # fenced by the younger one, though it has sent before
            with pytest.raises(ProducerFenced):
                await successor.send_and_wait(name, b"of the older one")
            await zombie.commit_transaction()
        finally:
            await zombie.stop()
    assert await seen(shared_broker, name, 1) == [b"of the zombie"]


def test_consumer_that_was_replaced_cannot_send_offsets(shared_broker, name):
    """aiokafka tells no generation (TxnOffsetCommit 0): whoever reads a partition has the id that belongs to it."""

    async def work():
        await create(shared_broker, name)
        zombie = producer_of(shared_broker, transactional_id=f"{name}-0")
        await zombie.start()
        try:
            await zombie.begin_transaction()
            await zombie.send_and_wait(name, b"of the zombie")
            async with producer_of(shared_broker, transactional_id=f"{name}-0") as successor:
                with pytest.raises(ProducerFenced):
                    await zombie.send_offsets_to_transaction({TopicPartition(name, 0): 1}, name)
                async with successor.transaction():
                    await successor.send_offsets_to_transaction({TopicPartition(name, 0): 2}, name)
        finally:
            await zombie.stop()

    asyncio.run(work())
    assert committed_offsets(shared_broker, name, name) == {0: 2}
