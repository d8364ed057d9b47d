"""Images of a group shard hold the offsets that are pending in transactions: they are taken under steady traffic."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request
from stepped_kit import let_load_at_once
from txn_kit import Producer, committed

from broker.coordinator.offsets import imaging, snapshots
from storage.files import snapshot

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


def same_shard(again: World, world: World) -> bool:
    """Whether a start has found the state that there was, and who sends the pending offsets."""
    ours, theirs = (each.broker.groups.shards[0] for each in (again, world))
    assert again.fingerprints()["__consumer_offsets-0"] == world.fingerprints()["__consumer_offsets-0"]
    assert sorted(ours.machine.pending.senders()) == sorted(theirs.machine.pending.senders())
    return True


@pytest.mark.parametrize("commit", [True, False])
def test_image_that_is_taken_while_offsets_are_pending_holds_them(producer, monkeypatch, commit):
    let_load_at_once(monkeypatch, 0)  # a start reads the image, however short the log
    world = producer.client.world
    assert producer.send_offsets({0: 6, 1: 7}) == {0: 0, 1: 0}
    end = world.broker.groups.shards[0].log.end_offset
    assert take_image(world) == [end]
    again = world.crash()
    assert committed(Client(again), partitions=(0, 1)) == {0: (5, 0), 1: (-1, 0)}
    assert again.broker.groups.shards[0].image_offset == end
    assert same_shard(again, world)
    producer.client = Client(again)
    assert producer.end(commit=commit) == 0
    expected = {0: (6, 0), 1: (7, 0)} if commit else {0: (5, 0), 1: (-1, 0)}
    assert committed(producer.client, partitions=(0, 1)) == expected
    assert committed(Client(again.crash()), partitions=(0, 1)) == expected


def test_pending_offset_that_a_later_commit_has_replaced_stays_replaced(producer, monkeypatch):
    let_load_at_once(monkeypatch, 0)
    world = producer.client.world
    assert producer.send_offsets({0: 6, 1: 7}) == {0: 0, 1: 0}
    other = Client(world)
    assert other.call(commit_request("g", {0: 9}), 8).topics[0].partitions[0].error_code == 0
    take_image(world)
    again = world.crash()
    assert same_shard(again, world)
    producer.client = Client(again)
    assert producer.end() == 0
    assert committed(producer.client, partitions=(0, 1)) == {0: (9, 0), 1: (7, 0)}


def test_transaction_that_ends_while_the_image_is_taken_counts_once(producer, monkeypatch):
    let_load_at_once(monkeypatch, 0)
    monkeypatch.setattr(snapshots, "GROUPS_A_SLICE", 1)
    world = producer.client.world
    assert producer.send_offsets({0: 6, 1: 7}) == {0: 0, 1: 0}
    steps = imaging.take_image(world.broker.groups.shards[0])
    next(steps)
    assert producer.end() == 0
    assert Client(world).call(commit_request("g", {1: 3}), 8).topics[0].partitions[0].error_code == 0
    for _ in steps:
        world.run()
    assert snapshot.offsets(world.files, DIRECTORY)
    again = world.crash()
    assert committed(Client(again), partitions=(0, 1)) == {0: (6, 0), 1: (3, 0)}
    assert same_shard(again, world)


def test_image_waits_while_very_many_offsets_are_pending(producer, monkeypatch):
    monkeypatch.setattr(imaging, "MOST_PENDING", 1)
    world = producer.client.world
    assert producer.send_offsets({0: 6, 1: 7}) == {0: 0, 1: 0}
    assert take_image(world) == []
    assert producer.end() == 0
    assert take_image(world) == [world.broker.groups.shards[0].log.end_offset]


def test_images_are_taken_under_steady_transactions(producer):
    world = producer.client.world
    found = set()
    for offset in range(10, 20):
        assert producer.send_offsets({0: offset}) == {0: 0}
        world.advance(10_000)  # housekeeping, always while a transaction is open
        found |= set(snapshot.offsets(world.files, DIRECTORY))
        assert producer.end() == 0
    assert len(found) >= 5
    assert committed(Client(world.crash())) == {0: (19, 0)}
