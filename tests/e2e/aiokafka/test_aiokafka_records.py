"""aiokafka: records go in and come out as they were, by every codec, and are found by offset and time."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import MessageSizeTooLargeError
from aiokafka_kit import consumer_of, create, producer_of, read
from clientwork import BIG_VALUE, CODECS, RECORDS

# aiokafka sends no record that has neither key nor value
SENDABLE = [record for record in RECORDS if record[0] is not None or record[1] is not None]


@pytest.mark.parametrize("codec", CODECS)
async def test_records_of_every_shape_come_back_as_sent(shared_broker, name, codec):
    compression = None if codec == "none" else codec
    async with producer_of(shared_broker, compression_type=compression, linger_ms=20) as producer:
        sent = [
            await producer.send(name, value, key, 0, 1000 + i, headers)
            for i, (key, value, headers) in enumerate(SENDABLE)
        ]
        offsets = [(await future).offset for future in sent]
    assert offsets == list(range(len(SENDABLE)))
    async with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        records = await read(consumer, len(SENDABLE))
    assert [(record.key, record.value, list(record.headers)) for record in records] == SENDABLE
    assert [record.timestamp for record in records] == [1000 + i for i in range(len(SENDABLE))]


@pytest.mark.parametrize("acks", [0, 1, "all", "idempotent"])
async def test_records_of_every_acknowledgement_level_arrive_in_order(shared_broker, name, acks):
    await create(shared_broker, name)
    values = [b"%d" % number for number in range(200)]
    settings = {"enable_idempotence": True} if acks == "idempotent" else {"acks": acks}
    async with producer_of(shared_broker, max_batch_size=200, **settings) as producer:
        for value in values:
            await producer.send(name, value)
        await producer.flush()
    async with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert [record.value for record in await read(consumer, 200)] == values


@pytest.mark.parametrize("codec", ["none", "lz4"])
async def test_record_of_900_kilobytes_comes_back_and_a_larger_one_is_refused(shared_broker, name, codec):
    compression = None if codec == "none" else codec
    async with producer_of(shared_broker, compression_type=compression, max_request_size=10_000_000) as producer:
        await producer.send_and_wait(name, BIG_VALUE)
        if codec == "none":
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(name, BIG_VALUE * 2)
        await producer.send_and_wait(name, b"after")
    async with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert [record.value for record in await read(consumer, 2)] == [BIG_VALUE, b"after"]


async def test_batch_made_by_hand_is_appended_as_one(shared_broker, name):
    await create(shared_broker, name)
    async with producer_of(shared_broker) as producer:
        batch = producer.create_batch()
        for number in range(10):
            batch.append(key=None, value=b"%d" % number, timestamp=5000 + number)
        appended = await (await producer.send_batch(batch, name, partition=0))
    assert appended.offset == 0
    async with consumer_of(shared_broker) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert [(r.offset, r.timestamp) for r in await read(consumer, 10)] == [(n, 5000 + n) for n in range(10)]


async def test_consumer_seeks_to_any_offset_the_beginning_and_the_end(shared_broker, name):
    async with producer_of(shared_broker) as producer:
        for number in range(50):
            await producer.send_and_wait(name, b"%d" % number)  # a batch each
    partition = TopicPartition(name, 0)
    async with consumer_of(shared_broker) as consumer:
        consumer.assign([partition])
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 50}
        consumer.seek(partition, 43)
        assert [record.offset for record in await read(consumer, 7)] == list(range(43, 50))
        assert await consumer.position(partition) == 50
        await consumer.seek_to_beginning(partition)
        assert (await read(consumer, 50))[0].offset == 0
        consumer.seek(partition, 1000)  # out of range: reset to the earliest
        assert (await read(consumer, 50))[0].offset == 0
        await consumer.seek_to_end(partition)
        assert await consumer.position(partition) == 50
        assert consumer.highwater(partition) == 50


async def test_offsets_are_found_by_time(shared_broker, name):
    async with producer_of(shared_broker) as producer:
        for number in range(20):
            await producer.send_and_wait(name, b"%d" % number, timestamp_ms=1_700_000_000_000 + 1000 * number)
    partition = TopicPartition(name, 0)
    async with consumer_of(shared_broker) as consumer:
        for asked, expected in [(0, 0), (1_700_000_004_500, 5), (1_700_000_019_000, 19)]:
            found = (await consumer.offsets_for_times({partition: asked}))[partition]
            assert (found.offset, found.timestamp) == (expected, 1_700_000_000_000 + 1000 * expected)
        assert await consumer.offsets_for_times({partition: 1_800_000_000_000}) == {partition: None}


async def test_waiting_consumer_gets_a_record_as_soon_as_it_is_there(shared_broker, name):
    await create(shared_broker, name)
    async with (
        consumer_of(shared_broker, fetch_max_wait_ms=100_000, request_timeout_ms=110_000) as consumer,
        producer_of(shared_broker) as producer,
    ):
        consumer.assign([TopicPartition(name, 0)])
        waiting = asyncio.create_task(consumer.getone())
        await asyncio.sleep(0.1)  # the fetch is parked by now; if it is not yet, the test is merely easier
        await producer.send_and_wait(name, b"now")
        assert (await asyncio.wait_for(waiting, 60)).value == b"now"
