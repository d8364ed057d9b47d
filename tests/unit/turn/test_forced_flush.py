"""flush.messages and flush.ms: a log is synced although replies wait for a write only (`flush=os`)."""

from __future__ import annotations

import pytest
from core_broker import Client, World
from core_requests import produce_request

from protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest


def world_with(topic_configs: dict[str, str], **settings: str) -> tuple[World, Client]:
    # the rounds that write recovery points sync too: none comes within a test
    world = World("os", log_flush_offset_checkpoint_interval_ms="1000000000", **settings)
    client = Client(world)
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in topic_configs.items()]
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
    assert client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7).topics[0].error_code == 0
    return world, client


def write(client: Client, records: int = 1) -> None:
    for _ in range(records):
        answer = client.call(produce_request("t", 0, b"v"), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def synced(world: World) -> int:
    topic = world.broker.metadata.topics["t"]
    offset: int = world.broker.partitions.get(topic, 0).log.synced_offset
    return offset


@pytest.mark.parametrize("by_broker", [False, True])
def test_log_is_synced_before_the_reply_when_flush_messages_are_not(by_broker):
    if by_broker:
        world, client = world_with({}, log_flush_interval_messages="3")
    else:
        world, client = world_with({"flush.messages": "3"})
    seen = []
    for _ in range(7):
        client.send(produce_request("t", 0, b"v"), 9)
        while not client.replies():
            world.turn()
        seen.append(synced(world))
    assert seen == [0, 0, 3, 3, 3, 6, 6]


def test_sync_that_fails_refuses_the_records_that_it_was_for():
    world, client = world_with({"flush.messages": "2"})
    write(client)
    world.files.inject(1, kinds=("sync",))
    answer = client.call(produce_request("t", 0, b"v"), 9)
    assert answer.responses[0].partition_responses[0].error_code != 0
    topic = world.broker.metadata.topics["t"]
    assert world.broker.partitions.get(topic, 0).log.end_offset == 1


@pytest.mark.parametrize("by_broker", [False, True])
def test_log_is_synced_when_its_records_are_flush_ms_old(by_broker):
    settings = {"log_flush_scheduler_interval_ms": "100"}
    if by_broker:
        world, client = world_with({}, log_flush_interval_ms="1000", **settings)
    else:
        world, client = world_with({"flush.ms": "1000"}, **settings)
    write(client)
    world.advance(900)
    assert synced(world) == 0
    world.advance(200)
    assert synced(world) == 1
    world.advance(1000)
    write(client)
    world.advance(100)
    assert synced(world) == 2  # the last sync was more than a second ago: as in Kafka


def test_flush_interval_of_the_scheduler_is_the_default_of_flush_ms():
    world, client = world_with({}, log_flush_scheduler_interval_ms="500")
    write(client)
    world.advance(501)
    assert synced(world) == 1


def test_flush_ms_alone_syncs_nothing_because_nothing_looks():
    world, client = world_with({"flush.ms": "1"})
    write(client)
    world.advance(10_000)
    assert synced(world) == 0
