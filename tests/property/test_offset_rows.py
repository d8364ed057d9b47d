"""Packed rows of offsets hold what a dict would, in each of their forms, and never more than their size."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.offsets import rows

PARTITIONS = st.integers(0, 5) | st.sampled_from([-1, 2**31 - 1])
OFFSETS = st.integers(0, 2) | st.sampled_from([-1, -(2**63), 2**63 - 1])
EPOCHS = st.integers(-1, 1) | st.sampled_from([-2, -(2**31), 2**31 - 1])
TIMES = st.integers(-1, 1) | st.sampled_from([-2, rows.MOST_TIME - 1, rows.MOST_TIME, -(2**63), 2**63 - 1])
PUT = st.tuples(st.just("put"), PARTITIONS, OFFSETS, EPOCHS, TIMES)
REMOVE = st.tuples(st.just("remove"), PARTITIONS)


@st.composite
def dense(draw):
    start, n = draw(st.integers(0, 3)), draw(st.integers(2, 3))
    columns = [draw(st.lists(each, min_size=n, max_size=n)) for each in (OFFSETS, EPOCHS | st.just(0))]
    return "dense", range(start, start + n), *columns, draw(TIMES)


@st.composite
def any_run(draw):
    n = draw(st.integers(2, 6))
    columns = [draw(st.lists(each, min_size=n, max_size=n)) for each in (PARTITIONS, OFFSETS, EPOCHS)]
    return "run", *columns, draw(TIMES)


@given(st.lists(PUT | REMOVE | dense() | any_run(), max_size=12))
def test_rows_hold_what_a_dict_would(steps):
    held: rows.Rows | None = None
    model: dict[int, tuple[int, int, int]] = {}
    for kind, *values in steps:
        if kind == "put":
            held = rows.put(held, *values)
            model[values[0]] = tuple(values[1:])
        elif kind == "remove":
            held = rows.remove(held, *values)
            model.pop(values[0], None)
        elif kind == "run":
            partitions, offsets, epochs, time_ms = values
            held = rows.put_run(held, partitions, offsets, epochs, time_ms)
            model |= {p: (o, e, time_ms) for p, o, e in zip(partitions, offsets, epochs, strict=True)}
        else:
            partitions, offsets, epochs, time_ms = values
            whole = rows.put_dense(held, partitions, offsets, epochs, time_ms)
            assert (whole is not None) == (sorted(model) in ([], list(partitions)))
            if whole is not None:
                held = whole
                model = {p: (o, e, time_ms) for p, o, e in zip(partitions, offsets, epochs, strict=True)}
        assert rows.count(held) == len(model)
        assert {p: rows.get(held, p) for p in (-1, *range(8), 2**31 - 1)} == {
            p: model.get(p) for p in (-1, *range(8), 2**31 - 1)
        }
        asked = [5, 0, 1, -1, 7, 2, 3, 4]
        assert rows.get_all(held, asked) == [model[p][:2] if p in model else None for p in asked]
        assert list(rows.cells(held)[0]) == sorted(model)
        if not model:
            assert held is None
            continue
        assert held is not None
        assert rows.oldest_ms(held) == min(time_ms for _, _, time_ms in model.values())
        columns = [[each] * len(model) if isinstance(each, int) else list(each) for each in rows.cells(held)]
        assert list(zip(*columns[1:], strict=True)) == [model[p] for p in sorted(model)]
        again = rows.of_cells(*(array("q", each) for each in columns))
        assert [rows.get(again, p) for p in model] == list(model.values())
        if len(model) > 1:
            assert not isinstance(held, int)
            least = rows.HEAD + len(model)
            assert least <= len(held) <= rows.HEAD + 4 * len(model)
            assert held.__sizeof__() == array("q", held.tolist()).__sizeof__()  # no room to spare


@given(st.integers(2, 60), st.sets(st.integers(0, 60), min_size=2, max_size=8), st.booleans())
def test_run_is_set_alike_beside_few_rows_and_many(n, partitions, falls):
    """Beside many rows it is set one by one, beside few all are packed anew."""
    known = range(0, 2 * n, 2)
    before = rows.put_run(None, known, [1] * n, [2] * n, 3)
    run = sorted(partitions, reverse=falls)
    held = rows.put_run(before, run, [7 + each for each in run], [8] * len(run), 9)
    assert {p: rows.get(held, p) for p in range(-1, 125)} == {
        p: (7 + p, 8, 9) if p in partitions else (1, 2, 3) if p in known else None for p in range(-1, 125)
    }


def test_run_on_as_many_other_partitions_replaces_none():
    held = rows.put_run(rows.put_run(None, [0, 2, 4], [1] * 3, [2] * 3, 3), [1, 2, 5], [7] * 3, [8] * 3, 9)
    assert [rows.get(held, p) for p in range(6)] == [(1, 2, 3), (7, 8, 9), (7, 8, 9), None, (1, 2, 3), (7, 8, 9)]


def test_commit_of_all_at_one_time_is_stored_once():
    held = rows.put_dense(None, range(100), range(100), (5,) * 100, 7)
    assert isinstance(held, array)
    assert len(held) == rows.HEAD + 100
    assert rows.put_dense(held, range(100), range(1, 101), (5,) * 100, 8) is held
    assert (rows.get(held, 99), rows.cells(held)[2:]) == ((100, 5, 8), (5, 8))
    assert rows.put_dense(held, range(100), range(100), range(100), 9) is not held


def test_commit_over_a_gap_is_no_commit_of_all():
    held = rows.put(rows.put(None, 0, 1, 2, 3), 2, 1, 2, 3)
    assert rows.put_dense(held, range(2), (5, 5), (2, 2), 3) is None
    assert rows.put_dense(held, range(1, 3), (5, 5), (2, 2), 3) is None
    assert list(rows.cells(held)[0]) == [0, 2]


def test_usual_row_is_one_integer():
    held = rows.put(None, 3, 1_000_000, 9, 1_760_000_000_000)
    assert isinstance(held, int)
    assert held.__sizeof__() <= 48


def test_many_rows_grow_where_they_are():
    held: rows.Rows | None = None
    copies = 0
    for partition in range(1000):
        before = held
        held = rows.put(held, partition, partition, partition % 10, partition)
        copies += held is not before
    assert copies < 2 * rows.MANY
