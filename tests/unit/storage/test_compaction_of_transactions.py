"""What the cleaner makes of transactions, of their markers, and of commits over several batches."""

from __future__ import annotations

import pytest
from compaction_kit import NOW, fill_up, records, run
from log_kit import put, put_marker

from protocol.record_batch import (
    ABORT,
    COMMIT,
    TRANSACTIONAL,
    control_batch,
    iter_records,
)
from storage.cleaning.compaction import clean
from storage.segments.spans import span_headers


def transaction(log, producer_id, key, value):
    put(log, (key, value), producer_id=producer_id, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)


def marker(log, producer_id, kind):
    put_marker(
        log,
        control_batch(kind, base_offset=log.end_offset, timestamp_ms=1000, producer_id=producer_id, producer_epoch=0),
    )


def test_aborted_record_never_replaces_a_committed_one(log):
    put(log, (b"k", b"committed"))
    transaction(log, 5, b"k", b"aborted")
    marker(log, 5, ABORT)
    transaction(log, 5, b"k2", b"fine")
    marker(log, 5, COMMIT)
    fill_up(log)
    run(log)
    assert records(log)[:2] == [(0, b"k", b"committed"), (3, b"k2", b"fine")]
    kept = [h.base_offset for h, _ in log.batches(0) if h.is_control]
    assert kept == [2, 4]


def test_marker_goes_after_its_data_and_the_horizon(log):
    transaction(log, 5, b"k", b"aborted")
    marker(log, 5, ABORT)
    put(log, (b"x", b"y"))
    fill_up(log)
    nobody = {"last_batch_of": {}.get}
    run(log, NOW, **nobody)
    assert [h.base_offset for h, _ in log.batches(0)] == [1, 2, 3]
    fill_up(log)
    run(log, NOW, **nobody)
    control = next(h for h, _ in log.batches(0))
    assert control.delete_horizon_ms == NOW + 1000
    fill_up(log)
    run(log, NOW + 1000, **nobody)
    assert not any(h.is_control for h, _ in log.batches(0))


def test_pass_ends_before_a_transaction_that_is_still_open(log):
    put(log, (b"k", b"1"))
    put(log, (b"k", b"2"))
    transaction(log, 5, b"k", b"maybe")
    put(log, (b"k", b"3"))
    fill_up(log)
    run(log)
    assert [offset for offset, key, _ in records(log) if key == b"k"] == [1, 2, 3]
    assert log.cleaned_offset == 2


def found_headers(log):
    return {r.key: r.headers for _, batch in log.batches(0) for r in iter_records(batch)}


def test_headers_of_a_commits_first_record_go_to_its_first_survivor(log):
    put(log, (b"a", b"1", [("member", b"m")]), (b"b", b"1"), (b"c", b"1"))
    put(log, (b"a", b"2", [("member", b"n")]))
    fill_up(log)
    run(log, commits=True)
    assert found_headers(log) == {b"a": (("member", b"n"),), b"b": (("member", b"m"),), b"c": (), b"active": ()}


def test_headers_of_a_data_topic_stay_with_their_record(log):
    put(log, (b"a", b"1", [("txid", b"1" * 8), ("txsize", b"\0\0\0\5")]), (b"b", b"1", [("mine", b"2")]))
    put(log, (b"b", b"2"))
    fill_up(log)
    run(log)
    assert found_headers(log)[b"a"] == (("txid", b"1" * 8), ("txsize", b"\0\0\0\5"))
    assert found_headers(log)[b"b"] == ()


def spanning(log, keys, txsize=None, value=b"1"):
    """A commit of one record a batch; a part of one when txsize is larger than what is there."""
    headers = span_headers(log.end_offset, txsize or len(keys))
    for key in keys:
        put(log, (key, value, headers))


def test_commit_over_several_batches_loses_its_marks_as_a_whole(log):
    spanning(log, [b"a", b"b", b"c"])
    put(log, (b"b", b"2"))
    fill_up(log)
    run(log, commits=True)
    assert found_headers(log) == {b"a": (), b"b": (), b"c": (), b"active": ()}
    assert [(k, v) for _, k, v in records(log)][:3] == [(b"a", b"1"), (b"c", b"1"), (b"b", b"2")]


@pytest.mark.parametrize("txsize", [2, 4])
def test_part_of_a_commit_never_wins_over_what_was_there_before(log, txsize):
    put(log, (b"a", b"old"), (b"b", b"old"), (b"c", b"old"))
    spanning(log, [b"a", b"b", b"c"], txsize)
    put(log, (b"d", b"1"))
    fill_up(log)
    run(log, commits=True)
    assert [(k, v) for _, k, v in records(log)][:4] == [(b"a", b"old"), (b"b", b"old"), (b"c", b"old"), (b"d", b"1")]


def test_pass_does_not_end_within_a_commit_over_several_batches(log):
    spanning(log, [b"k%d" % n for n in range(6)])
    for key in (b"k8", b"k9"):
        put(log, (key, b"1"))
    fill_up(log)
    list(clean(log, NOW, log.end_offset, commits=True, max_keys=4))
    assert log.cleaned_offset == 7
    assert all(headers == () for headers in found_headers(log).values())
