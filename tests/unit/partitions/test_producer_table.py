"""The table of producers against a dict, and what it takes of memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from broker.partitions.producer_table import LEAF_ROWS, ProducerTable, Row

ROOT = Path(__file__).parents[3]


def row(n: int) -> Row:
    return Row(n % 32768, n, n * 7, n % 9, 1_700_000_000_000 + n, n % 5, n + 1, n - 9)


@pytest.mark.parametrize("order", ["rising", "falling", "random"])
def test_table_is_a_map(order: str) -> None:
    rng = Random(1)
    ids = list(range(0, 6 * LEAF_ROWS, 2))
    if order == "falling":
        ids.reverse()
    elif order == "random":
        rng.shuffle(ids)
    table, model = ProducerTable(), {}
    for n, producer_id in enumerate(ids):
        table.put(producer_id, *row(n))
        model[producer_id] = row(n)
        if n % 3 == 0:
            again = rng.choice(ids[: n + 1])
            table.put(again, *row(n + 5))
            model[again] = row(n + 5)
    assert len(table) == len(model)
    assert list(table) == sorted(model)
    assert {producer_id: Row(*fields) for producer_id, fields in table.items()} == model
    for producer_id in range(6 * LEAF_ROWS):
        assert table.get(producer_id) == model.get(producer_id)
        assert (producer_id in table) == (producer_id in model)


def test_last_found_row_is_not_mixed_up_with_another() -> None:
    """Where the last look-up ended is kept: insertions, splits and removals move rows."""
    rng, table, model = Random(2), ProducerTable(), {}
    for n in range(5 * LEAF_ROWS):
        producer_id = rng.randrange(3 * LEAF_ROWS)
        if rng.random() < 0.5:
            table.put(producer_id, *row(n))
            model[producer_id] = row(n)
        assert table.get(producer_id) == model.get(producer_id)
        if n % 500 == 0:
            limit = 1_700_000_000_000 + n // 2
            assert sum(table.remove_if_before(limit, {})) == sum(r.last_timestamp_ms <= limit for r in model.values())
            model = {key: r for key, r in model.items() if r.last_timestamp_ms > limit}
    assert {producer_id: Row(*fields) for producer_id, fields in table.items()} == model


def test_removal_keeps_who_may_not_go() -> None:
    table = ProducerTable()
    for n in range(3 * LEAF_ROWS):
        table.put(n, *row(n))
    gone = list(table.remove_if_before(1 << 60, {5: 0, 2 * LEAF_ROWS: 0}))
    assert sum(gone) == 3 * LEAF_ROWS - 2
    assert len(gone) >= 3  # leaf by leaf
    assert list(table) == [5, 2 * LEAF_ROWS]
    table.put(7, *row(7))
    assert list(table) == [5, 7, 2 * LEAF_ROWS]


def test_row_is_removed_alone() -> None:
    rng, table, model = Random(3), ProducerTable(), {}
    for n in range(3 * LEAF_ROWS):
        table.put(n, *row(n))
        model[n] = row(n)
    for producer_id in rng.sample(range(4 * LEAF_ROWS), 2 * LEAF_ROWS):
        table.get(producer_id)
        table.remove(producer_id)
        model.pop(producer_id, None)
        assert table.get(producer_id) is None
    assert len(table) == len(model)
    assert {producer_id: Row(*fields) for producer_id, fields in table.items()} == model
    table.put(5, *row(8))
    assert table[5] == row(8)


def test_copy_stays_as_it_was() -> None:
    table = ProducerTable()
    table.put(1, *row(1))
    copy = table.copy()
    table.put(1, *row(2))
    table.put(2, *row(3))
    assert list(copy.items()) == [(1, row(1))]
    with pytest.raises(KeyError):
        copy[2]


MEASURE = """
from broker.partitions.producers import Producers
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
order = list(range(1000))
if {shuffled}:
    __import__("random").Random(1).shuffle(order)
partitions = [Producers() for _ in range(1000)]
for partition in partitions:
    partition.replay(0, 0, 0, 0, 0, 0, 0)
before = rss()
for producer in order:
    for at, partition in enumerate(partitions):
        first = at * 1000 + producer * 7
        partition.replay(5000 + producer, 3, first, first + 2, first * 3, first * 3 + 2, 1700000000000 + first)
print((rss() - before) / 1_000_000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("shuffled", [False, True], ids=["rising", "shuffled"])
def test_a_producer_of_a_partition_takes_64_bytes_at_most(shuffled: bool) -> None:
    """A thousand producers with sequences of their own on a thousand partitions, by resident memory."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(shuffled=shuffled)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert 40 < float(done.stdout) <= 64


def test_ids_that_no_producer_has_are_unknown_to_a_new_table() -> None:
    table = ProducerTable()
    assert table.get(-1) is None
    assert table.get(-(1 << 63)) is None
