"""The cleaner at its edges: which segments become one, how much it does in a step, when it gives up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from log_kit import DIRECTORY, put

from protocol.record_batch import HEADER_BYTES, BatchHeader, build_batch
from storage.cleaning import compaction
from storage.cleaning.compaction import clean
from storage.cleaning.compaction_plan import SLICE_KEYS, SLICE_RECORDS, Plan, ProducersInLog, plan_transactions
from storage.files.sim_env import MemoryFile, sim_env
from storage.log.log import Log, LogConfig
from storage.segments.segment import MAX_RELATIVE_OFFSET

CONFIG = LogConfig(segment_bytes=400, cleanup_policy=frozenset({"compact"}), delete_retention_ms=1000)
NOW = 50_000


def log_with(segment_bytes: int = 1 << 20) -> Log:
    return Log.open(sim_env(), DIRECTORY, CONFIG._replace(segment_bytes=segment_bytes))


def add(log: Log, data: bytes, records: int) -> None:
    base = log.end_offset
    log.append([data], base_offset=base, last_offset=base + records - 1, max_timestamp_ms=1000, size=len(data))


def seal(log: Log) -> None:
    """All that was put can be cleaned."""
    log.flush()
    log.roll()
    put(log, (b"active", b"segment"))
    log.flush()


def segments(*rows: tuple[int, int]) -> list[Any]:
    return [SimpleNamespace(base_offset=base, size=size) for base, size in rows]


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        ([(0, 400), (5, 600)], [2]),
        ([(0, 400), (5, 601)], [1, 1]),
        ([(0, 5_000), (5, 1)], [1, 1]),
        ([(0, 300), (5, 300), (9, 400), (12, 1)], [3, 1]),
        ([(0, 300), (5, 300), (9, 401), (12, 599), (13, 1)], [2, 2, 1]),
        ([(0, 1), (MAX_RELATIVE_OFFSET, HEADER_BYTES - 1)], [2]),
        ([(0, 1), (MAX_RELATIVE_OFFSET, HEADER_BYTES)], [1, 1]),
        ([(0, 1), (MAX_RELATIVE_OFFSET - 2, 3 * HEADER_BYTES - 1)], [2]),
        ([(0, 1), (MAX_RELATIVE_OFFSET - 2, 3 * HEADER_BYTES)], [1, 1]),
        ([(0, 1), (1 << 32, 1), ((1 << 32) + 5, 1)], [1, 2]),
        ([(7, 1), (7 + MAX_RELATIVE_OFFSET, 1)], [2]),
        ([], []),
    ],
)
def test_neighbours_become_one_as_far_as_size_and_offsets_allow(rows: list[tuple[int, int]], sizes: list[int]) -> None:
    groups = list(compaction._groups(segments(*rows), 1_000))
    assert [len(group) for group in groups] == sizes
    assert [(each.base_offset, each.size) for group in groups for each in group] == rows


def test_cleaned_segments_are_as_large_as_a_segment_may_be() -> None:
    log = log_with(300)
    one = len(build_batch([(b"k00", b"v" * 20)], timestamp_ms=1000))
    log.config = log.config._replace(segment_bytes=2 * one)
    for number in range(12):
        put(log, (b"k%02d" % number, b"v" * 20))
    seal(log)
    assert len(log.segments) == 7
    log.config = log.config._replace(segment_bytes=4 * one)
    assert list(clean(log, NOW, log.end_offset)) != []
    assert [each.base_offset for each in log.segments[:-1]] == [0, 4, 8]


def test_dirty_ratio_counts_the_segment_at_the_cleaned_offset_as_dirty_and_the_active_one_not() -> None:
    log = log_with()
    put(log, (b"k", b"clean"))
    seal(log)
    assert log.dirty_ratio() == 1.0
    assert list(clean(log, NOW, log.end_offset)) != []
    assert (log.cleaned_offset, log.dirty_ratio()) == (1, 0.0)
    seal(log)
    first, second, active = log.segments
    assert second.base_offset == log.cleaned_offset
    assert log.dirty_ratio() == second.size / (first.size + second.size)
    assert active.size > 0


def test_records_are_too_young_only_where_a_lag_is_set_and_the_time_is_known() -> None:
    log = log_with()
    put(log, (b"k", b"v"), timestamp_ms=NOW + 10)
    seal(log)
    assert log.dirty_ratio(NOW) == 1.0
    log.config = log.config._replace(min_compaction_lag_ms=5)
    assert (log.dirty_ratio(NOW), log.dirty_ratio()) == (0.0, 1.0)


def test_last_batch_that_may_be_cleaned_stays_as_a_header_when_nothing_of_it_survives() -> None:
    log = log_with()
    put(log, (b"k", b"v"))
    for _ in range(2):
        put(log, (None, b"without a key"))
    seal(log)
    assert list(clean(log, NOW, log.end_offset)) != []
    found = [(header.base_offset, header.record_count) for header, _ in log.batches(0)]
    assert found == [(0, 1), (2, 0), (3, 1)]


def test_log_says_whether_the_last_pass_has_held_a_tombstone_back_that_was_due() -> None:
    log = log_with()
    put(log, (b"k", None))
    for later_ms, tombstones_end, held in ((0, None, False), (1_000, 0, True), (2_000, None, False)):
        seal(log)
        for _ in clean(log, NOW + later_ms, log.end_offset, tombstones_end=tombstones_end):
            pass
        assert log.held_tombstones is held, later_ms
    assert next(header.base_offset for header, _ in log.batches(0)) > 0


@pytest.mark.parametrize("keep", ["all", "half", "one"])
@pytest.mark.parametrize("records", [SLICE_RECORDS - 1, SLICE_RECORDS, SLICE_RECORDS + 1, 10 * SLICE_RECORDS])
def test_batch_is_cleaned_in_exact_slices(records: int, keep: str) -> None:
    """A step for every SLICE_KEYS that are read, for SLICE_RECORDS that are filtered and written; one a long batch.

    One for the offsets that survive, one for the group. Keys are read until one is not like those before it.
    """
    log = log_with()
    keys = {"all": records, "half": records // 2, "one": 1}[keep]
    add(log, build_batch([(b"k%d" % (n % keys), b"v") for n in range(records)], timestamp_ms=1000), records)
    seal(log)
    steps = sum(1 for _ in clean(log, NOW, log.end_offset))
    planned = records // SLICE_KEYS + 1
    judged = (records if keep == "all" else records - keys + 1) // SLICE_KEYS
    rewritten = 0 if keep == "all" else records // SLICE_RECORDS + keys // SLICE_RECORDS
    after_batch = records + 2 >= SLICE_RECORDS
    assert steps == 1 + planned + judged + rewritten + after_batch, (planned, judged, rewritten, after_batch)


@pytest.mark.parametrize(
    ("batches", "size", "steps"),
    [(40, 1, 3), (60, 1, 3), (61, 1, 4), (126, 1, 7), (8, 300 << 10, 4), (2, 300 << 10, 2)],
)
def test_many_batches_are_cleaned_in_exact_slices(batches: int, size: int, steps: int) -> None:
    """Of one key, so that nothing is written before the last one: a step for 64 of them, and for a megabyte."""
    log = log_with(1 << 24)
    for _ in range(batches):
        put(log, (b"k", b"v" * size))
    put(log, (b"k", b"last"))
    seal(log)
    assert sum(1 for _ in clean(log, NOW, log.end_offset)) == steps


@pytest.mark.parametrize(
    ("batches", "producers", "steps"),
    [(127, 0, 0), (128, 0, 1), (255, 0, 1), (256, 0, 2), (63, 63, 0), (64, 64, 1), (122, 5, 0), (122, 6, 1)],
)
def test_headers_are_planned_in_exact_slices(batches: int, producers: int, steps: int) -> None:
    """A step for every 128 headers and producers."""
    log = log_with()
    for number in range(batches):
        if number < producers:
            put(log, (b"k", b"v"), producer_id=number, producer_epoch=0, base_sequence=0)
        else:
            put(log, (b"k", b"v"))
    seal(log)
    plan = Plan(NOW, batches)
    assert sum(1 for _ in plan_transactions(plan, log.segments[:-1], ProducersInLog())) == steps
    assert plan.last_by_producer == {number: number for number in range(producers)}


def test_cleaned_bytes_are_written_in_pieces_of_256_kib(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_with(1 << 24)
    wanted = 64 << 10
    value = b"v" * (wanted - len(build_batch([(b"k00", b"")], timestamp_ms=1000)) - 4)
    data = build_batch([(b"k00", value)], timestamp_ms=1000)
    assert len(data) == wanted
    put(log, (b"k01", b"goes"))
    for number in range(1, 11):
        batch = build_batch([(b"k%02d" % number, value)], base_offset=number, leader_epoch=0, timestamp_ms=1000)
        assert len(batch) == wanted
        add(log, batch, 1)
    seal(log)
    writes: list[int] = []
    append = MemoryFile.append

    def counted(file: MemoryFile, buffers: Any) -> None:
        writes.append(sum(map(len, buffers)))
        append(file, buffers)

    monkeypatch.setattr(MemoryFile, "append", counted)
    for _ in clean(log, NOW, log.end_offset):
        pass
    assert writes == [4 * wanted, 4 * wanted, 2 * wanted]


def test_pass_that_retention_overtakes_ends_there_and_the_next_goes_on() -> None:
    one = len(build_batch([(b"k00", b"v" * 20)], timestamp_ms=1000))
    log = log_with(4 * one)
    for number in range(8):
        put(log, (b"k%02d" % min(number, 6), b"v" * 20))
    seal(log)
    assert [each.base_offset for each in log.segments] == [0, 4, 8]
    steps = clean(log, NOW, log.end_offset)
    next(steps)  # the first segment, of which nothing goes
    log.delete_records_before(4)
    log.retain(NOW)
    for _ in steps:
        pass
    assert [each.base_offset for each in log.segments] == [4, 8]
    assert (log.cleaned_offset, log.segments[0].size) == (4, 4 * one)
    for _ in clean(log, NOW, log.end_offset):
        pass
    assert (log.cleaned_offset, log.segments[0].size) == (8, 3 * one)


@pytest.mark.parametrize("steps", [1, 2])
def test_pass_over_a_log_that_goes_out_of_use_has_cleaned_nothing(steps: int) -> None:
    """It was taken for clean, and was not cleaned once it was opened again."""
    log = log_with()
    for _ in range(SLICE_RECORDS):
        put(log, (b"k", b"v"))
    seal(log)
    cleaning = clean(log, NOW, log.end_offset)
    for _ in range(steps):
        next(cleaning)
    log.give_up("failed")
    for _ in cleaning:
        pass
    log.reopen(log.end_offset)
    assert log.cleaned_offset == 0
    for _ in clean(log, NOW, log.end_offset):
        pass
    assert log.cleaned_offset == SLICE_RECORDS
    assert sum(header.record_count for header, _ in log.batches(0)) == 2


@pytest.mark.parametrize("producer_id", [0, 1, 5])
def test_last_batch_of_a_producer_stays_as_a_header_and_others_go(producer_id: int) -> None:
    log = log_with()
    for sequence, key in enumerate((b"a", b"b", b"a")):
        put(log, (key, b"v"), producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    put(log, (b"b", b"w"))
    put(log, (b"a", b"w"))
    seal(log)
    for _ in clean(log, NOW, log.end_offset):
        pass
    found = [(header.base_offset, header.producer_id, header.record_count) for header, _ in log.batches(0)]
    assert found == [(2, producer_id, 0), (3, -1, 1), (4, -1, 1), (5, -1, 1)]


def test_batch_without_a_producer_never_stays_as_a_header() -> None:
    log = log_with()
    put(log, (b"a", b"v"))
    put(log, (b"a", b"w"))
    put(log, (b"b", b"w"), producer_id=0, producer_epoch=0, base_sequence=0)
    seal(log)
    for _ in clean(log, NOW, log.end_offset):
        pass
    assert [header.base_offset for header, _ in log.batches(0)] == [1, 2, 3]


@pytest.mark.parametrize(("records", "is_told"), [(1, True), (4096, True), (4097, False)])
def test_batch_of_more_offsets_than_fit_a_step_is_looked_at_in_slices(records: int, is_told: bool) -> None:
    plan = Plan(NOW, 10_000)
    header = BatchHeader.from_buffer(build_batch([(b"k", b"v")] * records, timestamp_ms=1000))
    assert not plan.is_superseded(header), "no key has been read yet"
    plan.dirty_offset = 0
    assert plan.is_superseded(header) is is_told
    plan.survivors.add(records - 1)
    assert not plan.is_superseded(header)
