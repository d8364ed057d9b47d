"""Producers at the edges: awaited batches, what a snapshot says is written, leaves of the table, errors' texts."""

from __future__ import annotations

from itertools import pairwise

import pytest

from broker.partitions.producer_table import LEAF_ROWS, MAX_SEQUENCE, ProducerSnapshot, ProducerTable
from broker.partitions.producers import Producers
from protocol.errors import ErrorCode, KafkaError

PID = 7
HALF = 2**30


def text(producers: Producers, epoch: int, first: int, last: int | None = None) -> str:
    """The error that a batch is refused with; empty: it is appended."""
    try:
        assert producers.decide(PID, epoch, first, first if last is None else last) is None
    except KafkaError as error:
        return f"{ErrorCode(error.code).name}: {error}"
    return ""


# what was refused, what comes then, and whether it must wait for the refused one
@pytest.mark.parametrize(
    ("refused", "comes", "waits"),
    [
        (0, 0, False),
        (0, 1, True),
        (5, 5, False),
        (5, 4, False),
        (5, 6, True),
        (5, 5 + HALF - 1, True),
        (5, 5 + HALF, False),
        (HALF, 0, False),  # as far behind as ahead
        (HALF + 1, 1, False),
        (HALF + 1, 0, True),
        (MAX_SEQUENCE, MAX_SEQUENCE, False),
        (MAX_SEQUENCE, 0, True),
        (MAX_SEQUENCE, MAX_SEQUENCE - 1, False),
    ],
)
def test_batch_waits_for_a_refused_one_before_it(refused: int, comes: int, waits: bool) -> None:
    producers = Producers()
    producers.refused(PID, 0, refused)
    assert bool(text(producers, 0, comes)) is waits
    assert text(producers, 1, comes) == ""
    if waits:
        assert f"sent sequence {comes} after {refused - 1}" in text(producers, 0, comes)


@pytest.mark.parametrize(
    ("first", "second", "awaited"),
    [
        ((0, 5), (0, 7), (0, 5)),
        ((0, 5), (0, 5), (0, 5)),
        ((0, 5), (0, 4), (0, 4)),
        ((0, 5), (0, 5 + HALF - 1), (0, 5)),
        ((0, 5), (0, 5 + HALF), (0, 5 + HALF)),
        ((5, 7), (4, 0), (5, 7)),
        ((5, 7), (6, 9), (6, 9)),
        ((7, 5), (5, 6), (7, 5)),
    ],
)
def test_first_of_the_refused_batches_is_awaited(
    first: tuple[int, int], second: tuple[int, int], awaited: tuple[int, int]
) -> None:
    producers = Producers()
    producers.refused(PID, *first)
    producers.refused(PID, *second)
    epoch, sequence = awaited
    assert text(producers, epoch, sequence) == ""
    assert text(producers, epoch, (sequence + 1) & MAX_SEQUENCE)
    producers.given_up(PID, epoch, sequence)
    assert text(producers, epoch, (sequence + 1) & MAX_SEQUENCE) == ""


def loaded(**fields: int) -> Producers:
    """A producer whose last batch had sequences 5 to 10 at offsets 100 to 105."""
    snapshot = {
        "producer_id": PID,
        "producer_epoch": 3,
        "last_sequence": 10,
        "last_offset": 105,
        "offset_delta": 5,
        "last_timestamp_ms": 9,
        "coordinator_epoch": -1,
        "first_offset": -1,
        "written": 0,
        "marker_delay_ms": 0,
    }
    producers = Producers()
    producers.load([ProducerSnapshot(*{**snapshot, **fields}.values())])
    return producers


@pytest.mark.parametrize(("written", "known"), [(0, 6), (5, 6), (6, 6), (7, 7), (8, 8)])
def test_snapshot_says_what_is_written_and_at_least_the_last_batch(written: int, known: int) -> None:
    producers = loaded(written=written)
    first = 10 - known + 1
    for sequence in range(first, 11):
        assert text(producers, 3, sequence).startswith("DUPLICATE_SEQUENCE_NUMBER")
    assert text(producers, 3, first - 1).startswith("OUT_OF_ORDER_SEQUENCE_NUMBER")
    (batch,) = producers.batches(PID)
    assert (batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset) == (5, 10, 100, 105)


def test_producer_without_a_batch_has_none_to_answer_with() -> None:
    producers = loaded(last_sequence=-1, last_offset=-1, offset_delta=0)
    assert producers.batches(PID) == []
    assert text(producers, 3, 0) == ""
    assert text(producers, 3, 1).endswith("sent sequence 1 after -1")
    zero = loaded(last_sequence=0, last_offset=0, offset_delta=0)
    assert [batch.base_sequence for batch in zero.batches(PID)] == [0]


def test_only_whole_older_batches_are_repeated() -> None:
    producers = Producers(batches=True)
    starts = [0, 3, 5, 9, 10, 14]
    for base, after in pairwise(starts):
        producers.replay(PID, 0, base, after - 1, 100 + base, 99 + after, 5)
    for first in range(15):
        for last in range(first, 15):
            whole = (first, last + 1) in pairwise(starts)
            if whole:
                found = producers.decide(PID, 0, first, last)
                assert found is not None
                assert found[:4] == (first, last, 100 + first, 100 + last)
            elif first != 14:
                assert text(producers, 0, first, last).startswith("OUT_OF_ORDER_SEQUENCE_NUMBER")


def leaves(ids: list[int]) -> list[int]:
    """Rows in each leaf after these producers have come in this order."""
    table = ProducerTable()
    for producer_id in ids:
        table.put(producer_id, 0, 0, 0, 0, 0, 0, 0, 0)
    assert list(table) == sorted(ids)
    return [len(leaf.producer_ids) for leaf in table._leaves]


def test_leaves_of_which_all_rows_are_removed_go_but_for_the_first() -> None:
    table = ProducerTable()
    table.fill([(n, (0, 0, 0, 0, 1, 0, 0, 0)) for n in range(6 * LEAF_ROWS)])
    assert sum(table.remove_if_before(1, {4 * LEAF_ROWS: 0})) == 6 * LEAF_ROWS - 1
    assert [len(leaf.producer_ids) for leaf in table._leaves] == [0, 1]
    assert list(table) == [4 * LEAF_ROWS]


def test_leaves_stay_full_when_ids_rise_and_half_full_when_they_fall() -> None:
    rows = 4 * LEAF_ROWS
    full = LEAF_ROWS - 1
    assert leaves(list(range(rows))) == [full] * 4 + [4]
    half = LEAF_ROWS // 2
    assert set(leaves(list(range(rows, 0, -1)))[1:]) == {half}
    between = leaves([*range(rows), *range(-rows, 0)])  # rising, but before others
    assert between[-4:] == [full, full, full, 4]
    assert {half} == set(between[:-6])


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize(("first", "last"), [(0, 1), (9, 9), (2, 4), (MAX_SEQUENCE, 0)])
def test_any_sequence_is_taken_where_there_is_no_epoch(batches: bool, first: int, last: int) -> None:
    """As Kafka's ProducerAppendInfo.checkSequence does; what is known to be written is no less so."""
    producers = Producers(batches=batches)
    producers.replay(PID, -1, 3, 3, 0, 0, 0)
    assert text(producers, -1, first, last) == ""
    assert producers.decide(PID, -1, 3, 3) is not None
    producers.replay(PID, 0, 3, 3, 1, 1, 0)
    assert text(producers, 0, first, last).startswith("OUT_OF_ORDER")
