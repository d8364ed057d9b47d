"""The door to the disk: fallbacks that a test can force, full descriptor tables, locks, whole files."""

from __future__ import annotations

import errno
import os

import pytest

from storage.files.env import Env, Platform, Rng, SystemClock, SystemFiles, system_env
from storage.files.errors import LockedError
from storage.files.sim_env import MemoryFiles, sim_env
from storage.files.sim_faults import SimulatedCrash

PLATFORMS = {
    "posix": Platform(),
    "no_writev": Platform(writev=False),
    "windows": Platform(writev=False, pread=False, fdatasync=False),
}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
def test_file_appends_reads_syncs_and_truncates(tmp_path, platform):
    files = SystemFiles(4, platform)
    file = files.open_append(f"{tmp_path}/x")
    assert not os.path.exists(file.path)
    file.append([b"abc", memoryview(b"defg")])
    file.append([bytes([n % 256]) for n in range(5000)])
    assert file.size == 5007 == os.path.getsize(file.path)
    assert file.pread(6, 1) == b"bcdefg"
    file.sync()
    file.truncate(4)
    file.append([b"Z"])
    assert files.open_append(file.path).pread(100, 0) == b"abcdZ"


def test_platform_without_a_call_has_none_of_it():
    assert PLATFORMS["windows"].writev is None
    assert PLATFORMS["windows"].pread is None
    assert PLATFORMS["windows"].fdatasync is os.fsync


def test_write_that_takes_only_a_part_is_continued(tmp_path, monkeypatch):
    files = SystemFiles()
    writev = files.platform.writev
    calls = []

    def short(fd, buffers):
        calls.append(len(buffers))
        return writev(fd, [b"".join(buffers)[:3]])

    files.platform.writev = short
    file = files.open_append(f"{tmp_path}/x")
    file.append([b"ab", b"cd", b"ef"])
    assert file.pread(10, 0) == b"abcdef"
    assert (calls, file.size) == ([3], 6)


def test_write_of_one_buffer_that_takes_only_a_part_is_continued(tmp_path, monkeypatch):
    write = os.write
    calls = []

    def short(fd, buffer):
        calls.append(len(buffer))
        return write(fd, bytes(buffer)[:3])

    file = SystemFiles().open_append(f"{tmp_path}/x")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", short)
        file.append([b"abcdefg"])
    assert file.pread(10, 0) == b"abcdefg"
    assert (calls, file.size) == ([7, 4, 1], 7)


@pytest.mark.parametrize("buffers", [[b"cdef"], [b"cd", b"ef"]], ids=["one", "two"])
def test_file_that_fails_keeps_its_size(tmp_path, monkeypatch, buffers):
    files = SystemFiles()
    file = files.open_append(f"{tmp_path}/x")
    file.append([b"ab"])
    write = os.write

    def full(fd, data):
        write(fd, b"c")
        raise OSError(errno.ENOSPC, "full")

    files.platform.writev = full
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="full"):
            file.append(buffers)
    assert (file.size, os.path.getsize(file.path)) == (2, 3)


def test_out_of_descriptors_closes_some_of_ours_and_tries_again(tmp_path, monkeypatch):
    files = SystemFiles(100)
    opened = [files.open_append(f"{tmp_path}/{n}") for n in range(20)]
    for file in opened:
        file.append([b"x"])
    real_open, refusals = os.open, [errno.EMFILE]

    def refusing(*args):
        if refusals:
            raise OSError(refusals.pop(), "too many open files")
        return real_open(*args)

    monkeypatch.setattr(os, "open", refusing)
    files.open_append(f"{tmp_path}/new").append([b"y"])
    assert files.open_handles == 20 - 5 + 1
    refusals += [errno.EMFILE, errno.EMFILE]
    with pytest.raises(OSError, match="too many"):
        files.open_append(f"{tmp_path}/newer").append([b"y"])


def test_deleted_file_does_not_come_back_when_its_handle_was_closed(tmp_path):
    files = SystemFiles()
    file = files.open_append(f"{tmp_path}/x")
    file.append([b"abc"])
    file.close()
    os.remove(file.path)
    with pytest.raises(FileNotFoundError):
        file.sync()
    assert not os.path.exists(file.path)


def test_lock_is_refused_while_it_is_held(tmp_path):
    files = SystemFiles()
    lock = files.lock(f"{tmp_path}/.lock")
    with pytest.raises(LockedError, match="held by another process"):
        SystemFiles().lock(f"{tmp_path}/.lock")
    lock.release()
    files.lock(f"{tmp_path}/.lock").release()


def test_uuids_never_begin_with_a_dash_and_repeat_by_seed():
    from storage.files.checkpoints import uuid_from_text, uuid_text

    ids = [Rng(7).uuid_bytes(), *(sim_env(n).rng.uuid_bytes() for n in range(300))]
    assert not any(uuid_text(raw).startswith("-") for raw in ids)
    assert all(uuid_from_text(uuid_text(raw)) == raw for raw in ids)
    assert ids[0] == ids[8]
    assert len(set(ids)) == 300
    assert system_env().rng.uuid_bytes() != system_env().rng.uuid_bytes()


def test_system_clock_counts_milliseconds_since_1970():
    assert 1_700_000_000_000 < SystemClock().now_ms() < 10_000_000_000_000
    assert SystemClock().monotonic_ms() <= SystemClock().monotonic_ms()


def test_manual_clock_moves_only_when_told():
    env = sim_env(now_ms=5)
    env.clock.advance(10)
    assert (env.clock.now_ms(), env.clock.monotonic_ms()) == (15, 10)


@pytest.fixture(params=["memory", "disk"])
def env(request, tmp_path):
    if request.param == "memory":
        env = sim_env()
        env.files.makedirs(str(tmp_path))
        return env
    return Env(SystemClock(), Rng(0), SystemFiles())


def test_names_behave_alike_in_memory_and_on_disk(env, tmp_path):
    files, root = env.files, str(tmp_path)
    files.makedirs(f"{root}/a/b")
    files.write_file_atomic(f"{root}/a/b/x", b"one")
    files.write_file_atomic(f"{root}/a/b/x", b"two!")
    assert (files.read_file(f"{root}/a/b/x"), files.file_size(f"{root}/a/b/x")) == (b"two!", 4)
    files.rename(f"{root}/a/b/x", f"{root}/a/y")
    assert (files.listdir(f"{root}/a"), files.listdir(f"{root}/a/b")) == (["b", "y"], [])
    files.rename(f"{root}/a", f"{root}/c")
    assert files.exists(f"{root}/c/b")
    assert not files.exists(f"{root}/a")
    assert files.read_file(f"{root}/c/y") == b"two!"
    files.sync_dir(f"{root}/c")
    files.remove(f"{root}/c/y")
    for missing in (files.read_file, files.remove, files.file_size):
        with pytest.raises(FileNotFoundError):
            missing(f"{root}/c/y")
    files.remove_tree(f"{root}/c")
    assert files.listdir(root) == []
    assert files.listdir(f"{root}/nowhere") == []
    assert min(files.free_bytes(root)) > 0


def test_started_sync_tells_when_it_is_done(env, tmp_path):
    file = env.files.open_append(f"{tmp_path}/x")
    file.append([b"abc"])
    done = env.files.start(file.sync)
    while not done():
        pass
    env.files.remove(f"{tmp_path}/x")


def test_started_sync_raises_what_the_sync_raised(tmp_path):
    files = SystemFiles()
    file = files.open_append(f"{tmp_path}/x")
    file.append([b"abc"])
    file.close()
    os.remove(file.path)
    done = files.start(file.sync)
    with pytest.raises(FileNotFoundError):
        wait_for(done)


def wait_for(done):
    while not done():
        pass


def test_power_cut_in_memory_keeps_only_what_was_synced():
    files = MemoryFiles()
    files.makedirs("/d")
    files.sync_dir("")
    file = files.open_append("/d/x")
    file.append([b"abc"])
    file.sync()
    file.append([b"def"])
    assert files.crash(lose_unsynced=True).listdir("/d") == []
    files.sync_dir("/d")
    assert files.crash(lose_unsynced=True).read_file("/d/x") == b"abc"
    assert files.crash().read_file("/d/x") == b"abcdef"
    files.rename("/d/x", "/d/y")
    assert files.crash(lose_unsynced=True).listdir("/d") == ["x"]


def test_killed_process_does_nothing_any_more():
    files = MemoryFiles()
    file = files.open_append("/x")
    files.kill_at(2, short_bytes=1)
    file.append([b"abc"])
    with pytest.raises(SimulatedCrash):
        file.append([b"def"])
    with pytest.raises(SimulatedCrash):
        files.makedirs("/late")
    assert files.crash().read_file("/x") == b"abcd"
