"""aiokafka: members share a topic, come and go, and the group goes on where it was."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.structs import OffsetAndMetadata
from aiokafka_kit import (
    AiokafkaMember,
    admin_of,
    committed_offsets,
    consumer_of,
    create,
    producer_of,
    read,
)
from clientwork import play_group, share_evenly, until


def play(broker, name, **settings):
    """play_group runs in this thread, and each member's loop in its own."""
    asyncio.run(create(broker, name, 6))
    with asyncio.Runner() as runner:

        async def start():
            producer = producer_of(broker)
            await producer.start()
            return producer

        producer = runner.run(start())

        async def send(partition: int, values: list[bytes]) -> None:
            await asyncio.gather(*[await producer.send(name, value, partition=partition) for value in values])

        try:
            play_group(
                lambda: AiokafkaMember(broker, name, name, **settings),
                lambda partition, values: runner.run(send(partition, values)),
                lambda: committed_offsets(broker, name, name),
            )
        finally:
            runner.run(producer.stop())


@pytest.mark.parametrize("assignor", [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor])
def test_group_of_three_rebalances_when_one_leaves_and_one_joins(shared_broker, name, assignor):
    play(shared_broker, name, partition_assignment_strategy=[assignor])


def test_group_on_three_brokers_finds_its_coordinator_and_its_leaders(trio, name):
    play(trio, name)


def test_static_member_that_returns_in_time_keeps_its_share(shared_broker, name):
    asyncio.run(create(shared_broker, name, 4))
    members = [AiokafkaMember(shared_broker, name, name, group_instance_id=instance) for instance in "ab"]
    for member in members:
        member.start()
    until(lambda: share_evenly(members, 4), "both share")
    share = members[0].assigned
    members[0].leave()
    members[0] = AiokafkaMember(shared_broker, name, name, group_instance_id="a")
    members[0].start()
    until(lambda: share_evenly(members, 4), "the member is back")
    assert members[0].assigned == share
    for member in members:
        member.leave()


async def test_commit_with_metadata_is_read_back_and_an_unknown_one_is_none(shared_broker, name):
    await create(shared_broker, name, 2)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    async with consumer_of(shared_broker, group_id=name) as consumer:
        consumer.assign([first, second])
        assert await consumer.committed(first) is None
        await consumer.commit({first: OffsetAndMetadata(17, "größe €")})
        assert await consumer.committed(first) == 17
        assert await consumer.committed(second) is None
    async with admin_of(shared_broker) as admin:
        assert (await admin.list_consumer_group_offsets(name))[first] == OffsetAndMetadata(17, "größe €")


async def test_group_goes_on_where_it_committed(shared_broker, name):
    async with producer_of(shared_broker) as producer:
        for number in range(10):
            await producer.send_and_wait(name, b"%d" % number, partition=0)
    for expected in (range(4), range(4, 8), range(8, 10)):
        async with consumer_of(shared_broker, group_id=name, max_poll_records=len(expected)) as consumer:
            consumer.subscribe([name])
            assert [int(record.value) for record in await read(consumer, len(expected))] == list(expected)
            await consumer.commit()


async def test_auto_commit_and_a_pattern_of_topics(shared_broker, name):
    for suffix in "ab":
        await create(shared_broker, name + suffix)
        async with producer_of(shared_broker) as producer:
            await producer.send_and_wait(name + suffix, suffix.encode())
    settings = {"group_id": name, "enable_auto_commit": True, "auto_commit_interval_ms": 50}
    async with consumer_of(shared_broker, **settings) as consumer:
        consumer.subscribe(pattern=f"^{name}")
        assert {record.topic for record in await read(consumer, 2)} == {name + "a", name + "b"}
    async with admin_of(shared_broker) as admin:
        offsets = await admin.list_consumer_group_offsets(name)
    assert {partition.topic: at.offset for partition, at in offsets.items()} == {name + "a": 1, name + "b": 1}
