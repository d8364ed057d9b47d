"""aiokafka: kill -9 in the middle of commits, and on it goes."""

from __future__ import annotations

import asyncio

from aiokafka_kit import committed_offsets, committer_of, consumer_of, create, producer_of, read
from clientwork import LEDGER_PARTITIONS, commit_through_kills


def test_commits_survive_kill_9_whole_and_none_is_invented(broker_factory, crash_rounds):
    broker = broker_factory()
    asyncio.run(create(broker, "t", LEDGER_PARTITIONS))
    commit_through_kills(
        broker,
        lambda: committer_of(broker, "g", "t"),
        lambda: committed_offsets(broker, "g", "t"),
        crash_rounds,
    )


async def test_group_goes_on_after_kill_9_exactly_where_it_was(broker_factory):
    broker = broker_factory(config={"group.initial.rebalance.delay.ms": 0})
    async with producer_of(broker) as producer:
        for number in range(20):
            await producer.send_and_wait("t", b"%d" % number)
    settings = {"group_id": "g", "heartbeat_interval_ms": 100, "group_instance_id": "i"}
    async with consumer_of(broker, max_poll_records=12, **settings) as consumer:
        consumer.subscribe(["t"])
        assert len(await read(consumer, 12)) == 12
        await consumer.commit()
        await asyncio.to_thread(broker.kill)
        await asyncio.to_thread(broker.start)
        assert [int(record.value) for record in await read(consumer, 8)] == list(range(12, 20))
    async with consumer_of(broker, **settings) as consumer:
        consumer.subscribe(["t"])
        assert [int(record.value) for record in await read(consumer, 8)] == list(range(12, 20))


async def test_idempotent_producer_writes_each_record_once_through_kill_9(broker_factory):
    broker = broker_factory()
    await create(broker, "t")
    async with producer_of(broker, enable_idempotence=True, request_timeout_ms=3000) as producer:
        offsets = []
        for life in range(3):
            sent = [await producer.send("t", b"%d" % (100 * life + number)) for number in range(100)]
            if life < 2:
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
            offsets += [(await future).offset for future in sent]
    async with consumer_of(broker) as consumer:
        consumer.subscribe(["t"])
        assert [int(record.value) for record in await read(consumer, 300)] == list(range(300))
    assert offsets == list(range(300))
