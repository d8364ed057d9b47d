"""The metadata log stays small: an image takes the place of its past, and no crash on the way changes anything."""

from __future__ import annotations

import subprocess

import pytest
from core_broker import DATA, Client, SimulatedCrash, World, make_topic
from core_requests import produce_request

from broker.cluster import metadata_image
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from storage.files.errors import StorageError

LOG = f"{DATA}/__cluster_metadata-0"


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(metadata_image, "WORTH_RECORDS", 20)
    monkeypatch.setattr(metadata_image, "RECORDS_A_BATCH", 3)


def busy_world() -> World:
    """A broker that has made and deleted much, and kept one topic."""
    world = World()
    client = Client(world)
    make_topic(client, "kept", 2)
    for _ in range(5):
        make_topic(client, "t", 4)
        state = DeleteTopicState(name="t")
        assert client.call(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6).responses[0].error_code == 0
    return world


def names(world: World) -> list[str]:
    """Without an empty file, which remembers the end of the log by its name."""
    found = [name for name in world.files.listdir(LOG) if name.endswith((".log", ".checkpoint"))]
    return [name for name in found if world.files.file_size(f"{LOG}/{name}")]


def state(world: World):
    return world.broker.metadata.fingerprint()


def epoch(world: World) -> int:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return Client(world).call(request, 4).finalized_features_epoch


def is_usable(world: World) -> None:
    """What comes after is kept like everything before."""
    before = state(world)
    client = Client(world)
    make_topic(client, "later", 1)
    assert client.call(produce_request("later", 0, b"v"), 9).responses[0].partition_responses[0].error_code == 0
    after = state(world)
    assert after != before
    assert state(world.restart()) == after
    assert state(world.crash()) == after


def test_start_puts_an_image_in_the_place_of_a_long_log():
    world = busy_world()
    end = world.broker.metadata_shard.log.end_offset
    after = world.restart()
    assert names(after) == [f"{end:020d}-0000000000.checkpoint"]
    assert state(after) == state(world)
    assert after.broker.metadata_shard.log.end_offset == end
    assert state(after.restart()) == state(world)
    is_usable(after)


def test_feature_epoch_never_goes_back():
    world = busy_world()
    seen = epoch(world)
    after = world.restart()
    assert epoch(after) == seen
    assert epoch(after.restart()) == seen


def test_log_that_is_mostly_alive_is_left_alone():
    world = World(offsets_topic_num_partitions="30")
    assert not any(name.endswith(".checkpoint") for name in names(world.restart()))


def test_next_image_takes_the_place_of_the_first():
    world = busy_world().restart()
    (first,) = names(world)
    client = Client(world)
    for _ in range(5):
        make_topic(client, "t", 4)
        client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), 6)
    after = world.restart()
    (second,) = names(after)
    assert second > first
    assert state(after) == state(world)
    is_usable(after)


@pytest.mark.parametrize("lose_unsynced", [False, True])
@pytest.mark.parametrize("nth", range(1, 16))
def test_kill_at_any_write_of_the_image_changes_nothing(nth, lose_unsynced):
    world = busy_world()
    world.broker.close()
    files = world.files.crash(lose_unsynced=lose_unsynced)
    files.kill_at(nth)
    try:
        died = world.again(files)
        assert state(died) == state(world)
    except SimulatedCrash:
        pass
    after = world.again(files.crash(lose_unsynced=lose_unsynced))
    assert state(after) == state(world)
    assert state(after.restart()) == state(world)
    is_usable(after)


def test_kill_is_tried_at_every_write():
    world = busy_world()
    world.broker.close()
    files = world.files.crash()
    before = files.operations
    world.again(files)
    assert files.operations - before < 16, "test_kill_at_any_write_of_the_image must go on to this number"


@pytest.mark.parametrize("kind", ["replace", "remove", "sync"])
def test_disk_that_fails_leaves_the_log_as_it_is(kind):
    world = busy_world()
    files = world.files.crash()
    files.inject(2 if kind == "remove" else 1, kinds={kind})
    after = world.again(files)
    assert state(after) == state(world)
    files.heal()
    is_usable(after)


def test_damaged_image_is_refused_by_name():
    world = busy_world().restart()
    (name,) = names(world)
    world.broker.close()
    files = world.files.crash()
    data = bytearray(files.read_file(f"{LOG}/{name}"))
    data[len(data) // 2] ^= 1
    files.write_file_atomic(f"{LOG}/{name}", bytes(data))
    with pytest.raises(StorageError, match=name):
        world.again(files)
    files.write_file_atomic(f"{LOG}/{name}", bytes(data[:100]))
    with pytest.raises(StorageError, match=name):
        world.again(files.crash())


def test_log_cut_by_hand_below_its_image_goes_on_behind_it():
    world = busy_world()
    log = f"{LOG}/{0:020d}.log"
    data = world.files.read_file(log)
    after = world.restart()
    after.broker.close()
    files = after.files.crash()
    files.write_file_atomic(log, data[: len(data) // 2])
    again = world.again(files)
    assert again.broker.metadata_shard.log.end_offset >= world.broker.metadata_shard.log.end_offset
    is_usable(again)


@pytest.mark.java
def test_kafkas_tool_reads_the_image(kafka_libs, tmp_path):
    world = busy_world().restart()
    (name,) = names(world)
    path = tmp_path / name
    path.write_bytes(world.files.read_file(f"{LOG}/{name}"))
    command = ["java", "-cp", kafka_libs, "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder"]
    done = subprocess.run([*command, "--files", str(path)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "SnapshotHeader" in done.stdout
    assert "SnapshotFooter" in done.stdout
    assert '"name":"kept"' in done.stdout
    assert "isvalid: false" not in done.stdout
