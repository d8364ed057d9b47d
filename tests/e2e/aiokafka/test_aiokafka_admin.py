"""aiokafka's admin client, which speaks the oldest versions of the requests."""

from __future__ import annotations

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata
from aiokafka_kit import admin_of, consumer_of, create, producer_of


async def test_topic_is_created_described_grown_and_deleted(shared_broker, name):
    async with admin_of(shared_broker) as admin:
        created = await admin.create_topics([NewTopic(name, 3, 1)])
        assert created.topic_errors == [(name, 0, None)]
        ((_, code, message),) = (await admin.create_topics([NewTopic(name, 3, 1)])).topic_errors
        assert (code, name in message) == (36, True)
        (described,) = await admin.describe_topics([name])
        assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
        assert {partition["leader"] for partition in described["partitions"]} == {1}
        await admin.create_partitions({name: NewPartitions(5)})
        with pytest.raises(InvalidPartitionsError):
            await admin.create_partitions({name: NewPartitions(4)})
        (described,) = await admin.describe_topics([name])
        assert len(described["partitions"]) == 5
        assert name in await admin.list_topics()
        assert (await admin.delete_topics([name])).topic_error_codes == [(name, 0)]
        assert (await admin.delete_topics([name])).topic_error_codes == [(name, 3)]
        assert name not in await admin.list_topics()
        assert len((await admin.describe_cluster())["brokers"]) == 1


async def test_topic_configs_are_altered_and_described(shared_broker, name):
    await create(shared_broker, name, 1, **{"retention.ms": "5000"})
    resource = ConfigResourceType.TOPIC
    async with admin_of(shared_broker) as admin:
        (altered,) = await admin.alter_configs([ConfigResource(resource, name, {"max.message.bytes": "1000"})])
        assert [error for error, *_ in altered.resources] == [0]
        (described,) = await admin.describe_configs([ConfigResource(resource, name)])
    ((_, _, _, _, configs),) = described.resources
    values = {config[0]: config[1] for config in configs}
    assert values["max.message.bytes"] == "1000"
    assert values["retention.ms"] == "604800000"  # AlterConfigs replaces them all


async def test_groups_and_their_offsets_are_listed_and_described(shared_broker, name):
    await create(shared_broker, name)
    partition = TopicPartition(name, 0)
    async with consumer_of(shared_broker, group_id=name) as consumer:
        consumer.assign([partition])
        await consumer.commit({partition: OffsetAndMetadata(3, "note")})
    async with admin_of(shared_broker) as admin:
        assert name in [group[0] for group in await admin.list_consumer_groups()]
        (described,) = await admin.describe_consumer_groups([name])
        assert [(group[0], group[1], group[2]) for group in described.groups] == [(0, name, "Empty")]
        found = await admin.list_consumer_group_offsets(name, partitions=[partition])
        assert found == {partition: OffsetAndMetadata(3, "note")}
        assert await admin.find_coordinator(name) == 1


async def test_records_are_deleted_up_to_an_offset(shared_broker, name):
    async with producer_of(shared_broker) as producer:
        for number in range(10):
            await producer.send_and_wait(name, b"%d" % number)
    partition = TopicPartition(name, 0)
    async with admin_of(shared_broker) as admin:
        assert await admin.delete_records({partition: RecordsToDelete(4)}) == {partition: 4}
        with pytest.raises(OffsetOutOfRangeError):
            await admin.delete_records({partition: RecordsToDelete(11)})
    async with consumer_of(shared_broker) as consumer:
        assert await consumer.beginning_offsets([partition]) == {partition: 4}


async def test_leaders_spread_over_three_brokers(trio, name):
    await create(trio, name, 6)
    async with admin_of(trio) as admin:
        assert len((await admin.describe_cluster())["brokers"]) == 3
        (described,) = await admin.describe_topics([name])
        leaders = sorted(partition["leader"] for partition in described["partitions"])
        assert leaders == [leaders[0]] * 2 + [leaders[2]] * 2 + [leaders[4]] * 2
        coordinators = {await admin.find_coordinator(f"{name}-{number}") for number in range(20)}
        assert coordinators == set(leaders)
