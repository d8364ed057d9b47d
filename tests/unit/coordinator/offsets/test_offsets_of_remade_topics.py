"""Offsets belong to a topic by its id: those of a deleted topic are never told for the next one of the same name."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request
from txn_kit import Producer
from txn_kit import committed as fetched

from broker.coordinator.offsets.table import OffsetTable
from broker.coordinator.offsets.topic_ids import all_committed_on, partitions_on
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState

NONE = (-1, 0)


def world_with_topic(*, shortcuts: bool = True) -> tuple[World, Client]:
    world = World(shortcuts=shortcuts, offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client)
    return world, client


def committed(client: Client) -> tuple[int, int]:
    return fetched(client)[0]


def listed(client: Client) -> dict[str, int]:
    """What OffsetFetch of all topics tells."""
    answer = client.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 8)
    return {row.name: each.committed_offset for row in answer.groups[0].topics for each in row.partitions}


def without_jobs(client: Client, request: Any, version: int) -> Any:
    """Send a request and run turns only: what the broker does in the background stays undone."""
    client.send(request, version)
    while client.world.turn():
        pass
    return client.replies()[-1]


def delete_topic(client: Client) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
    assert without_jobs(client, request, 6).responses[0].error_code == 0


def create_topic(client: Client) -> None:
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert without_jobs(client, CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7).topics[0].error_code == 0


def commit_plainly(client: Client, offset: int) -> None:
    request = commit_request("g", {0: offset})
    assert without_jobs(client, request, 8).topics[0].partitions[0].error_code == 0


def begin(client: Client, name: str, offset: int) -> Producer:
    producer = Producer(client, name)
    assert producer.init() == 0
    send(producer, offset)
    return producer


def send(producer: Producer, offset: int) -> None:
    answer = without_jobs(producer.client, producer.offsets_request({0: offset}), 5)
    assert answer.topics[0].partitions[0].error_code == 0


@pytest.mark.parametrize("kind", ["plain", "transaction"])
@pytest.mark.parametrize("remade", [False, True])
def test_offsets_of_a_topic_deleted_just_before_a_crash_are_gone(kind, remade):
    world, client = world_with_topic()
    if kind == "plain":
        commit_plainly(client, 5)
    else:
        assert begin(client, "tx", 5).end() == 0
    assert committed(client) == (5, 0)
    delete_topic(client)
    if remade:
        create_topic(client)
    again = Client(world.crash())
    if not remade:
        assert listed(again) == {}
        create_topic(again)
    assert committed(again) == NONE
    assert listed(again) == {}
    assert again.world.broker.groups.shards[0].machine.offsets.size == 0


@pytest.mark.parametrize("kind", ["plain", "transaction"])
def test_offsets_of_a_deleted_topic_are_not_told_before_they_are_removed(kind):
    client = world_with_topic()[1]
    if kind == "plain":
        commit_plainly(client, 5)
    else:
        assert begin(client, "tx", 5).end() == 0
    delete_topic(client)
    create_topic(client)
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert without_jobs(client, question, 8).groups[0].topics == []


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("crashes", [False, True])
def test_offsets_pending_when_their_topic_was_deleted_never_count(shortcuts, crashes):
    world, client = world_with_topic(shortcuts=shortcuts)
    producer = begin(client, "tx", 5)
    delete_topic(client)
    create_topic(client)
    if crashes:
        client = producer.client = Client(world.crash())
    else:
        world.run()
    assert producer.end() == 0
    assert committed(client) == NONE
    assert listed(client) == {}


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("ends_first", [False, True])
def test_transactional_offsets_of_the_next_topic_stay(shortcuts, ends_first):
    """They are sent before the offsets of the topic before it have been removed."""
    world, client = world_with_topic(shortcuts=shortcuts)
    producer = begin(client, "tx", 5)
    assert producer.end() == 0
    delete_topic(client)
    create_topic(client)
    send(producer, 7)
    if ends_first:
        without_jobs(client, producer.end_request(), 5)
        world.run()
    else:
        world.run()
        assert producer.end() == 0
    assert committed(client) == (7, 0)
    assert fetched(Client(world.crash()))[0] == (7, 0)


def test_pending_offsets_of_two_topics_of_one_name_do_not_hurt_each_other():
    world, client = world_with_topic()
    old = begin(client, "old", 5)
    new = Producer(client, "new")
    assert new.init() == 0
    delete_topic(client)
    create_topic(client)
    send(new, 7)
    world.run()
    assert old.end() == 0
    assert committed(client) == NONE
    assert new.end() == 0
    assert committed(client) == (7, 0)


def test_partitions_have_an_offset_by_the_id_it_was_committed_on_or_where_one_id_is_not_known():
    columns = OffsetTable().topic_or_new("g", "t")
    columns.replay_run((0, 1), (5, 6), (-1, -1), 9, b"1" * 16, dense=True)
    both = [(5, -1, ""), (6, -1, ""), None]
    for topic_id, offsets, partitions in ((b"1", both, [0, 1]), (b"\0", both, [0, 1]), (b"2", [None] * 3, [])):
        assert all_committed_on(columns, [0, 1, 2], topic_id * 16) == offsets
        assert partitions_on(columns, topic_id * 16) == partitions
