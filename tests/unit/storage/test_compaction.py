"""What the cleaner keeps, drops, rewrites and leaves alone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from compaction_kit import CONFIG, NOW, fill_up, records, run
from log_kit import DIRECTORY, content, live, put, reopened

from protocol.record_batch import (
    DELETE_HORIZON,
    build_batch,
    iter_records,
)
from storage.cleaning.compaction import clean
from storage.files.sim_env import sim_env
from storage.log.log import Log


def test_clean_keeps_the_last_of_each_key_at_its_offset(log):
    for n in range(12):
        put(log, (b"k%d" % (n % 3), b"v%d" % n))
    fill_up(log)
    before = live(log)
    run(log)
    assert records(log) == [(9, b"k0", b"v9"), (10, b"k1", b"v10"), (11, b"k2", b"v11"), (12, b"active", b"segment")]
    assert live(log) == before
    assert (log.end_offset, log.cleaned_offset, log.dirty_ratio()) == (13, 12, 0.0)
    after = reopened(log.env, CONFIG)
    assert content(after) == content(log)


def test_owner_is_told_of_each_merged_segment_and_where_the_next_one_begins(log):
    for n in range(24):
        put(log, (b"k%d" % (n % 7), b"v%d" % n))
    fill_up(log)
    told = []
    log.when_compacted = lambda start, end, markers: told.append((start, end))
    run(log)
    bases = [segment.base_offset for segment in log.segments]
    assert len(told) > 1
    assert set(told) <= set(pairwise(bases))


def test_active_segment_is_never_cleaned(log):
    for _ in range(3):
        put(log, (b"k", b"v"))
    log.flush()
    before = content(log)
    assert (run(log), content(log)) == (0, before)


def test_records_from_the_limit_on_are_kept(log):
    for n in range(12):
        put(log, (b"k", b"v%d" % n))
    fill_up(log)
    run(log, last_stable_offset=5)
    assert [offset for offset, key, _ in records(log) if key == b"k"] == [4, *range(5, 12)]
    assert log.cleaned_offset == 5


def test_records_that_are_too_young_are_kept(log):
    log.config = CONFIG._replace(min_compaction_lag_ms=500)
    for n in range(12):
        put(log, (b"k", b"v%d" % n), timestamp_ms=1000 + 100 * n)
    fill_up(log)
    young = next(s.base_offset for s in log.segments if s.largest_timestamp > 2000 - 500)
    run(log, now_ms=2000)
    assert log.cleaned_offset == young > 0
    assert next(r for r in records(log) if r[0] >= young)[0] == young


def test_part_of_a_batch_that_survives_keeps_offsets_sequence_and_codec(log):
    put(
        log,
        *[(b"k%d" % n, b"v") for n in range(4)],
        producer_id=7,
        producer_epoch=2,
        base_sequence=40,
        attributes=1,
    )
    put(log, (b"k0", b"new"), (b"k3", b"new"))
    fill_up(log)
    run(log)
    header, batch = next(log.batches(0))
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 3, 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.codec) == (7, 2, 40, 1)
    assert [(r.offset, r.key, r.timestamp) for r in iter_records(batch)] == [(1, b"k1", 1000), (2, b"k2", 1000)]


def test_tombstone_stays_until_its_horizon_and_then_goes(log):
    put(log, (b"k", b"v"))
    put(log, (b"k", None), (b"other", b"x"))
    fill_up(log)
    run(log)
    (header, batch), *_ = log.batches(0)
    assert header.attributes & DELETE_HORIZON
    assert header.delete_horizon_ms == NOW + 1000
    assert [(r.key, r.value, r.timestamp) for r in iter_records(batch)] == [
        (b"k", None, 1000),
        (b"other", b"x", 1000),
    ]
    for now_ms, expected in ((NOW + 999, [b"k", b"other"]), (NOW + 1000, [b"other"])):
        fill_up(log)
        run(log, now_ms)
        assert [key for _, key, _ in records(log)][: len(expected)] == expected


def test_record_without_key_goes(log):
    put(log, (None, b"x"), (b"k", b"v"))
    fill_up(log)
    run(log)
    assert records(log)[0] == (1, b"k", b"v")


def test_batches_appended_together_lie_in_one_segment(log):
    put(log, (b"x", bytes(250)))
    log.append_together(
        [(build_batch([(b"k", bytes(100))], base_offset=n, timestamp_ms=1), n) for n in range(1, 9)], max_timestamp_ms=1
    )
    put(log, (b"y", b""))
    assert [segment.base_offset for segment in log.segments] == [0, 1, 9]


def test_map_that_is_full_ends_the_pass_and_the_next_goes_on(log):
    for n in range(40):
        put(log, (b"k%d" % (n % 10), b"v%d" % n))
    fill_up(log)
    before = live(log)
    passes = 0
    while log.cleaned_offset < 40:
        list(clean(log, NOW, log.end_offset, max_keys=4))
        passes += 1
        assert live(log) == before
    assert passes > 2
    assert len(records(log)) == 11


def test_small_segments_become_one(log):
    for n in range(60):
        put(log, (b"k%d" % (n % 3), b"v%d" % n))
    fill_up(log)
    assert len(log.segments) > 8
    run(log)
    fill_up(log)
    run(log)
    assert len(log.segments) <= 3


def test_clean_log_is_left_as_it_is(log):
    for n in range(12):
        put(log, (b"k%d" % n, b"v"))
    fill_up(log)
    run(log)
    changes = log.env.files.operations
    assert run(log) == 0
    assert log.env.files.operations == changes


def test_retention_during_a_pass_wins(log):
    for n in range(30):
        put(log, (b"k%d" % (n % 3), b"v%d" % n))
    fill_up(log)
    steps = log.clean(NOW)
    next(steps)
    log.delete_records_before(30)
    log.retain(NOW)
    expected = content(log)
    list(steps)
    assert content(log) == expected
    assert not [name for name in log.env.files.listdir(DIRECTORY) if "cleaned" in name or "swap" in name]


def test_cut_during_a_pass_wins(log):
    for n in range(30):
        put(log, (b"k%d" % (n % 3), b"v%d" % n))
    fill_up(log)
    steps = log.clean(NOW)
    next(steps)
    log.cut_back(2)
    put(log, (b"k9", b"after"))
    log.flush()
    expected = content(log)
    list(steps)
    assert content(log) == expected
    assert reopened(log.env, CONFIG).end_offset == 3


@pytest.mark.parametrize("take_away", [lambda log: log.retain(NOW), lambda log: log.delete()], ids=["retention", "end"])
def test_segments_that_go_while_their_successors_name_is_synced_stay_gone(log, take_away, monkeypatch):
    files = log.env.files
    for n in range(12):
        put(log, (b"k%d" % (n % 3), b"v%d" % n))
    fill_up(log)
    steps = log.clean(NOW)
    monkeypatch.setattr(files, "start", lambda work: iter([False, True]).__next__)
    while not any(name.endswith(".swap") for name in files.listdir(DIRECTORY)):
        next(steps)
    log.log_start_offset = log.segments[-1].base_offset
    take_away(log)
    for _ in steps:
        pass
    assert len(log.segments) == 1 or log.broken
    assert not any(name.endswith((".swap", ".cleaned")) for name in files.listdir(DIRECTORY))
    assert not log.broken or "deleted" in log.broken


def test_slice_cut_before_a_pass_still_reads_the_old_bytes(log):
    for n in range(12):
        put(log, (b"k", b"v%d" % n))
    fill_up(log)
    found = log.read(0, 1 << 20, limit_offset=13)
    expected = found.read()
    run(log)
    assert found.read() == expected
    assert len(log.read(0, 1 << 20, limit_offset=13)) < len(expected)


def test_read_between_survivors_gives_the_next_batch(log):
    for n in range(12):
        put(log, (b"k", b"v%d" % n))
    fill_up(log)
    run(log)
    for offset in range(12):
        header, _ = next(log.batches(offset))
        assert header.base_offset == 11
        assert len(log.read(offset, 10, limit_offset=13)) > 0


def test_slices_of_a_pass_look_at_few_records_each():
    log = Log.open(sim_env(), DIRECTORY, CONFIG._replace(segment_bytes=100_000))
    for n in range(3000):
        put(log, (b"k%d" % (n % 50), b"v" * 20))
    fill_up(log)
    assert run(log) > 3 * 3000 / 1024


def test_one_batch_of_many_records_is_cleaned_in_slices():
    log = Log.open(sim_env(), DIRECTORY, CONFIG._replace(segment_bytes=1_000_000))
    records = [(b"k%d" % (n % 2000), b"v") for n in range(4000)]
    batch = build_batch(records, timestamp_ms=1000)
    log.append([batch], base_offset=0, last_offset=3999, max_timestamp_ms=1000, size=len(batch))
    fill_up(log)
    assert run(log) > 2 * 4000 / 512
    assert len(live(log)) == 2001
