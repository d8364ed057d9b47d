"""max.compaction.lag.ms: records are compacted at last, however clean the log is."""

from __future__ import annotations

import pytest
from core_broker import Client, World

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.record_batch import build_batch

LAG_MS = 60_000


def world_with(topic_configs: dict[str, str], **settings: str) -> tuple[World, Client]:
    world = World("os", log_cleaner_backoff_ms="1000", **settings)
    client = Client(world)
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1", "segment.ms": "100", **topic_configs}
    rows = [CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=rows)
    assert client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7).topics[0].error_code == 0
    return world, client


def write(client: Client, key: bytes = b"k") -> None:
    records = build_batch([(key, b"v" * 100)], timestamp_ms=client.world.clock.now_ms())
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
    answer = client.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def records(world: World) -> int:
    topic = world.broker.metadata.topics["t"]
    log = world.broker.partitions.get(topic, 0).log
    return sum(header.record_count for header, _ in log.batches(0))


@pytest.mark.parametrize("by_broker", [False, True])
def test_log_that_is_hardly_dirty_is_cleaned_after_the_lag(by_broker):
    if by_broker:
        world, client = world_with({}, log_cleaner_max_compaction_lag_ms=str(LAG_MS))
    else:
        world, client = world_with({"max.compaction.lag.ms": str(LAG_MS)})
    for n in range(10):
        write(client, b"%d" % n)
    world.advance(200)
    write(client, b"a")
    world.advance(LAG_MS + 2000)  # the first pass: all of it was dirty
    write(client, b"0")
    world.advance(2000)  # `a` was overdue
    write(client, b"b")
    assert world.broker.directory.logs["t", 0].cleaned_offset == 11
    world.advance(LAG_MS - 5000)
    assert records(world) == 13
    world.advance(6000)
    assert records(world) == 12


def test_segment_rolls_after_the_lag_so_that_it_can_be_cleaned():
    world, client = world_with({"max.compaction.lag.ms": str(LAG_MS), "segment.ms": "604800000"})
    write(client)
    write(client)
    world.advance(LAG_MS + 1)
    write(client)
    assert len(world.broker.directory.logs["t", 0].segments) == 2
    world.advance(2000)
    assert records(world) == 2


def test_log_without_a_lag_is_left_alone():
    world, client = world_with({})
    write(client)
    write(client)
    world.advance(200)
    write(client, b"a")
    world.broker.directory.logs["t", 0].cleaned_offset = 1
    world.advance(10 * LAG_MS)
    assert records(world) == 3
