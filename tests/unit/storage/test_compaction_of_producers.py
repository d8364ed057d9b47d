"""Which batches the cleaner keeps for the state of a producer."""

from __future__ import annotations

import pytest
from log_kit import DIRECTORY, put, reopened

from storage.files.sim_env import sim_env
from storage.log.log import Log, LogConfig

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, cleanup_policy=frozenset({"compact"}))
NOW = 50_000


@pytest.fixture
def log():
    return Log.open(sim_env(), DIRECTORY, CONFIG)


def run(log, now_ms=NOW, **arguments):
    for _ in log.clean(now_ms, **arguments):
        pass


def fill_up(log):
    """Roll, so that all that was put can be cleaned."""
    log.flush()
    log.roll()
    put(log, (b"active", b"segment"))
    log.flush()


def test_emptied_batch_stays_as_a_bare_header_while_a_producer_needs_it(log):
    put(log, (b"k", b"old"), producer_id=7, producer_epoch=0, base_sequence=0)
    put(log, (b"k", b"newer"), producer_id=8, producer_epoch=0, base_sequence=5)
    put(log, (b"k", b"new"))
    fill_up(log)
    run(log, last_batch_of={8: (1, 0)}.get)
    headers = [header for header, _ in log.batches(0)]
    assert [(h.base_offset, h.producer_id, h.record_count) for h in headers] == [(1, 8, 0), (2, -1, 1), (3, -1, 1)]
    assert headers[0].base_sequence == 5
    assert reopened(log.env, CONFIG).report.dropped_bytes == 0


def test_last_batch_of_every_producer_stays_when_nobody_says_who_is_active(log):
    for sequence in range(3):
        put(log, (b"k", b"v"), producer_id=7, producer_epoch=0, base_sequence=sequence)
    put(log, (b"k", b"new"))
    fill_up(log)
    run(log)
    assert [(h.base_offset, h.record_count) for h, _ in log.batches(0)] == [(2, 0), (3, 1), (4, 1)]


@pytest.mark.parametrize(("now_ms", "kept"), [(1999, [0, 1]), (2000, [1]), (2001, [])])
def test_last_batch_of_a_producer_goes_with_its_expiry(log, now_ms, kept):
    put(log, (b"k", b"v"), producer_id=7, producer_epoch=0, base_sequence=0, timestamp_ms=1000)
    put(log, (b"k", b"v"), producer_id=8, producer_epoch=0, base_sequence=0, timestamp_ms=1001)
    put(log, (b"k", b"new"))
    fill_up(log)
    run(log, now_ms, producer_expiration_ms=1000)
    assert [h.base_offset for h, _ in log.batches(0) if h.producer_id >= 0] == kept
