"""Files that share bytes under two names: whoever changes its own first gets a copy, and the other sees nothing."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

import pytest
from log_kit import put

from storage.files.disk import SystemFiles
from storage.files.sim_env import MemoryFiles, sim_env
from storage.log.log import Log, LogConfig

KINDS = ("memory", "disk", "no links", "no ranges", "short ranges")


@pytest.fixture(params=KINDS)
def files(request, tmp_path, monkeypatch) -> Any:
    """Two disks that share bytes, with a folder each."""
    if request.param == "memory":
        ours, theirs = MemoryFiles(), MemoryFiles()
    else:
        ours = SystemFiles(8)
        theirs = ours.share()
        monkeypatch.chdir(tmp_path)
        if request.param == "no links":

            def refuse(*_: object) -> None:
                raise OSError(errno.EPERM, "no links here")

            monkeypatch.setattr(os, "link", refuse)
        if request.param == "no ranges":
            monkeypatch.delattr(os, "copy_file_range")
        if request.param == "short ranges":
            monkeypatch.setattr(os, "copy_file_range", lambda *_: 0)
    for disk, folder in ((ours, "a"), (theirs, "b")):
        disk.makedirs(folder)
    return ours, theirs


def write(files: Any, path: str, data: bytes) -> Any:
    file = files.open_append(path)
    file.append([data])
    return file


def test_appending_to_a_shared_file_changes_one_name(files):
    ours, theirs = files
    file = write(ours, "a/x", b"one")
    theirs.adopt(ours, "a/x", "b/x")
    other = theirs.open_append("b/x")
    assert (other.size, other.pread(9, 0)) == (3, b"one")
    file.append([b" ours"])
    other.append([b" theirs"])
    assert ours.read_file("a/x") == file.pread(99, 0) == b"one ours"
    assert theirs.read_file("b/x") == other.pread(99, 0) == b"one theirs"


@pytest.mark.parametrize("first", ["a", "b"])
def test_cutting_a_shared_file_changes_one_name(files, first):
    ours, theirs = files
    both = {"a": write(ours, "a/x", b"one two")}
    theirs.adopt(ours, "a/x", "b/x")
    both["b"] = theirs.open_append("b/x")
    both[first].truncate(3)
    content = {"a": ours.read_file("a/x"), "b": theirs.read_file("b/x")}
    assert content == {"a": b"one two", "b": b"one two"} | {first: b"one"}


def test_file_that_is_shared_again_is_copied_again(files):
    ours, theirs = files
    file = write(ours, "a/x", b"1")
    for number in range(3):
        theirs.adopt(ours, "a/x", f"b/{number}")
        file.append([b"+"])
    assert ours.read_file("a/x") == b"1+++"
    assert [theirs.read_file(f"b/{number}") for number in range(3)] == [b"1", b"1+", b"1++"]


def test_file_taken_from_a_copy_is_not_the_first_one(files):
    """A fork of a snapshot: three names, of which any may change."""
    ours, theirs = files
    file = write(ours, "a/x", b"1")
    theirs.adopt(ours, "a/x", "b/x")
    ours.adopt(theirs, "b/x", "a/y")
    ours.open_append("a/y").append([b"y"])
    file.append([b"x"])
    assert (ours.read_file("a/x"), theirs.read_file("b/x"), ours.read_file("a/y")) == (b"1x", b"1", b"1y")


def test_replacing_or_removing_a_name_leaves_the_other(files):
    ours, theirs = files
    for name in ("replaced", "removed"):
        write(ours, f"a/{name}", b"old")
        theirs.adopt(ours, f"a/{name}", f"b/{name}")
    ours.write_file_atomic("a/replaced", b"new")
    ours.remove("a/removed")
    assert theirs.read_file("b/replaced") == theirs.read_file("b/removed") == b"old"


def test_slice_that_is_being_read_keeps_the_bytes_it_was_cut_from(files):
    ours, theirs = files
    file = write(ours, "a/x", b"one")
    theirs.adopt(ours, "a/x", "b/x")
    before = file.pread(3, 0)
    file.append([b" more"])
    file.truncate(3)
    assert file.pread(3, 0) == before == b"one"


def test_copy_that_finds_no_room_changes_nothing(tmp_path, monkeypatch):
    files = SystemFiles(8)
    file = write(files, f"{tmp_path}/x", b"one")
    files.adopt(files, f"{tmp_path}/x", f"{tmp_path}/y")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(OSError, match="full"):
            file.append([b" two"])
    assert (file.size, files.read_file(f"{tmp_path}/x")) == (3, b"one")
    file.append([b" two"])
    assert (files.read_file(f"{tmp_path}/x"), files.read_file(f"{tmp_path}/y")) == (b"one two", b"one")


def test_copy_is_synced_where_writes_are_relied_on(tmp_path, monkeypatch):
    synced: list[int] = []

    def fsync(fd: int) -> None:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            synced.append(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    for syncs in (False, True):
        files = SystemFiles(8).share(syncs=syncs)
        file = write(files, f"{tmp_path}/{syncs}", b"one")
        files.adopt(files, f"{tmp_path}/{syncs}", f"{tmp_path}/{syncs}-copy")
        file.append([b" two"])
        assert bool(synced) is syncs


def test_log_of_a_copy_is_not_taken_for_synced():
    env = sim_env()
    env.files.makedirs("/a")
    log = Log.open(env, "/a/t-0", LogConfig())
    put(log, (b"k", b"v"))
    log.flush()
    log.sync()
    env.files.makedirs("/b/t-0")
    for name in env.files.listdir("/a/t-0"):
        env.files.adopt(env.files, f"/a/t-0/{name}", f"/b/t-0/{name}")
    copy = Log.open(env, "/b/t-0", LogConfig(), clean=True, synced=False)
    assert (copy.end_offset, copy.synced_offset, copy.report.scanned_bytes) == (1, 0, 0)
    for folder in ("", "/a", "/b"):
        env.files.sync_dir(folder)
    copy.sync()
    after = env.files.crash(lose_unsynced=True)
    assert after.read_file("/b/t-0/00000000000000000000.log") == after.read_file("/a/t-0/00000000000000000000.log")


def test_log_that_forgets_its_syncs_syncs_again():
    env = sim_env()
    log = Log.open(env, "/t-0", LogConfig())
    put(log, (b"k", b"v"))
    log.flush()
    log.sync()
    log.forget_syncs(0)
    before = env.files.operations
    assert log.sync() == 1
    assert env.files.operations > before
