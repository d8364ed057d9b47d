"""Copies of a data directory: what they have and leave out, when their logs are trusted, what survives a power cut."""

from __future__ import annotations

import core_broker
import pytest
from core_broker import DATA, Client, World, make_topic
from core_requests import commit_request, committed, fetch_bytes, fetch_request, produce_request

from broker.cluster.data.copies import copy_directory
from storage.files import checkpoints
from storage.files.sim_env import MemoryFiles, sim_env

COPY = "/copy"
LOG = f"{COPY}/t-0/00000000000000000000.log"


def begin(world: World, files: MemoryFiles, monkeypatch: pytest.MonkeyPatch, **settings: str) -> World:
    """A cluster on a copy."""
    monkeypatch.setattr(core_broker, "DATA", COPY)
    return World(world.flush, sim_env(7, world.clock.now_ms() + 1000, files), **{**world.settings, **settings})


def filled(flush: str, **settings: str) -> World:
    world = World(flush, **settings)
    client = Client(world)
    make_topic(client)
    for number in range(3):
        client.call(produce_request("t", 0, b"%d" % number), 9)
    client.call(commit_request("g", {0: 3}), 8)
    return world


def read(world: World) -> bytes:
    return fetch_bytes(Client(world).call(fetch_request("t", 0, 0), 11))


@pytest.mark.parametrize("flush", core_broker.FLUSHES)
def test_copy_has_the_records_offsets_and_identity_of_its_origin(flush, monkeypatch):
    world, files = filled(flush), MemoryFiles()
    world.broker.directory.copy_to(files, COPY)
    copy = begin(world, files, monkeypatch)
    assert copy.broker.cluster_id == world.broker.cluster_id
    assert read(copy) == read(world)
    assert committed(copy, "g") == committed(world, "g") == {0: 3}


def test_copy_leaves_out_what_is_not_of_the_state():
    files, target = MemoryFiles(), MemoryFiles()
    kept = ["meta.properties", "seeded-starts", "t-0/0.log.swap", "t-0/0.index", "t-0/0.momus-state"]
    kept += ["a-b-7/x.snapshot", ".discarded.t-0/x.snapshot", "t-0/00000000000000000042.log"]
    left_out = [".lock", ".kafka_cleanshutdown", "recovery-point-offset-checkpoint.tmp", "clusters/c/meta.properties"]
    left_out += [".snapshots/s/about.json", ".discarded.1/t-0/x", "t-0.0123-delete/0.log", "t-0/1.log.cleaned"]
    left_out += ["t-0/1.log.deleted", "t-0/leader-epoch-checkpoint.tmp"]
    for path in [*kept, *left_out]:
        files.makedirs(f"/from/{path}".rpartition("/")[0])
        files.write_file_atomic(f"/from/{path}", path.encode())
    copied = copy_directory(files, "/from", target, "/to")
    found = [f"{folder}/{name}" for folder, names in target._names.items() for name, inode in names.items() if inode]
    assert sorted(found) == sorted(f"/to/{path}" for path in kept)
    assert all(target.read_file(f"/to/{path}") == path.encode() for path in kept)
    assert (copied.files, copied.last_segments, copied.log_bytes) == (len(kept), {("t", 0): 42}, len(kept[-1]))


def test_logs_of_a_copy_are_opened_without_a_scan(monkeypatch):
    world, files = filled("os"), MemoryFiles()
    world.broker.directory.copy_to(files, COPY)
    copy = begin(world, files, monkeypatch)
    read(copy)
    log = copy.broker.directory.logs["t", 0]
    assert (log.end_offset, log.report.scanned_bytes, log.synced_offset) == (3, 0, 0)
    assert not files.exists(f"{COPY}/{checkpoints.COPY}")  # else a later crash would go unnoticed


def test_logs_that_nobody_has_looked_at_since_a_crash_are_scanned_in_the_copy(monkeypatch):
    world = filled("os")
    world.files._find(f"{DATA}/t-0/00000000000000000000.log").data[-1] ^= 1
    again = world.crash()
    assert ("t", 0) not in again.broker.directory.logs
    files = MemoryFiles()
    again.broker.directory.copy_to(files, COPY)
    copy = begin(again, files, monkeypatch)
    read(copy)
    log = copy.broker.directory.logs["t", 0]
    assert (log.end_offset, log.report.reason) == (2, "a batch has a wrong CRC")
    assert files.file_size(LOG) < again.files.file_size(f"{DATA}/t-0/00000000000000000000.log")


def test_recovery_points_do_not_reach_into_what_is_copied_later():
    world = filled("os")
    directory = world.broker.directory
    log = directory.logs["t", 0]
    log.sync()
    directory.recovery_point_moved(("t", 0), 3)
    directory.write_checkpoints()
    files = MemoryFiles()
    directory.copy_to(files, COPY)
    for disk, path in ((files, COPY), (world.files, DATA)):
        assert checkpoints.read_offsets(disk, f"{path}/{checkpoints.RECOVERY_POINTS}")["t", 0] == 0
    assert log.synced_offset == 0


@pytest.mark.parametrize("is_used", [False, True])
def test_copy_of_a_synced_cluster_survives_a_power_cut_with_all_that_was_acknowledged(is_used, monkeypatch):
    world, files = filled("fsync"), MemoryFiles()
    world.broker.directory.copy_to(files, COPY, sync=True)
    if is_used:
        copy = begin(world, files, monkeypatch)
        assert (read(copy), committed(copy, "g")) == (read(world), {0: 3})
    after = begin(world, files.crash(lose_unsynced=True), monkeypatch)
    assert after.broker.cluster_id == world.broker.cluster_id
    assert (read(after), committed(after, "g")) == (read(world), {0: 3})


def test_log_of_a_copy_that_its_first_life_did_not_open_is_durable_after_a_clean_stop_of_the_second(monkeypatch):
    world, files = filled("os"), MemoryFiles()
    world.broker.directory.copy_to(files, COPY)
    files.sync_dir("")
    first = begin(world, files, monkeypatch)
    assert ("t", 0) not in first.broker.directory.logs
    first.broker.close()
    second = begin(world, files.crash(), monkeypatch)
    assert read(second) == read(world)
    second.broker.close()
    third = begin(world, second.files.crash(lose_unsynced=True), monkeypatch)
    assert read(third) == read(world)


def test_broken_log_keeps_a_copy_from_being_trusted():
    world = filled("os")
    world.broker.directory.logs["t", 0].give_up("was broken by a test")
    files = MemoryFiles()
    world.broker.directory.copy_to(files, COPY)
    assert not files.exists(f"{COPY}/{checkpoints.COPY}")


def test_large_logs_take_their_index_along(monkeypatch):
    monkeypatch.setattr("broker.cluster.data.directory.WORTH_AN_INDEX_BYTES", 5000)
    world = filled("os", log_index_interval_bytes="100")
    client = Client(world)
    for _ in range(8):
        client.call(produce_request("t", 0, b"x" * 1000), 9)
    files = MemoryFiles()
    world.broker.directory.copy_to(files, COPY)
    assert files.file_size(LOG.replace(".log", ".index")) > 0


def test_copy_of_unwritten_records_is_what_a_crash_would_leave(monkeypatch):
    """A copy is taken between the append and the end of its turn: nobody has been told of these records."""
    world, files = filled("os"), MemoryFiles()
    client = Client(world)
    client.send(produce_request("t", 0, b"late"), 9)
    world.broker.directory.copy_to(files, COPY)
    copy = begin(world, files, monkeypatch)
    assert b"late" not in read(copy)
    assert client.replies() == []
    world.run()
    assert client.replies()
    assert b"late" in read(world)
    assert b"late" not in read(copy)
