"""Idempotence, rule by rule, against the table in the module, in both modes of producer.state."""

from __future__ import annotations

import pytest
from producers_kit import APPEND, DUPLICATE, OUT_OF_ORDER, PID, STORED, appended, outcome

from broker.partitions.producer_table import MAX_SEQUENCE, add_to_sequence
from broker.partitions.producer_undo import forget_below
from broker.partitions.producers import MOST_AWAITED, CachedBatch, Producers
from protocol.errors import ErrorCode, KafkaError

FENCED = ErrorCode.INVALID_PRODUCER_EPOCH

MODES = pytest.mark.parametrize("batches", [False, True], ids=["latest", "batches"])


def code(producers: Producers, epoch: int, first: int, last: int) -> ErrorCode | None:
    with pytest.raises(KafkaError) as refused:
        producers.decide(PID, epoch, first, last)
    return refused.value.code


@MODES
@pytest.mark.parametrize(("last", "first"), [(0, 1), (41, 42), (MAX_SEQUENCE, 0), (MAX_SEQUENCE - 1, MAX_SEQUENCE)])
def test_sequence_that_follows_is_appended(last: int, first: int, batches: bool) -> None:
    assert appended((last, 1), mode=batches).decide(PID, 0, first, add_to_sequence(first, 3)) is None


@MODES
@pytest.mark.parametrize(("last", "first"), [(0, 2), (10, 8), (10, 12), (5, 0), (5, MAX_SEQUENCE), (MAX_SEQUENCE, 1)])
def test_sequence_that_does_not_follow_is_out_of_order(last: int, first: int, batches: bool) -> None:
    assert code(appended((last, 1), mode=batches), 0, first, first) == OUT_OF_ORDER


# ---------------------------------------------------------------- producers that are not known yet


def test_batches_behind_a_refused_first_one_wait_for_it() -> None:
    producers = Producers()
    producers.refused(PID, 0, 0)
    assert outcome(producers, 1, 1) == OUT_OF_ORDER
    producers.refused(PID, 0, 1)
    assert outcome(producers, 2, 2) == OUT_OF_ORDER
    assert outcome(producers, 1, 1) == OUT_OF_ORDER
    assert outcome(producers, 0, 0) == APPEND
    producers.replay(PID, 0, 0, 0, 50, 50, 1)
    assert outcome(producers, 1, 1) == APPEND
    assert outcome(producers, 2, 2) == OUT_OF_ORDER


def test_an_earlier_batch_than_the_refused_one_may_come() -> None:
    producers = Producers()
    producers.refused(PID, 0, 5)
    assert outcome(producers, 3, 3) == APPEND
    producers.refused(PID, 0, 3)
    assert outcome(producers, 5, 5) == OUT_OF_ORDER
    producers.refused(PID, 0, MAX_SEQUENCE)  # over the wrap, too
    assert outcome(producers, 3, 3) == OUT_OF_ORDER
    assert outcome(producers, MAX_SEQUENCE, 2) == APPEND


def test_a_new_epoch_does_not_wait_for_the_old_one() -> None:
    producers = Producers()
    producers.refused(PID, 0, 0)
    assert outcome(producers, 4, 4, epoch=1) == APPEND
    producers.refused(PID, 1, 0)
    assert outcome(producers, 4, 4, epoch=1) == OUT_OF_ORDER
    producers.refused(PID, 0, 0)
    assert outcome(producers, 4, 4, epoch=1) == OUT_OF_ORDER


def test_refusal_changes_nothing_for_a_known_producer() -> None:
    producers = appended((0, 1))
    producers.refused(PID, 0, 1)
    assert outcome(producers, 2, 2) == OUT_OF_ORDER
    assert outcome(producers, 1, 1) == APPEND


def test_released_rule_waits_only_in_transactions() -> None:
    producers = Producers(batches=True)
    producers.refused(PID, 0, 0)
    assert producers.decide(PID, 0, 1, 1) is None
    with pytest.raises(KafkaError) as refused:
        producers.decide(PID, 0, 1, 1, transactional=True)
    assert refused.value.code == OUT_OF_ORDER


def test_released_rule_compares_sequences_without_a_wrap() -> None:
    producers = Producers(batches=True)
    producers.refused(PID, 0, 2**31 - 1)
    assert producers.decide(PID, 0, 0, 0, transactional=True) is None
    producers.refused(PID, 0, 5)
    producers.refused(PID, 0, 2**31 - 1)
    with pytest.raises(KafkaError):
        producers.decide(PID, 0, 6, 6, transactional=True)


def test_refused_producers_are_remembered_up_to_a_number() -> None:
    producers = Producers()
    for pid in range(MOST_AWAITED + 1):
        producers.refused(pid, 0, 0)
    assert producers.decide(0, 0, 1, 1) is None
    with pytest.raises(KafkaError):
        producers.decide(1, 0, 1, 1)


def test_transaction_of_version_2_begins_at_zero() -> None:
    producers = Producers()
    assert producers.decide(PID, 0, 0, 3, transactional=True, begins_at_zero=True) is None
    with pytest.raises(KafkaError) as refused:
        producers.decide(PID, 0, 3, 3, transactional=True, begins_at_zero=True)
    assert refused.value.code == OUT_OF_ORDER
    assert appended((0, 3)).decide(PID, 0, 3, 3, transactional=True, begins_at_zero=True) is None
    producers.refused(PID, 0, 2**31 - 1)
    assert producers.decide(PID, 0, 0, 3, transactional=True, begins_at_zero=True) is None


def test_producer_that_lost_all_its_batches_begins_with_the_first_of_them() -> None:
    before, after = Producers(), Producers()
    before.undo = []
    before.replay(PID, 0, 4, 5, 100, 101, 1)
    before.replay(PID, 0, 6, 6, 102, 102, 1)
    before.revert(100)
    after.recall(before)
    assert outcome(after, 6, 6) == OUT_OF_ORDER
    assert outcome(after, 4, 5) == APPEND


def test_what_is_durable_is_not_undone() -> None:
    before, after = appended((0, 5)), Producers()
    before.undo = []
    for first in range(5, 9):
        before.replay(PID, 0, first, first, 100 + first, 100 + first, 1)
    forget_below(before.undo, 107)
    assert [change[0] for change in before.undo] == [107, 108]
    before.revert(107)
    after.recall(before)
    assert after.batches(PID) == [(6, 6, 106, 106, 1)]
    assert after.table[PID].written == 7


def test_unknown_producer_may_begin_anywhere() -> None:
    assert Producers().decide(PID, 3, 12345, 12345) is None


def test_repetition_of_any_of_five_cached_batches_answers_its_offset() -> None:
    producers = appended(*((i * 2, 2) for i in range(5)), mode=True)
    for i in range(5):
        found = producers.decide(PID, 0, i * 2, i * 2 + 1)
        assert found is not None
        assert (found.base_offset, found.last_offset, found.timestamp_ms) == (100 + 2 * i, 101 + 2 * i, 100 + 2 * i)


def test_repetition_of_a_sixth_batch_is_out_of_order() -> None:
    producers = appended(*((i, 1) for i in range(6)), mode=True)
    assert code(producers, 0, 0, 0) == OUT_OF_ORDER
    assert producers.decide(PID, 0, 1, 1) is not None


def test_lower_epoch_is_fenced_even_for_a_repetition() -> None:
    producers = appended((0, 1), epoch=1)
    assert code(producers, 0, 0, 0) == FENCED
    assert code(producers, 0, 1, 1) == FENCED


def test_higher_epoch_begins_at_zero() -> None:
    producers = appended((0, 11), epoch=1)
    assert producers.decide(PID, 2, 0, 4) is None
    assert code(producers, 2, 3, 3) == OUT_OF_ORDER
    assert code(producers, 2, 11, 11) == OUT_OF_ORDER


def test_higher_epoch_forgets_the_batches_of_the_lower() -> None:
    producers = appended((0, 1), (1, 1), epoch=1, mode=True)
    producers.replay(PID, 2, 0, 0, 200, 200, 5)
    assert producers.batches(PID) == [(0, 0, 200, 200, 5)]
    found = producers.decide(PID, 2, 0, 0)
    assert found is not None
    assert found.base_offset == 200


def test_batch_across_the_wrap_is_recognised() -> None:
    producers = appended((MAX_SEQUENCE - 1, 4))
    assert producers.table[PID].last_sequence == 1
    assert producers.decide(PID, 0, MAX_SEQUENCE - 1, 1) is not None
    assert producers.decide(PID, 0, 2, 2) is None


def test_after_a_marker_of_a_new_epoch_only_zero_follows() -> None:
    producers = appended((0, 5))
    producers.replay_marker(PID, 1, 3, 9, 105, commit=True)
    assert producers.decide(PID, 1, 0, 0) is None
    assert code(producers, 1, 5, 5) == OUT_OF_ORDER


def test_plain_records_during_an_open_transaction_are_refused() -> None:
    producers = Producers()
    producers.replay(PID, 0, 0, 0, 10, 10, 1, transactional=True)
    assert list(producers.open.values()) == [10]
    assert code(producers, 0, 1, 1) == ErrorCode.INVALID_TXN_STATE
    assert producers.decide(PID, 0, 1, 1, transactional=True) is None
    producers.replay_marker(PID, 0, 1, 2, 11, commit=True)
    assert not producers.open
    assert producers.decide(PID, 0, 1, 1) is None


def test_idle_producer_expires_but_not_in_a_transaction() -> None:
    producers = appended((0, 1))
    producers.replay(PID + 1, 0, 0, 0, 101, 101, 100, transactional=True)
    assert sum(producers.expire(100 + 999, 1000)) == 0
    assert sum(producers.expire(100 + 1000, 1000)) == 1
    assert list(producers.table) == [PID + 1]


def test_decide_changes_nothing() -> None:
    producers = appended((0, 3))
    before = producers.fingerprint()
    producers.decide(PID, 0, 3, 3)
    producers.decide(PID, 1, 0, 0)
    producers.decide(PID + 1, 0, 9, 9)
    assert producers.fingerprint() == before


@MODES
def test_snapshot_keeps_the_last_batch_and_what_is_known_to_be_written(batches: bool) -> None:
    producers = appended((0, 3), (3, 4), mode=batches)
    producers.replay(9, 4, MAX_SEQUENCE, 1, 300, 302, 7)
    again = Producers(batches=batches)
    again.load(producers.snapshot())
    assert again.batches(PID) == [CachedBatch(3, 6, 103, 106, 103)]
    assert again.batches(9) == [(MAX_SEQUENCE, 1, 300, 302, 7)]
    assert outcome(again, 0, 2) == (OUT_OF_ORDER if batches else DUPLICATE)
    assert outcome(again, 3, 6) == STORED
    assert outcome(again, 7, 7) == APPEND


@MODES
@pytest.mark.parametrize("marker_ms", [0, 104, 99, 3 * 10**9, -(10**10)])
def test_repetition_after_a_marker_has_the_time_of_the_batch(marker_ms: int, batches: bool) -> None:
    producers = appended((0, 3), mode=batches)
    producers.replay_marker(PID, 0, 1, marker_ms, 103, commit=True)
    assert producers.table[PID].last_timestamp_ms == marker_ms
    for _ in range(2):
        found = producers.decide(PID, 0, 0, 2)
        assert found is not None
        assert found.timestamp_ms == 100
        producers.replay_marker(PID, 0, 1, marker_ms + 1, 104, commit=False)
    if -(2**31) < marker_ms < 2**31:
        again = Producers(batches=batches)
        again.load(producers.snapshot())
        assert again.batches(PID) == [(0, 2, 100, 102, 100)]
    producers.replay(PID, 0, 3, 3, 105, 105, 7)
    assert [entry.timestamp_ms for entry in producers.batches(PID)] == ([100, 7] if batches else [7])


def test_snapshot_of_kafka_tells_of_one_batch() -> None:
    producers = appended((0, 3), (3, 4))
    again = Producers()
    again.load(entry._replace(written=0) for entry in producers.snapshot())
    assert outcome(again, 4, 6) == DUPLICATE
    assert outcome(again, 2, 2) == OUT_OF_ORDER


def test_snapshot_is_of_the_moment_it_was_asked_for() -> None:
    producers = appended((0, 3))
    snapshot = producers.snapshot()
    producers.replay(PID, 0, 3, 3, 103, 103, 1, transactional=True)
    assert [(entry.last_sequence, entry.txn_first_offset) for entry in snapshot] == [(2, -1)]
