"""Writes, syncs and renames that fail or are the last thing a process does, at every place."""

from __future__ import annotations

import contextlib
import errno
from random import Random

import pytest
from log_kit import DIRECTORY, ONE_SEGMENT, SMALL, content, durable_env, filled, live, put, reopened
from power_cut import power_cut

from storage.files.env import Env
from storage.files.errors import StorageError
from storage.files.sim_env import sim_env
from storage.files.sim_faults import SimulatedCrash
from storage.log.log import Log, LogConfig

COMPACT = LogConfig(
    segment_bytes=600, index_interval_bytes=100, cleanup_policy=frozenset({"compact"}), delete_retention_ms=0
)


@pytest.mark.parametrize("short_bytes", [0, 1, 60, 61, 100, 250])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_failed_write_leaves_the_log_as_it_was(short_bytes, error):
    env = sim_env()
    log = filled(env, 3)
    before, times = content(log), log.max_timestamp()
    env.files.inject(1, error=error, short_bytes=short_bytes)
    for n in range(4):
        put(log, (b"lost", b"x" * 50), timestamp_ms=9000 + n)
    with pytest.raises(OSError, match=r"\[Errno"):
        log.flush()
    assert (log.end_offset, log.flushed_offset, log.dirty) == (6, 6, False)
    assert (content(log), log.max_timestamp()) == (before, times)
    after = put(log, timestamp_ms=2000)
    log.flush()
    assert content(log) == before + after
    recovered = reopened(env)
    assert (content(recovered), recovered.report.dropped_bytes) == (before + after, 0)
    assert recovered.segments[-1].index.offsets == log.segments[-1].index.offsets


@pytest.mark.parametrize("nth", range(1, 5))
def test_failed_write_over_several_segments_takes_all_of_the_flush_back(nth):
    env = sim_env()
    log = filled(env, 3)
    before = content(log)
    for _ in range(20):
        put(log, (b"lost", b"x" * 100))
    assert len(log.segments) == 5
    env.files.inject(nth, short_bytes=77)
    with pytest.raises(OSError, match="No space"):
        log.flush()
    assert (content(log), log.end_offset) == (before, 6)
    put(log)
    log.flush()
    recovered = reopened(env)
    assert (recovered.end_offset, content(recovered)) == (7, content(log))
    assert recovered.report.dropped_bytes == 0


def test_log_that_cannot_be_cut_back_is_out_of_use_until_opened_again():
    env = sim_env()
    log = filled(env, 3)
    before = content(log)
    env.files.inject(1, short_bytes=30)
    env.files.inject(1, kinds=("truncate",), error=errno.EIO)
    put(log)
    with pytest.raises(StorageError, match="out of use until it is opened again"):
        log.flush()
    for use in (log.flush, lambda: put(log), lambda: log.read(0, 10, limit_offset=6), lambda: log.cut_back(0)):
        with pytest.raises((StorageError, ValueError)):
            use()
    after = reopened(env)
    assert (content(after), after.report.dropped_bytes) == (before, 30)


def test_failed_sync_does_not_move_the_synced_offset():
    env = sim_env()
    log = filled(env, 3)
    assert log.sync() == 6
    put(log)
    log.flush()
    env.files.inject(1, kinds=("sync",), error=errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        log.sync()
    assert log.synced_offset == 6
    log.cut_back(log.synced_offset)
    assert (log.end_offset, reopened(env).end_offset) == (6, 6)


@pytest.mark.parametrize("kind", ["sync", "sync_dir"])
def test_power_cut_keeps_everything_below_the_synced_offset(kind):
    env = durable_env()
    log = Log.open(env, DIRECTORY, SMALL)
    synced = {0: b""}
    for n in range(30):
        put(log, (b"k%d" % n, b"v" * 40))
        log.flush()
        if n % 4 == 0:
            if n == 12:
                env.files.inject(1, kinds=(kind,), error=errno.EIO)
            with contextlib.suppress(OSError):
                synced[log.sync()] = content(log)
        after = reopened(sim_env(files=env.files.crash(lose_unsynced=True)))
        assert after.end_offset >= log.synced_offset
        assert content(after).startswith(synced[log.synced_offset])


def everything(env) -> Log:
    """A day in the life of a log: append, roll, sync, checkpoint, compact, retain, cut, close."""
    log = Log.open(env, DIRECTORY, COMPACT)
    log.set_leader_epoch(1)
    for n in range(25):
        put(log, (b"k%d" % (n % 5), b"v%d" % n), (b"gone", None), timestamp_ms=1000 + n)
        log.flush()
        written.append((log.end_offset, live(log)))
        if n % 6 == 5:
            log.sync()
            log.checkpoint()
        if n in (13, 20):
            for _ in log.clean(5000 + n):
                pass
            assert live(log) == written[-1][1]
    log.config = COMPACT._replace(cleanup_policy=frozenset({"delete"}), retention_bytes=1500)
    log.retain(10_000)
    log.close()
    return log


written: list[tuple[int, dict]] = []


def test_process_killed_at_any_operation_loses_nothing_that_was_written():
    env = sim_env()
    written.clear()
    everything(env)
    total = env.files.operations
    assert total > 60
    for nth in range(1, total + 1):
        for short_bytes in (0, 40):
            env = sim_env()
            written.clear()
            env.files.kill_at(nth, short_bytes=short_bytes)
            with pytest.raises(SimulatedCrash):
                everything(env)
            after = reopened(sim_env(files=env.files.crash()), COMPACT)
            end_offset, state = written[-1] if written else (0, {})
            assert after.end_offset in (end_offset, end_offset + 2), f"operation {nth}"
            if after.end_offset == end_offset and after.log_start_offset == 0:
                assert live(after) == state, f"operation {nth}"
            put(after)
            after.flush()
            assert reopened(after.env, COMPACT).end_offset == after.end_offset


@pytest.mark.parametrize("seed", range(20))
def test_power_cut_leaves_a_beginning_of_what_was_not_synced_in_several_segments(seed):
    """A disk that keeps a later segment of them without an earlier one would leave a hole, or look damaged."""
    env = durable_env()
    log = filled(env, 3)
    log.sync()
    for _ in range(5):
        for _ in range(8):
            put(log)
        log.flush()
    written, synced = content(log), log.synced_offset
    assert len(log.segments) > 3
    after = Log.open(Env(env.clock, env.rng, power_cut(env.files, Random(seed))), DIRECTORY, SMALL)
    assert after.end_offset >= synced
    assert written.startswith(content(after))


@pytest.mark.parametrize("seed", range(20))
def test_power_cut_behind_a_roll_that_retention_meets_leaves_no_hole(seed):
    env = durable_env()
    log = filled(env, 30, SMALL._replace(retention_bytes=1000))
    log.sync()
    put(log)
    log.roll()
    assert log.retain(0, log.synced_offset)
    after = Log.open(Env(env.clock, env.rng, power_cut(env.files, Random(seed))), DIRECTORY, SMALL)
    last = [header.next_offset for header, _ in after.batches(0)][-1]
    assert after.end_offset == last


def test_power_cut_at_any_operation_loses_nothing_that_was_synced():
    env = durable_env()
    start = env.files.operations
    written.clear()
    everything(env)
    total = env.files.operations - start
    for nth in range(1, total + 1):
        env = durable_env()
        written.clear()
        env.files.kill_at(nth)
        log_seen: list[int] = [0]
        with pytest.raises(SimulatedCrash):
            everything_noting_syncs(env, log_seen)
        after = reopened(sim_env(files=env.files.crash(lose_unsynced=True)), COMPACT)
        assert after.end_offset >= log_seen[-1], f"operation {nth}"
        states = dict([(0, {}), *written])
        if after.log_start_offset == 0 and after.end_offset in states:
            assert live(after) == states[after.end_offset], f"operation {nth}"


def everything_noting_syncs(env, seen: list[int]) -> None:
    class Noting(Log):
        def sync(self) -> int:
            offset = super().sync()
            seen.append(offset)
            return offset

    original = Log.open

    def opened(*args, **kwargs):
        log = original(*args, **kwargs)
        log.__class__ = Noting
        return log

    Log.open = staticmethod(opened)
    try:
        everything(env)
    finally:
        Log.open = staticmethod(original)


@pytest.mark.parametrize("nth", range(1, 12))
@pytest.mark.parametrize("kind", ["write", "rename", "remove", "replace", "sync", "sync_dir"])
def test_failure_while_compacting_loses_nothing(nth, kind):
    env = sim_env()
    log = Log.open(env, DIRECTORY, COMPACT)
    for n in range(40):
        put(log, (b"k%d" % (n % 3), b"v%d" % n))
        log.flush()
    state = live(log)
    env.files.inject(nth, kinds=(kind,), error=errno.EIO)
    try:
        for _ in log.clean(5000):
            pass
    except (OSError, StorageError):
        pass
    env.files.heal()
    if log.broken is None:
        assert live(log) == state
        put(log, (b"k0", b"new"))
        log.flush()
        state[b"k0"] = b"new"
        for _ in log.clean(6000):
            pass
        assert live(log) == state
    after = reopened(env, COMPACT)
    assert live(after) == state
    assert after.report.dropped_bytes == 0


def test_full_disk_while_sealing_costs_only_the_index():
    env = sim_env()
    log = filled(env, 3)
    env.files.inject(1, kinds=("replace",), forever=True)
    for _ in range(40):
        put(log)
        log.flush()
    env.files.heal()
    assert len(log.segments) > 3
    assert content(reopened(env, clean=True)) == content(log)


def test_real_disk_and_memory_hold_the_same_bytes(tmp_path):
    from storage.files.env import Env, Rng, SystemClock, SystemFiles

    real = Env(SystemClock(), Rng(0), SystemFiles())
    memory = sim_env()
    for env, directory in ((real, f"{tmp_path}/topic-0"), (memory, DIRECTORY)):
        log = filled(env, 30, directory=directory)
        log.sync()
        log.cut_back(41)
        put(log)
        log.close()
    names = real.files.listdir(f"{tmp_path}/topic-0")
    assert names == memory.files.listdir(DIRECTORY)
    for name in names:
        assert real.files.read_file(f"{tmp_path}/topic-0/{name}") == memory.files.read_file(f"{DIRECTORY}/{name}")


def test_file_cut_short_behind_a_slice_is_an_error_not_a_loop():
    log = filled(sim_env(), 3, ONE_SEGMENT)
    found = log.read(0, 1 << 20, limit_offset=6)
    log.cut_back(2)
    with pytest.raises(StorageError, match="ends"):
        found.read()
