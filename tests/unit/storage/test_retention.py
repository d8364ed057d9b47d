"""What retention deletes, and what it must not."""

from __future__ import annotations

import pytest
from log_kit import DIRECTORY, content, filled, put, reopened

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


def test_slice_on_disk_outlives_deletion_and_eviction(tmp_path):
    from storage.env import Env, Rng, SystemClock, SystemFiles

    env = Env(SystemClock(), Rng(1), SystemFiles(max_open_files=1))
    log = filled(env, 20, CONFIG._replace(retention_ms=1), directory=f"{tmp_path}/topic-0")
    found = log.read(0, 200, limit_offset=40)
    expected = content(log)[: len(found)]
    log.retain(100_000)
    assert found.read() == expected
