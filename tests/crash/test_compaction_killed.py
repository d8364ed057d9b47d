"""Small segments become one, and the process or the machine dies at any moment: times are found as before."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from log_kit import DIRECTORY, content, durable_env, live, put
from power_cut import power_cut

from storage.files.env import Env
from storage.files.sim_faults import SimulatedCrash
from storage.log.log import Log, LogConfig

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=100, cleanup_policy=frozenset({"compact"}))
RECORDS = 60
NOW = 1_000_000


def log_to_merge() -> Log:
    """Small segments below the recovery point. A pass may merge them: the setting was raised."""
    log = Log.open(durable_env(), DIRECTORY, CONFIG)
    for n in range(RECORDS):
        put(log, (b"key%d" % n if n != 30 else b"key20", b"value"), timestamp_ms=1000 + 10 * n + (n == 20) * 5000)
        log.flush()  # the latest of all times is that of a record that the pass removes
    log.sync()
    log.checkpoint()
    assert len(log.segments) > 2
    log.config = CONFIG._replace(segment_bytes=20_000)
    return log


def answers(log: Log) -> list[object]:
    return [*map(log.offset_for_timestamp, range(995, 1010 + 10 * RECORDS, 5)), log.max_timestamp()]


def opened_after(log: Log, *, lose_unsynced: bool) -> Log:
    env = Env(log.env.clock, log.env.rng, log.env.files.crash(lose_unsynced=lose_unsynced))
    return Log.open(env, DIRECTORY, log.config, recovery_point=log.synced_offset)


@pytest.mark.parametrize("lose_unsynced", [False, True])
def test_times_are_found_after_a_death_anywhere_in_a_pass(lose_unsynced: bool) -> None:
    log = log_to_merge()
    before, allowed = log.env.files.operations, [answers(log)]
    for _ in log.clean(NOW):
        pass
    operations = log.env.files.operations - before
    allowed.append(answers(log))
    assert allowed[0] != allowed[1]
    merged = 0
    for nth in range(1, operations + 1):
        log = log_to_merge()
        count = len(log.segments)
        log.env.files.kill_at(nth)
        with suppress(SimulatedCrash):
            for _ in log.clean(NOW):
                pass
        opened = opened_after(log, lose_unsynced=lose_unsynced)
        merged += len(opened.segments) < count
        assert answers(opened) == allowed[len(opened.segments) < count], nth
    assert merged


def passes_log() -> Log:
    """Each key has been written in several segments, and one is deleted in the last of them."""
    log = Log.open(durable_env(), DIRECTORY, CONFIG._replace(segment_bytes=400, delete_retention_ms=0))
    for n in range(24):
        put(log, (b"key%d" % (n % 5), b"value%d" % n if n != 21 else None), timestamp_ms=1000 + 10 * n)
        log.flush()
    log.roll()
    put(log, (b"end", b"end"))
    log.flush()
    log.sync()
    log.checkpoint()
    log.config = log.config._replace(segment_bytes=20_000)
    return log


def run_passes(log: Log) -> None:
    for _ in range(3):
        log.cleaned_offset = 0
        for _ in log.clean(NOW):
            pass


def test_no_older_value_is_back_after_any_loss_of_power_in_a_pass() -> None:
    log = passes_log()
    before, expected = log.env.files.operations, live(log)
    run_passes(log)
    operations = log.env.files.operations - before
    assert live(log) == expected
    for nth in range(1, operations + 2):
        log = passes_log()
        log.env.files.kill_at(nth)
        with suppress(SimulatedCrash):
            run_passes(log)
        for seed in range(30):
            env = Env(log.env.clock, log.env.rng, power_cut(log.env.files, Random(seed)))
            opened = Log.open(env, DIRECTORY, log.config, recovery_point=log.synced_offset)
            assert live(opened) == expected, (nth, seed)


@pytest.mark.parametrize("waits", range(1, 12))
@pytest.mark.parametrize("offset", [3, 9, 14, 23])
@pytest.mark.parametrize("killed", [False, True])
def test_records_that_are_cut_during_a_pass_are_not_back(
    waits: int, offset: int, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = passes_log()

    def slowly(work):
        work()
        return iter([False, True]).__next__

    monkeypatch.setattr(log.env.files, "start", slowly)
    steps = log.clean(NOW)
    for _ in range(waits):
        next(steps, None)
    log.cut_back(offset)
    expected = content(log)
    if not killed:
        for _ in steps:
            pass
        assert content(log) == expected
    env = Env(log.env.clock, log.env.rng, log.env.files.crash())
    assert content(Log.open(env, DIRECTORY, log.config, recovery_point=log.synced_offset)) == expected
