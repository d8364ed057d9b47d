"""The rows of committed offsets: what room they take while they grow."""

from __future__ import annotations

from sys import getsizeof

from broker.coordinator.offsets.rows import MANY, put


def test_few_rows_have_no_room_to_spare_and_many_grow_in_place() -> None:
    rows = put(put(None, 0, 7, 1, 9), 1, 7, 1, 9)
    for n in range(2, MANY + 5):
        assert not isinstance(rows, int)
        grown = put(rows, n, 7, 1, 9)
        if n < MANY:
            assert getsizeof(grown) == getsizeof(rows[:0]) + len(grown) * grown.itemsize
        else:
            assert grown is rows
        rows = grown
