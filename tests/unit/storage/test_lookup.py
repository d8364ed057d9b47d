"""Offsets by time: the index may only make it faster."""

from __future__ import annotations

import pytest
from log_kit import DIRECTORY, ONE_SEGMENT, SMALL, filled, put, reopened

from protocol.record_batch import LOG_APPEND_TIME, iter_records
from storage.files.sim_env import sim_env
from storage.log.log import Log


@pytest.mark.parametrize("log_start", [0, 13])
def test_offset_for_timestamp_equals_linear_scan(log_start):
    log = filled(sim_env(), 30)
    log.delete_records_before(log_start)
    records = [r for _, batch in log.batches(0) for r in iter_records(batch) if r.offset >= log_start]
    for timestamp in range(990, 1300, 5):
        expected = next(((r.timestamp, r.offset, 0) for r in records if r.timestamp >= timestamp), None)
        assert log.offset_for_timestamp(timestamp) == expected


def test_offset_for_timestamp_looks_into_batches_and_past_disorder():
    log = Log.open(sim_env(), DIRECTORY, SMALL)
    for times in ((50, 10, 30), (5, 70, 20), (60, 61, 62)):
        records = [(b"k", b"v", (), time) for time in times]
        base = log.end_offset
        put(log, *records, timestamp_ms=max(times))
        assert log.end_offset == base + 3
    log.flush()
    assert log.offset_for_timestamp(51) == (70, 4, 0)
    assert log.offset_for_timestamp(20) == (50, 0, 0)
    assert log.offset_for_timestamp(71) is None
    assert log.max_timestamp() == (70, 4, 0)


def test_max_timestamp_of_empty_log_is_none():
    assert Log.open(sim_env(), DIRECTORY, SMALL).max_timestamp() is None


@pytest.mark.parametrize("is_copy", [False, True])
def test_index_of_what_was_cut_off_is_not_taken_for_what_came_in_its_place(is_copy):
    env = sim_env()
    log = filled(env, 30, ONE_SEGMENT)
    log.sync()
    log.checkpoint()
    log.cut_back(30)
    for n in range(15, 35):  # as large as what was there, so that their places are the same
        put(log, (b"key%d" % n, b"value" * 3), (b"odd%d" % n, None), timestamp_ms=9000 + 10 * n)
    log.flush()
    log.sync()
    after = reopened(sim_env(files=env.files.crash()), ONE_SEGMENT, recovery_point=log.end_offset, clean=is_copy)
    for timestamp in range(1000, 9200, 10):
        assert after.offset_for_timestamp(timestamp) == log.offset_for_timestamp(timestamp)


def test_log_append_time_counts_for_the_whole_batch():
    log = Log.open(sim_env(), DIRECTORY, SMALL)
    put(log, (b"a", b"1"), (b"b", b"2"), timestamp_ms=500, attributes=LOG_APPEND_TIME)
    log.flush()
    assert log.offset_for_timestamp(500) == (500, 0, 0)
    assert log.max_timestamp() == (500, 0, 0)
