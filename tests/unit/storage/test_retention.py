"""What retention deletes, and what it must not."""

from __future__ import annotations

import os
from random import Random

import pytest
from log_kit import DIRECTORY, content, durable_env, filled, put, reopened
from power_cut import power_cut

from storage.cleaning import compaction, retention
from storage.clock.movable_clock import MovableClock
from storage.files.env import Env, system_env
from storage.files.sim_env import sim_env
from storage.log.log import Log, LogConfig

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


def test_retention_of_everything_keeps_the_end_though_a_full_disk_stopped_an_earlier_round(env):
    log = filled(env, 20, CONFIG._replace(retention_ms=100))
    env.files.inject(1, kinds=("replace",), forever=True)  # of the empty file whose name is the end
    with pytest.raises(OSError, match="No space left"):
        log.retain(100_000)
    env.files.heal()
    log.retain(100_000)
    assert (bases(log), log.end_offset) == ([40], 40)
    assert reopened(env, CONFIG).end_offset == 40


def test_epochs_of_removed_segments_are_forgotten_though_a_later_removal_fails(env):
    log = Log.open(env, DIRECTORY, CONFIG._replace(retention_ms=100))
    for epoch in range(4):
        log.set_leader_epoch(epoch)
        put(log)
        log.roll()
    put(log)
    log.flush()
    env.files.inject(5, kinds=("remove",), forever=True)  # after two logs, and the indexes of the first
    with pytest.raises(OSError, match="No space left"):
        log.retain(100_000)
    assert (bases(log)[0], log.log_start_offset) == (2, 2)
    assert log.epoch_end_offset(0) == (0, 2)


@pytest.mark.parametrize("whole", [False, True])
def test_records_removed_while_the_cleaner_renames_its_file_are_not_back_after_a_kill(env, monkeypatch, whole):
    log = filled(env, 20, CONFIG._replace(cleanup_policy=frozenset({"compact", "delete"})))
    syncs = list[bool]()
    monkeypatch.setattr(env.files, "start", lambda work: lambda: not env.files.exists(swap) or bool(syncs))
    swap = f"{log.segments[0].stem}.log.swap"
    cleaning = compaction.clean(log, 2000, log.end_offset)
    while not env.files.exists(swap):
        next(cleaning)
    log.log_start_offset = log.segments[-1 if whole else 1].base_offset  # by DeleteRecords
    expected = log.log_start_offset
    assert log.retain(2000)
    after = reopened(Env(env.clock, env.rng, env.files.crash()), CONFIG)
    assert (after.log_start_offset, after.end_offset) == (expected, log.end_offset)
    syncs.append(True)
    list(cleaning)
    assert bases(reopened(env, CONFIG))[0] == expected


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
    log = Log.open(env, DIRECTORY, CONFIG._replace(retention_ms=100))
    put(log, timestamp_ms=-1)
    log.flush()
    now = env.clock.now_ms()
    assert log.retain(now + 100) == []
    assert log.retain(now + 101) == [0]


def test_records_without_a_time_are_as_old_as_their_write_by_a_clock_that_was_moved(env):
    clock = MovableClock(env.clock, ahead_ms=1_000_000)  # the time of a file is the machine's
    log = Log.open(Env(clock, env.rng, env.files), DIRECTORY, CONFIG._replace(retention_ms=100))
    put(log, timestamp_ms=-1)
    log.flush()
    clock.advance(100)
    assert log.retain(clock.now_ms()) == []
    put(log, timestamp_ms=-1)
    log.flush()
    clock.advance(100)
    assert log.retain(clock.now_ms()) == []
    clock.advance(1)
    assert log.retain(clock.now_ms()) == [0]


@pytest.mark.parametrize("ahead_ms", [1_000_000, -1_000_000])
def test_records_without_a_time_of_an_earlier_life_are_as_old_as_their_file_by_any_clock(env, ahead_ms):
    log = Log.open(env, DIRECTORY, CONFIG._replace(retention_ms=100))
    put(log, timestamp_ms=-1)
    log.flush()
    env.clock.advance(60)
    clock = MovableClock(env.clock, ahead_ms=ahead_ms)  # a fork, or a snapshot that is restored
    again = Log.open(Env(clock, env.rng, env.files), DIRECTORY, CONFIG._replace(retention_ms=100))
    clock.advance(40)
    assert again.retain(clock.now_ms()) == []
    clock.advance(1)
    assert again.retain(clock.now_ms()) == [0]


@pytest.mark.parametrize("seed", range(20))
def test_end_of_a_log_without_records_survives_any_loss_of_power(seed):
    env = durable_env()
    log = filled(env, 20, CONFIG._replace(retention_ms=1))
    log.sync()
    end_offset = log.end_offset
    assert log.retain(10**9)
    after = Env(env.clock, env.rng, power_cut(env.files, Random(seed)))
    assert Log.open(after, DIRECTORY, CONFIG).end_offset == end_offset


def test_slice_outlives_the_segment_it_was_cut_from(env):
    log = filled(env, 20, CONFIG._replace(retention_ms=1))
    found = log.read(0, 200, limit_offset=40)
    expected = content(log)[: len(found)]
    log.retain(100_000)
    assert found.read() == expected


@pytest.mark.parametrize("how", ["retain", "delete", "cut_back", "clean"])
def test_slice_on_disk_outlives_its_segment_and_eviction(tmp_path, how):
    from storage.files.env import Env, Rng, SystemClock, SystemFiles

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
    from storage.files.env import Env, Rng, SystemClock, SystemFiles

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
