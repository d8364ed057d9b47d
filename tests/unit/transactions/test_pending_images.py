"""Images of a group shard and offsets that are pending in a transaction: no image may be without them."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from txn_kit import Producer, committed

from broker.coordinator.offsets import imaging
from storage import snapshot

DIRECTORY = "/data/__consumer_offsets-0"
SETTINGS = {"offsets_topic_num_partitions": "1"}


@pytest.fixture
def producer(monkeypatch) -> Producer:
    """Has committed 5 in a transaction; images are due however little there is."""
    monkeypatch.setattr(imaging, "LEAST_RECORDS", 1)
    client = Client(World("os", **SETTINGS))
    make_topic(client, "t", 2)
    made = Producer(client)
    assert made.init() == 0
    assert made.send_offsets({0: 5}) == {0: 0}
    assert made.end() == 0
    return made


def take_image(world: World) -> list[int]:
    """Offsets of the images there are when one was asked for."""
    for _ in imaging.take_image(world.broker.groups.shards[0]):
        world.run()
    return snapshot.offsets(world.files, DIRECTORY)


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_that_are_pending_when_an_image_is_due_survive_a_start(producer, commit):
    world = producer.client.world
    assert producer.send_offsets({0: 6, 1: 7}) == {0: 0, 1: 0}
    assert take_image(world) == []
    world.advance(10_000)  # housekeeping finds it due, and waits
    assert snapshot.offsets(world.files, DIRECTORY) == []
    assert producer.end(commit=commit) == 0
    again = world.crash()
    assert again.fingerprints()["__consumer_offsets-0"] == world.fingerprints()["__consumer_offsets-0"]
    expected = {0: (6, 0), 1: (7, 0)} if commit else {0: (5, 0), 1: (-1, 0)}
    assert committed(Client(again), partitions=(0, 1)) == expected


def test_start_while_offsets_are_pending_begins_with_all_of_them(producer):
    world = producer.client.world
    assert producer.send_offsets({0: 6, 1: 7}) == {0: 0, 1: 0}
    take_image(world)
    again = world.crash()
    assert again.fingerprints()["__consumer_offsets-0"] == world.fingerprints()["__consumer_offsets-0"]
    producer.client = Client(again)
    assert producer.end() == 0
    assert committed(producer.client, partitions=(0, 1)) == {0: (6, 0), 1: (7, 0)}


def test_image_is_taken_when_nothing_is_pending_any_more(producer):
    world = producer.client.world
    assert producer.send_offsets({0: 6}) == {0: 0}
    assert take_image(world) == []
    assert producer.end() == 0
    assert take_image(world) == [world.broker.groups.shards[0].log.end_offset]
    assert committed(Client(world.crash())) == {0: (6, 0)}
