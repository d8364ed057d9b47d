"""An image never outlives the records that it was made of, and never holds what a failed write took back."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request, committed
from stepped_kit import let_load_at_once

from broker.coordinator.offsets import imaging
from broker.coordinator.runtime import Shard
from storage.files import snapshot

DIRECTORY = "/data/__consumer_offsets-0"
SETTINGS = {"offsets_topic_num_partitions": "1", "offsets_image_interval_ms": "1000000000"}
GROUPS = "abcdefgh"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images hold one group in a slice, and are read at every start."""
    monkeypatch.setattr("broker.coordinator.offsets.snapshots.GROUPS_A_SLICE", 1)
    let_load_at_once(monkeypatch, 0)


def world_with_groups(flush: str) -> tuple[World, Client]:
    world = World(flush, **SETTINGS)
    client = Client(world)
    make_topic(client, "t", 3)
    for group in GROUPS:
        client.call(commit_request(group, {0: 1}), 8)
    return world, client


def shard_of(world: World) -> Shard:
    return world.broker.groups.shards[0]


def take_image(world: World) -> None:
    for _ in imaging.take_image(shard_of(world)):
        world.run()


def offsets(world: World) -> dict[str, int]:
    return {group: committed(world, group)[0] for group in GROUPS}


@pytest.mark.parametrize("loaded", [True, False], ids=["loaded again", "still loading"])
def test_commit_that_was_refused_is_in_no_image(loaded):
    """The write fails between two slices of an image, before the slice with its group."""
    world, client = world_with_groups("os")
    steps = imaging.take_image(shard_of(world))
    next(steps)
    world.files.inject(1)
    client.send(commit_request("h", {0: 666}), 8)
    world.turn()
    assert client.replies()[0].topics[0].partitions[0].error_code
    for _ in steps:
        if loaded:
            world.run()
    world.run()
    assert offsets(world.crash()) == dict.fromkeys(GROUPS, 1)


def test_commit_whose_sync_failed_is_in_no_image():
    world, client = world_with_groups("fsync")
    world.auto_sync = False
    client.send(commit_request("h", {0: 666}), 8)
    while world.turn():
        pass
    steps = imaging.take_image(shard_of(world))
    next(steps)
    world.sync(fail=True)
    world.auto_sync = True
    world.run()
    assert client.replies()[-1].topics[0].partitions[0].error_code
    client.call(commit_request("a", {0: 77}), 8)
    for _ in steps:
        world.run()
    assert offsets(world.crash()) == {**dict.fromkeys(GROUPS, 1), "a": 77}


def test_image_is_taken_again_after_one_that_was_given_up():
    world, client = world_with_groups("os")
    steps = imaging.take_image(shard_of(world))
    next(steps)
    world.files.inject(1)
    client.call(commit_request("h", {0: 666}), 8)
    for _ in steps:
        world.run()
    assert snapshot.offsets(world.files, DIRECTORY) == []
    take_image(world)
    assert snapshot.offsets(world.files, DIRECTORY) == [len(GROUPS)]


@pytest.mark.parametrize("kept", [0, 1, 5])
def test_image_of_records_that_a_power_cut_took_is_gone_before_the_log_grows_beyond_it(kept, monkeypatch):
    """The image is synced, most of the log is not; what is left of the log is small, so that no image is read."""
    world = World("os", **SETTINGS)
    client = Client(world)
    make_topic(client, "t", 3)
    for n in range(kept):
        client.call(commit_request("a", {0: n}), 8)
    world.advance(130_000)  # checkpoints: what there is is synced
    for n in range(20):
        client.call(commit_request("lost", {0: n}), 8)
    take_image(world)
    world.files.sync_dir(DIRECTORY)
    let_load_at_once(monkeypatch, 1 << 20)
    again = world.crash(lose_unsynced=True)
    assert committed(again, "lost") == {}
    for n in range(30):
        Client(again).call(commit_request("a", {0: n}), 8)
    let_load_at_once(monkeypatch, 0)
    last = again.crash()
    assert (committed(last, "a"), committed(last, "lost")) == ({0: 29}, {})
    assert shard_of(last).image_offset == 0


@pytest.mark.parametrize("small", [True, False])
def test_image_that_was_removed_is_not_back_after_another_loss_of_power(small, monkeypatch):
    """It was of records that the first loss took. The log grows beyond them before the second one."""
    world = World("fsync", **SETTINGS)
    client = Client(world)
    make_topic(client, "t", 3)
    client.call(commit_request("a", {0: 0}), 8)
    before = world.files.crash(lose_unsynced=True)
    for n in range(20):
        client.call(commit_request("lost", {0: n}), 8)
    take_image(world)
    [offset] = snapshot.offsets(world.files, DIRECTORY)
    before.write_file_atomic(snapshot.path(DIRECTORY, offset), world.files.read_file(snapshot.path(DIRECTORY, offset)))
    let_load_at_once(monkeypatch, 1 << 20 if small else 0)
    again = world.again(before)
    for n in range(30):
        Client(again).call(commit_request("a", {0: n}), 8)
    let_load_at_once(monkeypatch, 0)
    last = again.crash(lose_unsynced=True)
    assert (committed(last, "a"), committed(last, "lost")) == ({0: 29}, {})
