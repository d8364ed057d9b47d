"""Checkpoints, metadata and snapshots: whole, or as if they were not there."""

from __future__ import annotations

import os

import pytest

from storage.files import checkpoints, snapshot
from storage.files.disk import SystemFiles
from storage.files.sim_env import sim_env
from storage.segments.index import SparseIndex, decode
from storage.segments.leader_epochs import LeaderEpochs


@pytest.fixture
def files():
    files = sim_env().files
    files.makedirs("/data")
    return files


def test_offsets_checkpoint_is_kafkas_text(files):
    offsets = {("my-topic", 0): 12, ("__consumer_offsets", 49): 0}
    checkpoints.write_offsets(files, "/data/c", offsets)
    assert files.read_file("/data/c") == b"0\n2\nmy-topic 0 12\n__consumer_offsets 49 0\n"
    assert checkpoints.read_offsets(files, "/data/c") == offsets


@pytest.mark.parametrize(
    "damaged", [b"", b"1\n0\n", b"0\n2\na 0 1\n", b"0\nx\n", b"0\n1\na b c\n", b"0\n1\na 0\n", b"\xff\xfe"]
)
def test_damaged_checkpoint_is_as_good_as_none(files, damaged):
    files.write_file_atomic("/data/c", damaged)
    assert checkpoints.read_offsets(files, "/data/c") == {}


def test_properties_survive_and_comments_are_skipped(files):
    assert checkpoints.read_properties(files, "/data/p") is None
    files.write_file_atomic("/data/p", b"#Sat Nov 21\nversion=1\n cluster.id = a=b \n\n")
    assert checkpoints.read_properties(files, "/data/p") == {"version": "1", "cluster.id": "a=b"}
    checkpoints.write_properties(files, "/data/p", {"node.id": "0"})
    assert checkpoints.read_properties(files, "/data/p") == {"node.id": "0"}


def test_partition_metadata_holds_the_topic_id(files):
    assert checkpoints.read_partition_metadata(files, "/data") is None
    topic_id = bytes(range(16))
    checkpoints.write_partition_metadata(files, "/data", topic_id)
    assert files.read_file("/data/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"
    assert checkpoints.read_partition_metadata(files, "/data") == topic_id


def test_clean_shutdown_mark_counts_once(files):
    assert not checkpoints.take_mark(files, "/data", checkpoints.CLEAN_SHUTDOWN)
    checkpoints.mark_clean_shutdown(files, "/data")
    assert checkpoints.take_mark(files, "/data", checkpoints.CLEAN_SHUTDOWN)
    assert not checkpoints.take_mark(files.crash(lose_unsynced=True), "/data", checkpoints.CLEAN_SHUTDOWN)


def test_partition_metadata_that_is_short_says_nothing(files):
    path, topic_id = f"/data/{checkpoints.PARTITION_METADATA}", bytes(range(16))
    checkpoints.write_partition_metadata(files, "/data", topic_id)
    whole = files.read_file(path)
    for size in range(len(whole)):
        files.write_file_atomic(path, whole[:size])
        found = checkpoints.read_partition_metadata(files, "/data")
        assert found == (topic_id if size == len(whole) - 1 else None)


def test_snapshot_cut_or_flipped_anywhere_is_ignored(files):
    path = snapshot.path("/data", 42)
    snapshot.write(files, path, b"the state")
    whole = files.read_file(path)
    assert bytes(snapshot.read(files, path)) == b"the state"
    assert snapshot.read(files, path, version=2) is None
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]):
            files.write_file_atomic(path, damaged)
            assert snapshot.read(files, path) is None


def test_snapshots_are_listed_newest_first_and_older_ones_removed(files):
    for offset in (5, 70, 30):
        snapshot.write(files, snapshot.path("/data", offset), b"")
    assert snapshot.offsets(files, "/data") == [70, 30, 5]
    snapshot.remove_older(files, "/data", 30)
    assert snapshot.offsets(files, "/data") == [70, 30]
    assert snapshot.read(files, snapshot.path("/data", 5)) is None


def test_leader_epochs_follow_kafkas_table():
    epochs = LeaderEpochs()
    assert (epochs.latest, epochs.end_offset(0, 10)) == (-1, (-1, -1))
    for epoch, start in ((1, 0), (1, 5), (3, 10), (7, 20)):
        epochs.assign(epoch, start)
    assert (epochs.epochs, epochs.start_offsets) == ([1, 3, 7], [0, 10, 20])
    assert [epochs.epoch_of(offset) for offset in (0, 9, 10, 25)] == [1, 1, 3, 7]
    epochs.assign(5, 15)
    assert (epochs.epochs, epochs.start_offsets) == ([1, 3, 5], [0, 10, 15])
    epochs.cut_front(12)
    assert (epochs.epochs, epochs.start_offsets) == ([3, 5], [12, 15])
    assert epochs.latest == 5
    epochs.cut_back(15)
    assert (epochs.epochs, epochs.start_offsets, epochs.latest) == ([3], [12], 3)
    epochs.cut_back(0)
    assert (epochs.epochs, epochs.latest) == ([], -1)


def test_index_bytes_are_kafkas_and_come_back():
    index = SparseIndex()
    index.add(3, 5000)
    index.add(1 << 20, 70_000)
    index.add_time(1_700_000_000_000, 2)
    index.add_time(1_600_000_000_000, 3)
    index.add_time(1_800_000_000_001, 9)
    assert index.encode_offsets().hex() == "00000003" + "00001388" + "00100000" + "00011170"
    assert index.encode_times().hex() == "0000018bcfe56800" + "00000002" + "000001a3185c5001" + "00000009"
    again = decode(index.encode_offsets(), index.encode_times(), 80_000)
    for column in ("offsets", "positions", "timestamps", "time_offsets"):
        assert getattr(again, column) == getattr(index, column)


@pytest.mark.parametrize(
    ("offsets", "times"),
    [("00" * 7, ""), ("", "00" * 11), ("00000003000013880000000200002000", ""), ("0000000300ff1388", "")],
)
def test_index_that_cannot_be_right_is_refused(offsets, times):
    assert decode(bytes.fromhex(offsets), bytes.fromhex(times), 80_000) is None


def test_snapshot_is_summed_in_slices_of_a_bounded_size(files):
    parts = [bytes(1 << 20)] * 16
    slices = sum(1 for _ in snapshot.write_slowly(files, "/data/s", parts))
    assert slices >= 16 // 4
    assert snapshot.read(files, "/data/s") == b"".join(parts)


def test_snapshot_is_written_by_the_other_thread_alone_and_named_by_the_loop(files, monkeypatch):
    started = []

    def start(work):
        started.append(work)
        return lambda: not started

    monkeypatch.setattr(files, "start", start)
    steps = snapshot.write_slowly(files, "/data/s", [b"abc"])
    before = files.operations
    for _ in range(3):
        next(steps)
    assert files.operations == before
    started[0]()
    assert files.listdir("/data") == ["s.tmp"]
    started.clear()
    assert list(steps) == []
    assert files.listdir("/data") == ["s"]
    assert snapshot.read(files, "/data/s") == b"abc"


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="/proc tells which files are open")
def test_older_snapshots_go_while_they_are_open_so_that_others_free_them(tmp_path, monkeypatch):
    files = SystemFiles()
    for offset in (10, 20, 30):
        snapshot.write(files, snapshot.path(str(tmp_path), offset), b"abc")
    names = []
    remove = files.remove

    def removed(path):
        is_open = {os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")}
        assert os.path.realpath(path) in is_open
        names.append(path)
        remove(path)

    monkeypatch.setattr(files, "remove", removed)
    snapshot.remove_older(files, str(tmp_path), 30)
    assert names == [snapshot.path(str(tmp_path), offset) for offset in (20, 10)]
