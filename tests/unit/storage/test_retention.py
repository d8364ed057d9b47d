"""What retention deletes, and what it must not."""

from __future__ import annotations

import os

import pytest
from log_kit import DIRECTORY, content, filled, put, reopened

from storage import compaction, retention
from storage.env import system_env
from storage.log import LogConfig
from storage.sim_env import sim_env

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100, retention_ms=-1)


@pytest.fixture
def env():
    return sim_env()


def bases(log):
    return [segment.base_offset for segment in log.segments]


def test_retention_by_time_deletes_segments_whose_latest_record_is_too_old(env):
    log = filled(env, 20, CONFIG._replace(retention_ms=100))
    latest = [segment.largest_timestamp for segment in log.segments]
    kept = [base for base, time in zip(bases(log), latest, strict=True) if 1200 - time <= 100]
    assert log.retain(1200)
    assert bases(log) == kept
    assert log.log_start_offset == kept[0]
    assert len(kept) > 1


def test_retention_of_everything_keeps_the_end_of_the_log(env):
    log = filled(env, 20, CONFIG._replace(retention_ms=100))
    log.retain(100_000)
    assert (bases(log), log.log_start_offset, log.end_offset, log.size_bytes) == ([40], 40, 40, 0)
    after = reopened(env, CONFIG)
    assert (after.log_start_offset, after.end_offset) == (40, 40)
    put(after)
    after.flush()
    assert reopened(env, CONFIG).end_offset == 41


def test_retention_by_size_keeps_at_least_so_much(env):
    log = filled(env, 20, CONFIG._replace(retention_bytes=1000))
    sizes = [segment.size for segment in log.segments]
    log.retain(0)
    assert log.size_bytes >= 1000 > log.size_bytes - sizes[len(sizes) - len(log.segments)]


def test_retention_never_reaches_beyond_the_high_watermark(env):
    log = filled(env, 20, CONFIG._replace(retention_ms=1))
    second = bases(log)[1]
    log.retain(100_000, second)
    assert bases(log)[0] == second
    assert log.retain(100_000, second + 1) == []


def test_compacted_log_is_deleted_only_below_its_start(env):
    log = filled(env, 20, CONFIG._replace(retention_ms=1, cleanup_policy=frozenset({"compact"})))
    third = bases(log)[2]
    assert log.retain(100_000) == []
    assert log.delete_records_before(third + 1) == third + 1
    assert len(log.retain(100_000)) == 2
    assert log.log_start_offset == third + 1
    assert log.read(third + 1, 10, limit_offset=40) is not None


def test_records_without_time_expire_by_the_age_of_their_file(env):
    from storage.log import Log

    log = Log.open(env, DIRECTORY, CONFIG._replace(retention_ms=100))
    put(log, timestamp_ms=-1)
    log.flush()
    now = env.clock.now_ms()
    assert log.retain(now + 100) == []
    assert log.retain(now + 101) == [0]


def test_slice_outlives_the_segment_it_was_cut_from(env):
    log = filled(env, 20, CONFIG._replace(retention_ms=1))
    found = log.read(0, 200, limit_offset=40)
    expected = content(log)[: len(found)]
    log.retain(100_000)
    assert found.read() == expected


@pytest.mark.parametrize("how", ["retain", "delete", "cut_back", "clean"])
def test_slice_on_disk_outlives_its_segment_and_eviction(tmp_path, how):
    from storage.env import Env, Rng, SystemClock, SystemFiles

    env = Env(SystemClock(), Rng(1), SystemFiles(max_open_files=1))
    log = filled(env, 20, CONFIG._replace(retention_ms=1), directory=f"{tmp_path}/topic-0")
    last = log.segments[-1].base_offset - 2 if how == "clean" else log.segments[-1].base_offset
    offset = last if how == "cut_back" else 0
    found = log.read(offset, 200, limit_offset=40)
    expected = content(log, offset)[: len(found)]
    env.files.close()
    if how == "clean":
        for _ in log.clean(100_000):
            pass
    else:
        {"retain": lambda: log.retain(100_000), "delete": log.delete, "cut_back": lambda: log.cut_back(1)}[how]()
    assert found.read() == expected
    assert env.files.open_handles <= 1


def test_many_slices_need_no_descriptor_each(tmp_path):
    from storage.env import Env, Rng, SystemClock, SystemFiles

    env = Env(SystemClock(), Rng(1), SystemFiles(max_open_files=3))
    logs = [filled(env, 2, directory=f"{tmp_path}/topic-{n}") for n in range(30)]
    slices = [log.read(0, 1000, limit_offset=4) for log in logs]
    open_before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    assert [found.read() for found in slices] == [content(log) for log in logs]
    assert env.files.open_handles <= 3
    if open_before:
        assert len(os.listdir("/proc/self/fd")) <= open_before


POLICIES = {"retention": "delete", "cleaner": "compact"}


@pytest.mark.parametrize("how", POLICIES)
def test_sync_that_meets_a_segment_which_is_just_being_removed_is_no_failure(tmp_path, monkeypatch, how):
    """As a thread may, between the removal of the file and that of the segment. A failed sync is never tried again."""
    config = CONFIG._replace(retention_ms=100, cleanup_policy=frozenset({POLICIES[how]}))
    log = filled(system_env(), 20, config, directory=f"{tmp_path}/t-0")
    module = compaction if how == "cleaner" else retention
    remove, met = module.remove_segment, []

    def removed(files, directory, base_offset):
        remove(files, directory, base_offset)
        files.close()  # the descriptor made room for another: the sync has to open the file again
        log.synced_offset = 0
        log.sync()
        met.append(base_offset)

    monkeypatch.setattr(module, "remove_segment", removed)
    if how == "cleaner":
        log.config = config._replace(segment_bytes=1 << 20)  # so that it merges them
        for _ in log.clean(1 << 41):
            pass
    else:
        log.retain(1200)
    assert met
    assert log.synced_offset == log.flushed_offset


def test_sync_of_a_file_that_somebody_else_removed_fails(tmp_path):
    log = filled(system_env(), 3, CONFIG, directory=f"{tmp_path}/t-0")
    log.env.files.close()
    os.remove(log.segments[0].file.path)
    with pytest.raises(FileNotFoundError):
        log.sync()
