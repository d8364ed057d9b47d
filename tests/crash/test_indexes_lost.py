"""Index files are not synced: after a loss of power each may be missing, old or short, whatever the other one is."""

from __future__ import annotations

import errno

import pytest
from log_kit import DIRECTORY, durable_env, put

from storage.files.env import Env
from storage.log.log import Log, LogConfig
from storage.segments.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX

CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=100, retention_ms=1000)
RECORDS = 80
OLD = 25  # records at the first checkpoint


def time_of(n: int) -> int:
    """Rises to a peak within each segment, then falls a little."""
    return 1000 + 10 * n - (300 if n % 40 > 30 else 0)


def checkpointed() -> tuple[Log, dict[str, bytes]]:
    """A log below its recovery point, and its index files as an earlier checkpoint wrote them."""
    log = Log.open(durable_env(), DIRECTORY, CONFIG)
    files, old = log.env.files, {}
    for n in range(RECORDS):
        put(log, (b"key%d" % n, b"value"), timestamp_ms=time_of(n))
        log.flush()
        if n == OLD:
            log.checkpoint()
            old = {name: files.read_file(f"{DIRECTORY}/{name}") for name in index_names(log)}
    log.sync()
    log.checkpoint()
    return log, old


def index_names(log: Log) -> list[str]:
    return [name for name in log.env.files.listdir(DIRECTORY) if name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX))]


def answers(log: Log) -> list[object]:
    times = [log.offset_for_timestamp(timestamp) for timestamp in range(995, 1010 + 10 * RECORDS, 5)]
    return [*times, log.max_timestamp(), [segment.largest_timestamp for segment in log.segments]]


def opened_after(log: Log, *, clean: bool = False) -> Log:
    env = Env(log.env.clock, log.env.rng, log.env.files.crash())
    return Log.open(env, DIRECTORY, CONFIG, recovery_point=log.synced_offset, clean=clean)


@pytest.mark.heavy
@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("number", range(4))
def test_times_are_found_whatever_is_left_of_an_index_file(number: int, clean: bool) -> None:
    log, _ = checkpointed()
    expected = answers(log)
    name = index_names(log)[number]
    whole = log.env.files.read_file(f"{DIRECTORY}/{name}")
    for left in (None, *range(len(whole)), -1):
        log, old = checkpointed()
        path = f"{DIRECTORY}/{name}"
        if left is None or (left < 0 and name not in old):
            log.env.files.remove(path)
        else:
            log.env.files.write_file_atomic(path, old[name] if left < 0 else whole[:left])
        assert answers(opened_after(log, clean=clean)) == expected, left


def test_full_disk_between_the_two_index_files_of_a_segment_hides_no_times() -> None:
    log = Log.open(durable_env(), DIRECTORY, CONFIG)
    for n in range(RECORDS):
        put(log, (b"key%d" % n, b"value"), timestamp_ms=1000 + 10 * n)
        if len(log.segments) == 2:
            break
        log.flush()
        if n == OLD:
            log.checkpoint()
    log.env.files.inject(2, kinds=("replace",), error=errno.ENOSPC)
    log.flush()  # the first segment is full: one of its index files is written anew, the other one stays as it was
    log.env.files.heal()
    log.sync()
    log.checkpoint()
    assert answers(opened_after(log)) == answers(log)


def test_index_of_records_that_were_cut_is_not_back_after_a_loss_of_power() -> None:
    """The records after the cut are as large as those before it: the old index fits the log."""
    log = Log.open(durable_env(), DIRECTORY, LogConfig(index_interval_bytes=100))
    files = log.env.files
    for n in range(40):
        put(log, (b"key%02d" % n, b"value"), timestamp_ms=1000 + n)
        log.flush()
    log.sync()
    log.checkpoint()
    for name in index_names(log):
        files.open_append(f"{DIRECTORY}/{name}").sync()  # as a disk does some time after
    files.sync_dir(DIRECTORY)
    log.cut_back(5)
    for n in range(5, 40):
        put(log, (b"key%02d" % n, b"other"), timestamp_ms=2000 + n)
        log.flush()
    log.sync()
    log.checkpoint()
    env = Env(log.env.clock, log.env.rng, files.crash(lose_unsynced=True))
    opened = Log.open(env, DIRECTORY, log.config, recovery_point=log.synced_offset)
    for timestamp in (1010, 1039, 2005, 2020, 2039):
        assert opened.offset_for_timestamp(timestamp) == log.offset_for_timestamp(timestamp)
