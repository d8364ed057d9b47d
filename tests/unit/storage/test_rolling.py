"""When a batch begins a new segment: the same rules for one batch and for several that are to lie together."""

from __future__ import annotations

import pytest
from log_kit import DIRECTORY

from protocol.record_batch import build_batch
from storage.files.sim_env import sim_env
from storage.log.log import Log, LogConfig


def log_of(**config: int) -> Log:
    return Log.open(sim_env(), DIRECTORY, LogConfig(**config))


def add(log: Log, timestamp_ms: int, value: bytes, together: bool) -> int:
    """Append two batches together, or one; the bytes."""
    batches = [
        build_batch([(None, value)], base_offset=log.end_offset + n, timestamp_ms=timestamp_ms)
        for n in range(1 + together)
    ]
    if together:
        numbered = [(batch, log.end_offset + n) for n, batch in enumerate(batches)]
        log.append_together(numbered, max_timestamp_ms=timestamp_ms)
    else:
        (batch,), offset = batches, log.end_offset
        log.append([batch], base_offset=offset, last_offset=offset, max_timestamp_ms=timestamp_ms, size=len(batch))
    return sum(map(len, batches))


@pytest.mark.parametrize("together", [False, True])
def test_segment_takes_times_up_to_segment_ms_after_its_first(together):
    log = log_of(segment_ms=1000)
    for timestamp_ms, segments in ((5000, 1), (5500, 1), (6000, 1), (6001, 2), (6900, 2), (7001, 2), (7002, 3)):
        add(log, timestamp_ms, b"v", together)
        assert len(log.segments) == segments, timestamp_ms


@pytest.mark.parametrize("together", [False, True])
def test_segment_takes_batches_up_to_its_size_exactly(together):
    size = add(log_of(), 1, b"v" * 50, together)
    for more, segments in ((0, 1), (1, 2)):
        log = log_of(segment_bytes=3 * size)
        for value in (b"v" * 50, b"v" * 50, b"v" * (50 + more)):
            add(log, 1, value, together)
        assert len(log.segments) == segments


@pytest.mark.parametrize("reopens", [False, True])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("first_ms", [-1, -5])
def test_segment_whose_first_batch_has_no_time_is_as_old_as_the_segment_itself(together, reopens, first_ms):
    log = log_of(segment_ms=1000)
    add(log, first_ms, b"v", together)
    if reopens:
        log.flush()
        log = Log.open(log.env, DIRECTORY, log.config)
    for timestamp_ms in (0, -1, 10**12, -1):
        add(log, timestamp_ms, b"v", together)
        assert len(log.segments) == 1
    log.env.clock.advance(1000)
    add(log, -1, b"v", together)
    assert len(log.segments) == 1
    log.env.clock.advance(1)
    add(log, -1, b"v", together)
    assert len(log.segments) == 2


@pytest.mark.parametrize("together", [False, True])
def test_segment_begun_by_a_roll_whose_first_batch_has_no_time_takes_a_batch_of_any_time(together):
    log = log_of(segment_ms=1000)
    add(log, 5000, b"v", together)
    log.roll()
    for timestamp_ms in (-1, 10**12):
        add(log, timestamp_ms, b"v", together)
        assert len(log.segments) == 2


def test_index_that_fills_while_batches_are_appended_together_begins_a_segment_with_the_next():
    log = log_of(index_interval_bytes=0, segment_index_bytes=36)
    for _ in range(6):
        add(log, 1, b"v", together=True)
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8]


def test_index_that_is_full_stays_so_when_the_settings_change():
    log = log_of(index_interval_bytes=0, segment_index_bytes=36)
    for _ in range(3):
        add(log, 1, b"v", together=False)
    log.flush()
    log.config = log.config._replace(segment_bytes=1 << 20)
    add(log, 1, b"v", together=False)
    assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_segment_whose_index_is_full_takes_no_further_batch():
    log = log_of(index_interval_bytes=0, segment_index_bytes=36)  # room for three entries, the last one is kept free
    for _ in range(7):
        add(log, 1, b"v", together=False)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
