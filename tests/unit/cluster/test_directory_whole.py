"""A data directory is opened only if it is ours and whole: strangers; resets and copies that were cut short."""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random

import pytest
from core_broker import DATA, Client, World, make_topic
from core_requests import committed, fetch_bytes, fetch_request, produce_request
from power_cut import power_cut

from broker.cluster.data.copies import is_discarded, partitions_in, remove_discarded
from broker.cluster.data.directory import DataDirectory
from broker.cluster.data.identity import DirectoryError
from broker.config.settings import BrokerConfig
from broker.shell.cluster_plan import ClusterPlan, Origin
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from storage.clock.manual_clock import ManualClock
from storage.files import checkpoints
from storage.files.env import Env, Rng, SystemFiles
from storage.files.sim_env import MemoryFiles, sim_env
from storage.files.sim_faults import SimulatedCrash


def with_files(*paths: str) -> MemoryFiles:
    files = MemoryFiles()
    for path in paths:
        files.makedirs(f"{DATA}/{path}".rpartition("/")[0])
        files.write_file_atomic(f"{DATA}/{path}", path.encode())
    return files


def names(files: MemoryFiles) -> dict[str, list[str]]:
    return {folder: sorted(entries) for folder, entries in files._names.items()}


def filled(files: MemoryFiles | None = None) -> World:
    world = World("os", sim_env(files=files))
    client = Client(world)
    make_topic(client, partitions=2)
    for index in range(2):
        client.call(produce_request("t", index, b"kept"), 9)
    return world


def records(world: World) -> list[bytes]:
    client = Client(world)
    return [fetch_bytes(client.call(fetch_request("t", index, 0), 11)) for index in range(2)]


@pytest.mark.parametrize("stranger", ["photo.jpg", "holidays/photo.jpg", "t-0/00000000000000000000.log", ".profile"])
def test_folder_of_somebody_else_is_refused_and_left_alone(stranger):
    files = with_files(stranger)
    before = names(files)
    with pytest.raises(DirectoryError, match=rf"/data is no data directory.*{stranger.split('/')[0]} and no meta"):
        World(env=sim_env(files=files))
    assert names(files) == before


def test_folder_that_no_broker_has_used_yet_is_taken():
    files = with_files("lost+found/x", ".gitkeep", ".lock", "security/ca.pem", "meta.properties.tmp")
    assert World(env=sim_env(files=files)).broker.cluster_id


def test_folder_of_a_broker_may_hold_other_files():
    files = filled().files.crash()
    files.write_file_atomic(f"{DATA}/notes.txt", b"mine")
    files.makedirs(f"{DATA}/to-delete")
    files.write_file_atomic(f"{DATA}/to-delete/photo.jpg", b"mine too")
    assert all(b"kept" in each for each in records(World(env=sim_env(files=files))))
    assert files.read_file(f"{DATA}/to-delete/photo.jpg") == b"mine too"


def test_reset_that_was_cut_short_leaves_all_or_nothing():
    deaths = 0
    while True:
        world = filled()
        kept = records(world)
        world.files.kill_at(deaths + 1)
        with suppress(SimulatedCrash):
            world.broker.directory.discard()
            break
        deaths += 1
        after = World(env=sim_env(files=world.files.crash()))
        is_whole = after.broker.cluster_id == world.broker.cluster_id
        assert ("t" in after.broker.metadata.topics) is is_whole
        assert not is_whole or records(after) == kept
        assert not after.files.exists(f"{DATA}/{checkpoints.UNFINISHED}")
    assert deaths > 5


def test_copy_that_was_cut_short_is_not_taken_for_a_whole_one():
    world, deaths = filled(), 0
    while True:
        files = MemoryFiles()
        files.kill_at(deaths + 1)
        with suppress(SimulatedCrash), checkpoints.unfinished(files, DATA, sync=False):
            world.broker.directory.copy_to(files, DATA)
            break
        deaths += 1
        after = World(env=sim_env(1, files=files.crash()))
        assert after.broker.cluster_id != world.broker.cluster_id
        assert "t" not in after.broker.metadata.topics
    assert deaths > 5
    whole = World(env=sim_env(1, files=files.crash()))
    assert (whole.broker.cluster_id, records(whole)) == (world.broker.cluster_id, records(world))
    assert committed(whole, "g") == {}


def test_life_that_begins_with_a_copy_marks_it_until_it_is_whole(tmp_path):
    def fill(files, path, sync):
        files.write_file_atomic(f"{path}/meta.properties", b"cluster.id=half\n")
        raise SimulatedCrash

    plan = ClusterPlan("c", {}, data_dir=str(tmp_path / "data"), listen=None)
    disk = SystemFiles()
    with suppress(SimulatedCrash):
        plan.new_env(disk, movable=False, origin=Origin(fill, 0, None))
    directory = plan.open_directory(plan.new_env(disk, movable=False), plan.new_config())
    assert directory.cluster_id != "half"
    disk.close()


@pytest.mark.parametrize("is_open", [True, False])
def test_nothing_in_the_folder_of_a_deleted_topic_goes_before_its_new_name_is_durable(is_open, monkeypatch):
    """Else a loss of power could leave its segments under the old name, without the id that says whose they are."""
    world = filled()
    if not is_open:
        world = world.restart()
    world.files.sync_dir(DATA)
    remove_tree, removed = MemoryFiles.remove_tree, []

    def after_a_loss_of_power(files, path):
        removed.append(path)
        assert not files.crash(lose_unsynced=True).exists(path.partition(".")[0])
        remove_tree(files, path)

    monkeypatch.setattr(MemoryFiles, "remove_tree", after_a_loss_of_power)
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
    assert Client(world).call(delete, 6).responses[0].error_code == 0
    assert len(removed) == 2


def test_topic_whose_name_begins_as_what_was_put_aside_is_kept_until_a_reset():
    world = World()
    client = Client(world)
    name = ".discarded.events"
    make_topic(client, name)
    client.call(produce_request(name, 0, b"x"), 9)
    world = world.restart()
    directory = world.broker.directory
    remove_discarded(directory.env.files, directory.path)
    assert fetch_bytes(Client(world).call(fetch_request(name, 0, 0), 11))
    assert (name, 0) in partitions_in(world.files, DATA), "a copy and a clean end look for all logs"
    directory.discard()
    assert not world.files.exists(f"{DATA}/{name}-0")


def test_lives_and_clusters_of_one_seed_are_put_aside_in_folders_of_their_own(tmp_path):
    """Each life draws the same numbers, and what the one before has left is removed in a thread of its own."""

    def discarded(path: str, place: str | None = None) -> str:
        files = SystemFiles()
        files.makedirs(f"{tmp_path}/{path}")
        opened = DataDirectory.open(Env(ManualClock(), Rng(7), files), f"{tmp_path}/{path}", BrokerConfig({}))
        return opened.discard(place)

    aside = [discarded("seeded"), discarded("seeded"), discarded("seeded")]
    aside += [discarded(name, str(tmp_path)) for name in ("first", "second")]
    assert len(set(aside)) == 5
    for folder in aside:
        assert checkpoints.META_PROPERTIES in os.listdir(folder), folder
        assert is_discarded(os.path.basename(folder)), "a start removes it"


@pytest.mark.parametrize("seed", range(12))
def test_reset_that_a_loss_of_power_cuts_short_begins_empty_or_has_not_begun(seed):
    """At `fsync`, in whatever order the names reach the disk."""
    rng = Random(seed)
    world = World("fsync")
    client = Client(world)
    make_topic(client)
    client.call(produce_request("t", 0, b"kept"), 9)
    world.files.kill_at(rng.randrange(1, 12))
    with suppress(SimulatedCrash):
        world.broker.directory.discard()
    again = World("fsync", sim_env(files=power_cut(world.files, rng)))
    answer = Client(again).call(fetch_request("t", 0, 0), 11)
    found = fetch_bytes(answer)
    assert b"kept" in found if "t" in again.broker.metadata.topics else not found
