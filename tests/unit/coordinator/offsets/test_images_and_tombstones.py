"""What was deleted after an image stays deleted, however often the log was cleaned since."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request, committed
from stepped_kit import let_load_at_once
from txn_kit import Producer

from broker.coordinator.offsets import imaging
from broker.upkeep import maintenance
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.record_batch import iter_records
from storage.files import snapshot

DIRECTORY = "/data/__consumer_offsets-0"
RETENTION_MS = 1000


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Images, cleaning, and loading in the background, however little there is."""
    monkeypatch.setattr(imaging, "LEAST_RECORDS", 1)
    monkeypatch.setattr(maintenance, "LEAST_DIRTY_BYTES", 1000)
    let_load_at_once(monkeypatch, 0)


def world_with_groups(**settings: str) -> tuple[World, Client]:
    world = World(
        offsets_topic_num_partitions="1",
        log_cleaner_delete_retention_ms=str(RETENTION_MS),
        **{"offsets_image_interval_ms": "1000000000", **settings},
    )
    client = Client(world)
    make_topic(client, "t", 20)
    for group_id in ("gone", "stays"):
        client.call(commit_request(group_id, dict.fromkeys(range(20), 1)), 8)
    return world, client


def shard_of(world: World) -> Any:
    return world.broker.groups.shards[0]


def take_image(world: World) -> None:
    for _ in imaging.take_image(shard_of(world)):
        world.run()


def delete_group(client: Client, group_id: str) -> None:
    answer = client.call(DeleteGroupsRequest(groups_names=[group_id]), 2)
    assert answer.results[0].error_code == 0


def work(world: World, client: Client, rounds: int = 60) -> None:
    """Commits and time, so that the cleaner passes again and again."""
    for n in range(rounds):
        client.call(commit_request("stays", dict.fromkeys(range(20), n)), 8)
        world.advance(500)


def tombstones(world: World) -> int:
    log = shard_of(world).log
    return sum(record.value is None for _, batch in log.batches(0) for record in iter_records(batch))


@pytest.mark.parametrize("restarts", [False, True])
def test_group_deleted_after_an_image_stays_deleted_when_its_tombstones_were_due(restarts):
    world, client = world_with_groups()
    take_image(world)
    if restarts:
        world = world.crash()
        client = Client(world)
    delete_group(client, "gone")
    work(world, client)
    assert snapshot.offsets(world.files, DIRECTORY)
    again = world.crash()
    assert committed(again, "gone") == {}
    assert committed(again, "stays") == dict.fromkeys(range(20), 59)


def test_tombstones_held_for_an_image_go_after_the_next_one():
    world, client = world_with_groups()
    take_image(world)
    delete_group(client, "gone")
    work(world, client)
    assert tombstones(world) == 0
    assert snapshot.offsets(world.files, DIRECTORY)[0] > 60


def test_tombstones_are_held_for_an_image_that_is_being_written(monkeypatch):
    """Its records are read step by step; what is deleted meanwhile must be found in the log behind it."""
    world, client = world_with_groups()
    monkeypatch.setattr("broker.coordinator.offsets.snapshots.GROUPS_A_SLICE", 1)
    steps = imaging.take_image(shard_of(world))
    next(steps)
    assert snapshot.offsets(world.files, DIRECTORY) == []
    delete_group(client, "gone")
    work(world, client, 40)
    for _ in steps:
        world.run()
    again = world.crash()
    assert shard_of(again).image_offset > 0
    assert committed(again, "gone") == {}


def test_tombstones_go_where_there_is_no_image():
    world, client = world_with_groups()
    delete_group(client, "gone")
    work(world, client)
    assert tombstones(world) == 0
    assert snapshot.offsets(world.files, DIRECTORY) == []


def control_batches(world: World) -> int:
    return sum(header.is_control for header, _ in shard_of(world).log.batches(0))


@pytest.mark.parametrize("v2", [True, False])
def test_transaction_aborted_after_an_image_stays_aborted_when_its_marker_was_due(v2):
    """The image holds its offsets as pending; the cleaner takes the records at once, and the marker after a while."""
    world, client = world_with_groups()
    producer = Producer(client, v2=v2)
    producer.init()

    def send(group: str, offset: int) -> None:
        assert v2 or not producer.add_offsets(group)
        assert set(producer.send_offsets({0: offset}, group).values()) == {0}

    send("g", 5)
    assert not producer.end()
    send("g", 666)
    take_image(world)
    assert not producer.end(commit=False)
    send("other", 1)  # so that the marker does not hold the producer's state
    assert not producer.end()
    work(world, client)
    assert committed(world, "g") == {0: 5}
    again = world.crash()
    assert committed(again, "g") == {0: 5}
    producer.client = Client(again)
    send("other", 2)
    assert not producer.end()
    assert committed(again, "g") == {0: 5}


def test_markers_held_for_an_image_go_after_the_next_one():
    world, client = world_with_groups()
    producer = Producer(client)
    producer.init()
    for n in range(4):
        assert set(producer.send_offsets({0: n}, "g").values()) == {0}
        if n == 1:
            take_image(world)
        assert not producer.end(commit=False)
    before = control_batches(world)
    work(world, client)
    assert (before, control_batches(world)) == (4, 1)  # the last one holds the producer's epoch
