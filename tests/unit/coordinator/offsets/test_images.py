"""Images of group shards: a start begins with one, and comes to what the log says; a bad one is as good as none."""

from __future__ import annotations

import random

import pytest
from consumer_kit import Groups
from core_broker import Client, World, make_topic
from core_requests import commit_request, committed
from stepped_kit import let_load_at_once

from broker.coordinator.offsets import imaging
from broker.coordinator.offsets.snapshots import KeptRecord, Labels, Reader, encode_head
from broker.coordinator.offsets.table import OffsetTable
from broker.coordinator.replay import Replay
from broker.coordinator.runtime import Shard
from protocol.messages.offsets import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from storage.files import snapshot

DIRECTORY = "/data/__consumer_offsets-0"
SETTINGS = {"offsets_topic_num_partitions": "1"}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Images and loading in the background, however little there is."""
    monkeypatch.setattr(imaging, "LEAST_RECORDS", 1)
    let_load_at_once(monkeypatch, 0)


def busy_world(seed: int = 1, commits: int = 60) -> World:
    world = World("os", **SETTINGS)
    client = Client(world)
    for topic in ("t", "u"):
        make_topic(client, topic, 30)
    work(client, random.Random(seed), commits)
    return world


def work(client: Client, rng: random.Random, commits: int) -> None:
    for _ in range(commits):
        group_id, topic = rng.choice(["a", "b", "c", "ünï-😀", "nul\0"]), rng.choice("tu")
        partitions = rng.sample(range(30), rng.choice([1, 1, 2, 5]))
        metadata = rng.choice(["", "", "m"])
        rows = {partition: rng.randrange(1 << 40) for partition in partitions}
        client.call(commit_request(group_id, rows, topic, metadata), 8)
        client.world.clock.advance(rng.randrange(3))
        if rng.random() < 0.2:
            gone = [OffsetDeleteRequestPartition(partition_index=p) for p in range(rng.randrange(30))]
            request = OffsetDeleteRequest(
                group_id=group_id, topics=[OffsetDeleteRequestTopic(name=topic, partitions=gone)]
            )
            client.call(request, 0)


def shard_of(world: World) -> Shard:
    return world.broker.groups.shards[0]


def image(world: World) -> int:
    """Take an image now; where it lies."""
    shard = shard_of(world)
    for _ in imaging.take_image(shard):
        world.run()
    return snapshot.offsets(world.files, DIRECTORY)[0]


def began_at(world: World) -> int:
    return shard_of(world).image_offset


def facts(world: World) -> object:
    return world.fingerprints()["__consumer_offsets-0"]


def test_start_with_an_image_is_the_same_as_without():
    world = busy_world()
    offset = image(world)
    again = world.crash()
    assert began_at(again) == offset == shard_of(world).log.end_offset
    assert facts(again) == facts(world)


def test_image_holds_the_records_of_groups_as_well():
    with Groups({"t": 120}, **SETTINGS) as groups:
        groups.joined(*(f"m{n:02}" for n in range(60)))  # more records than are read in one step
        offset = image(groups.world)
        again = groups.world.crash()
        assert began_at(again) == offset
        assert facts(again) == facts(groups.world)
        assert groups.world.broker.groups.of("g").machine.groups["g"].members.keys() == {f"m{n:02}" for n in range(60)}


def test_image_that_ends_too_early_cannot_be_read_wherever_it_is_cut():
    head = encode_head(7, [(5, b"key", b"value"), (6, b"other", b"")], Labels())

    def read(payload: bytes) -> list[KeptRecord]:
        reader = Reader(memoryview(payload))
        found = list(reader.records())
        assert list(reader.offsets(OffsetTable())) == []
        return found

    assert read(head) == [(5, b"key", b"value"), (6, b"other", b"")]
    for size in range(8, len(head)):
        with pytest.raises(ValueError, match="the image ends too early"):
            read(head[:size])


def test_tail_behind_the_image_counts():
    world = busy_world()
    offset = image(world)
    work(Client(world), random.Random(7), 20)
    again = world.crash()
    assert began_at(again) == offset < shard_of(world).log.end_offset
    assert facts(again) == facts(world)


@pytest.mark.parametrize("seed", range(8))
def test_image_taken_while_commits_go_on_is_right(seed, monkeypatch):
    monkeypatch.setattr("broker.coordinator.offsets.snapshots.GROUPS_A_SLICE", 1)
    world = busy_world(seed)
    client, rng = Client(world), random.Random(seed)
    offset = shard_of(world).log.end_offset
    for _ in imaging.take_image(shard_of(world)):
        work(client, rng, 2)
    world.run()
    again = world.crash()
    assert began_at(again) == offset < shard_of(world).log.end_offset
    assert facts(again) == facts(world)


def test_image_that_saw_what_was_not_durable_waits_for_it():
    world = World("fsync", **SETTINGS)
    client = Client(world)
    make_topic(client, "t", 3)
    client.call(commit_request("a", {0: 1}), 8)
    world.auto_sync = False
    client.send(commit_request("a", {0: 2}), 8)
    world.turn()
    for _ in imaging.take_image(shard_of(world)):
        pass
    assert snapshot.offsets(world.files, DIRECTORY) == []
    world.sync()
    world.auto_sync = True
    world.run()
    assert snapshot.offsets(world.files, DIRECTORY) == [2]


def damaged(files, path):
    data = bytearray(files.read_file(path))
    data[len(data) // 2] ^= 1
    files.write_file_atomic(path, bytes(data))


def cut_short(files, path):
    files.write_file_atomic(path, files.read_file(path)[:-1])


def of_another_version(files, path):
    snapshot.write(files, path, bytes(snapshot.read(files, path)), version=2)


def of_nonsense(files, path):
    snapshot.write(files, path, bytes(snapshot.read(files, path))[:-1] + b"x")


@pytest.mark.parametrize("spoil", [damaged, cut_short, of_another_version])
def test_image_that_cannot_be_read_is_removed_and_the_log_counts(spoil):
    world = busy_world()
    path = snapshot.path(DIRECTORY, image(world))
    spoil(world.files, path)
    again = world.crash()
    assert began_at(again) == 0
    assert facts(again) == facts(world)
    assert not again.files.exists(path)


@pytest.mark.heavy
def test_image_of_nonsense_with_a_right_checksum_is_passed_over():
    world = busy_world()
    path = snapshot.path(DIRECTORY, image(world))
    payload = bytes(snapshot.read(world.files, path))
    for cut in range(8, len(payload), max(1, len(payload) // 40)):
        files = world.files.crash()
        snapshot.write(files, path, payload[:cut] + b"\xff" * 5)
        assert facts(world.again(files)) == facts(world)


def test_image_that_is_newer_than_the_logs_end_is_removed():
    world = busy_world()
    image(world)
    work(Client(world), random.Random(3), 5)
    offset = image(world)
    shard_of(world).log.cut_back(offset - 1)
    again = world.crash()
    assert began_at(again) == 0
    assert snapshot.offsets(again.files, DIRECTORY) == []
    assert committed(again, "a") != {}


def test_image_that_is_older_than_the_logs_start_is_removed():
    world = busy_world()
    offset = image(world)
    work(Client(world), random.Random(3), 5)
    directory = world.broker.directory
    directory.logs["__consumer_offsets", 0].delete_records_before(offset + 1)
    directory.log_start_moved("__consumer_offsets", 0, offset + 1)
    directory.write_checkpoints()
    again = world.crash()
    assert began_at(again) == offset + 1
    assert snapshot.offsets(again.files, DIRECTORY) == []


def test_housekeeping_takes_images():
    world = busy_world(commits=5)
    world.advance(5000)
    assert snapshot.offsets(world.files, DIRECTORY) == [shard_of(world).log.end_offset]


def test_reader_of_an_image_yields_now_and_then(monkeypatch):
    monkeypatch.setattr("broker.coordinator.offsets.snapshots.CELLS_A_SLICE", 1)
    world = busy_world()
    payload = snapshot.read(world.files, snapshot.path(DIRECTORY, image(world)))
    replay = Replay(shard_of(world)._make_machine())
    assert sum(1 for _ in replay.image(payload)) > 3
