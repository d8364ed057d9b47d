"""Idempotence, rule by rule, against the table in the module (Kafka's released rules)."""

from __future__ import annotations

import pytest

from broker.coordinator.producers import MAX_SEQUENCE, Producers, add_to_sequence
from protocol.errors import ErrorCode, KafkaError

PID = 7
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH


def appended(*batches: tuple[int, int], epoch: int = 0) -> Producers:
    """A producer that has appended batches (base sequence, records), one after the other from offset 100 on."""
    producers = Producers()
    offset = 100
    for base, count in batches:
        producers.replay(
            PID, epoch, base, add_to_sequence(base, count - 1), offset, offset + count - 1, timestamp_ms=offset
        )
        offset += count
    return producers


def code(producers: Producers, epoch: int, first: int, last: int) -> ErrorCode | None:
    with pytest.raises(KafkaError) as refused:
        producers.decide(PID, epoch, first, last)
    return refused.value.code


@pytest.mark.parametrize(("last", "first"), [(0, 1), (41, 42), (MAX_SEQUENCE, 0), (MAX_SEQUENCE - 1, MAX_SEQUENCE)])
def test_sequence_that_follows_is_appended(last: int, first: int) -> None:
    assert appended((last, 1)).decide(PID, 0, first, add_to_sequence(first, 3)) is None


@pytest.mark.parametrize(("last", "first"), [(0, 2), (10, 8), (10, 12), (5, 0), (5, MAX_SEQUENCE), (MAX_SEQUENCE, 1)])
def test_sequence_that_does_not_follow_is_out_of_order(last: int, first: int) -> None:
    assert code(appended((last, 1)), 0, first, first) == OUT_OF_ORDER


def test_unknown_producer_may_begin_anywhere() -> None:
    assert Producers().decide(PID, 3, 12345, 12345) is None


def test_repetition_of_any_of_five_cached_batches_answers_its_offset() -> None:
    producers = appended(*((i * 2, 2) for i in range(5)))
    for i in range(5):
        found = producers.decide(PID, 0, i * 2, i * 2 + 1)
        assert found is not None
        assert (found.base_offset, found.last_offset, found.timestamp_ms) == (100 + 2 * i, 101 + 2 * i, 100 + 2 * i)


def test_repetition_of_a_sixth_batch_is_out_of_order() -> None:
    producers = appended(*((i, 1) for i in range(6)))
    assert code(producers, 0, 0, 0) == OUT_OF_ORDER
    assert producers.decide(PID, 0, 1, 1) is not None


@pytest.mark.parametrize(("first", "last"), [(9, 10), (8, 9), (8, 12)])
def test_part_of_a_cached_batch_is_out_of_order(first: int, last: int) -> None:
    assert code(appended((8, 3)), 0, first, last) == OUT_OF_ORDER


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
    producers = appended((0, 1), (1, 1), epoch=1)
    producers.replay(PID, 2, 0, 0, 200, 200, 5)
    assert producers.entries[PID].batches == [(0, 0, 200, 200, 5)]
    found = producers.decide(PID, 2, 0, 0)
    assert found is not None
    assert found.base_offset == 200


def test_batch_across_the_wrap_is_recognised() -> None:
    producers = appended((MAX_SEQUENCE - 1, 4))
    assert producers.entries[PID].last_sequence == 1
    assert producers.decide(PID, 0, MAX_SEQUENCE - 1, 1) is not None
    assert producers.decide(PID, 0, 2, 2) is None


def test_after_a_marker_of_a_new_epoch_only_zero_follows() -> None:
    producers = appended((0, 5))
    producers.replay_marker(PID, 1, coordinator_epoch=3, timestamp_ms=9)
    assert producers.decide(PID, 1, 0, 0) is None
    assert code(producers, 1, 5, 5) == OUT_OF_ORDER


def test_plain_records_during_an_open_transaction_are_refused() -> None:
    producers = Producers()
    producers.replay(PID, 0, 0, 0, 10, 10, 1, transactional=True)
    assert producers.first_open_offset() == 10
    assert code(producers, 0, 1, 1) == ErrorCode.INVALID_TXN_STATE
    assert producers.decide(PID, 0, 1, 1, transactional=True) is None
    producers.replay_marker(PID, 0, 1, 2)
    assert producers.first_open_offset() is None
    assert producers.decide(PID, 0, 1, 1) is None


def test_idle_producer_expires_but_not_in_a_transaction() -> None:
    producers = appended((0, 1))
    producers.replay(PID + 1, 0, 0, 0, 101, 101, 100, transactional=True)
    assert producers.expire(100 + 999, 1000) == 0
    assert producers.expire(100 + 1000, 1000) == 1
    assert list(producers.entries) == [PID + 1]


def test_decide_changes_nothing() -> None:
    producers = appended((0, 3))
    before = producers.fingerprint()
    producers.decide(PID, 0, 3, 3)
    producers.decide(PID, 1, 0, 0)
    producers.decide(PID + 1, 0, 9, 9)
    assert producers.fingerprint() == before


def test_snapshot_keeps_the_last_batch_of_each_producer() -> None:
    producers = appended((0, 3), (3, 4))
    producers.replay(9, 4, MAX_SEQUENCE, 1, 300, 302, 7)
    again = Producers()
    again.load(producers.snapshot())
    assert again.entries[PID].batches == producers.entries[PID].batches[-1:]
    assert again.entries[9].batches == [(MAX_SEQUENCE, 1, 300, 302, 7)]
    assert code(again, 0, 0, 2) == OUT_OF_ORDER
    assert again.decide(PID, 0, 3, 6) is not None
    assert again.decide(PID, 0, 7, 7) is None
