"""Which sequences of a producer are appended, known or out of order, by what was written before."""

from __future__ import annotations

import pytest
from producers_kit import APPEND, DUPLICATE, OUT_OF_ORDER, PID, STORED, appended, outcome

from broker.partitions.producer_table import MAX_SEQUENCE, add_to_sequence
from broker.partitions.producers import Producers


def written(first: int, last: int, mode: bool = False) -> Producers:
    """A producer whose batches of one record reach from a sequence to another, perhaps over the wrap."""
    return appended(*((add_to_sequence(first, i), 1) for i in range(((last - first) & MAX_SEQUENCE) + 1)), mode=mode)


HALF = 2**30


# KAFKA-12207's examples, without its limit of 1000: what was written, what comes, and what each mode answers.
@pytest.mark.parametrize(
    ("have", "comes", "latest", "released"),
    [
        ((0, 0), (0, 0), STORED, STORED),
        ((0, 0), (1, 1), APPEND, APPEND),
        ((0, 0), (2, 2), OUT_OF_ORDER, OUT_OF_ORDER),
        ((0, 999), (0, 0), DUPLICATE, OUT_OF_ORDER),
        ((0, 1000), (0, 0), DUPLICATE, OUT_OF_ORDER),
        ((0, 1001), (0, 0), DUPLICATE, OUT_OF_ORDER),
        ((0, 4), (0, 0), DUPLICATE, STORED),
        ((MAX_SEQUENCE - 1001, MAX_SEQUENCE), (0, 0), APPEND, APPEND),
        ((MAX_SEQUENCE - 1001, MAX_SEQUENCE), (2147482647, 2147482647), DUPLICATE, OUT_OF_ORDER),
        ((MAX_SEQUENCE - 1001, MAX_SEQUENCE), (2147482646, 2147482646), DUPLICATE, OUT_OF_ORDER),
        ((MAX_SEQUENCE - 1001, MAX_SEQUENCE), (2147482645, 2147482645), OUT_OF_ORDER, OUT_OF_ORDER),
        ((MAX_SEQUENCE, 0), (MAX_SEQUENCE, MAX_SEQUENCE), DUPLICATE, STORED),
        ((2147483640, 5), (2147483640, 2147483640), DUPLICATE, OUT_OF_ORDER),
        ((2147483140, 500), (2147483148, 2147483148), DUPLICATE, OUT_OF_ORDER),
        ((2147483140, 500), (2147483140, 2147483140), DUPLICATE, OUT_OF_ORDER),
        ((2147483140, 500), (2147483139, 2147483139), OUT_OF_ORDER, OUT_OF_ORDER),
        ((0, 10), (12, 12), OUT_OF_ORDER, OUT_OF_ORDER),
        ((0, 10), (MAX_SEQUENCE, MAX_SEQUENCE), OUT_OF_ORDER, OUT_OF_ORDER),
        ((0, 2000), (0, 1500), DUPLICATE, OUT_OF_ORDER),
        ((0, 2000), (1990, 2001), OUT_OF_ORDER, OUT_OF_ORDER),
    ],
)
def test_sequences_behind_the_last_one(
    have: tuple[int, int], comes: tuple[int, int], latest: object, released: object
) -> None:
    assert outcome(written(*have), *comes) == latest
    assert outcome(written(*have, mode=True), *comes) == released


@pytest.mark.parametrize("last", [HALF - 2, HALF - 1, HALF, MAX_SEQUENCE - 1, MAX_SEQUENCE, MAX_SEQUENCE + 1, 5 * HALF])
def test_half_of_all_sequences_count_as_written_and_half_as_ahead(last: int) -> None:
    quarter = HALF // 2
    parts = [(at & MAX_SEQUENCE, min(quarter, last - at + 1)) for at in range(0, last + 1, quarter)]
    producers = appended(*parts)
    first = max(0, last - HALF + 1)
    batch_first = parts[-1][0]
    assert outcome(producers, first & MAX_SEQUENCE, first & MAX_SEQUENCE) == DUPLICATE
    assert outcome(producers, first & MAX_SEQUENCE, last & MAX_SEQUENCE) == DUPLICATE
    assert outcome(producers, batch_first, last & MAX_SEQUENCE) == STORED
    before = (first - 1) & MAX_SEQUENCE
    assert outcome(producers, before, before) == OUT_OF_ORDER
    assert outcome(producers, before, first & MAX_SEQUENCE) == OUT_OF_ORDER
    for ahead in (2, 1000, HALF):
        gap = (last + ahead) & MAX_SEQUENCE
        assert outcome(producers, gap, gap) == OUT_OF_ORDER
        assert outcome(producers, last & MAX_SEQUENCE, gap) == OUT_OF_ORDER  # begins before the end, ends behind it


@pytest.mark.parametrize(
    ("first", "last", "latest", "released"),
    [
        (8, 10, STORED, STORED),
        (9, 10, DUPLICATE, OUT_OF_ORDER),  # a part of the last batch
        (8, 9, DUPLICATE, OUT_OF_ORDER),
        (7, 10, DUPLICATE, OUT_OF_ORDER),
        (8, 12, OUT_OF_ORDER, OUT_OF_ORDER),  # straddles its end
        (12, 12, OUT_OF_ORDER, OUT_OF_ORDER),
    ],
)
def test_sequences_that_cut_the_last_batch(first: int, last: int, latest: object, released: object) -> None:
    assert outcome(appended((0, 8), (8, 3)), first, last) == latest
    assert outcome(appended((0, 8), (8, 3), mode=True), first, last) == released


@pytest.mark.parametrize(
    ("comes", "latest"), [((399, 399), OUT_OF_ORDER), ((400, 400), STORED), ((300, 400), OUT_OF_ORDER)]
)
def test_what_was_never_written_is_no_duplicate(comes: tuple[int, int], latest: object) -> None:
    assert outcome(appended((400, 1)), *comes) == latest  # a producer nobody knew began at 400


def test_gap_in_the_log_ends_what_is_known_to_be_written() -> None:
    producers = appended((0, 5), (7, 2), (9, 1))  # the cleaner took 5 and 6
    assert outcome(producers, 7, 7) == DUPLICATE
    assert outcome(producers, 6, 6) == OUT_OF_ORDER
    assert outcome(producers, 6, 7) == OUT_OF_ORDER
    assert outcome(producers, 0, 0) == OUT_OF_ORDER


def test_snapshot_does_not_count_more_than_half_of_all_sequences() -> None:
    producers = appended((0, 3))
    again = Producers()
    again.load(entry._replace(written=MAX_SEQUENCE) for entry in producers.snapshot())
    assert again.table[PID].written == HALF
