"""The columnar decoder against the reference, over every kind of batch."""

from __future__ import annotations

import made_batches as made
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decode import columnar, frame
from pipeline.decode.batches import Chunk
from pipeline.decode.plain import decode_plain
from pipeline.schema import VIEWS

OF_VIEW = {
    "raw": made.batches(st.tuples(made.BYTES, made.BYTES)),
    "offsets": made.batches(made.commits() | made.commits() | made.group_records(), made.provenances()),
    "transactions": made.batches(made.transaction_records()),
}


def equal(chunk: Chunk, view: str) -> None:
    plain = pa.Table.from_batches([decode_plain(chunk, view)])
    columns = pa.Table.from_batches(list(columnar.decode_columns(chunk, view)), VIEWS[view])
    columns.validate(full=True)
    assert columns.schema == plain.schema
    for name in plain.schema.names:
        assert columns[name].to_pylist() == plain[name].to_pylist(), name


@pytest.fixture
def only_columns(monkeypatch):
    """The reference must not come to help."""

    def helped(*_):
        raise AssertionError("the columnar decoder gave up")

    monkeypatch.setattr(columnar, "decode_plain", helped)


@pytest.fixture
def side_by_side(monkeypatch):
    """Few batches are walked side by side as well, as thousands are."""
    monkeypatch.setattr(frame, "_SIDE_BY_SIDE", 1)


@pytest.mark.parametrize("view", VIEWS)
@given(data=st.data())
def test_columns_of_regular_batches_equal_the_reference(view, data):
    chunk = made.chunk_of(data.draw(st.lists(OF_VIEW[view], min_size=1, max_size=6)))
    for smallest in (1, 200):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frame, "_SIDE_BY_SIDE", smallest)
            patch.setattr(columnar, "decode_plain", lambda *_: pytest.fail("the columnar decoder gave up"))
            patch.setattr(frame, "_INFLATED_BYTES", 100)
            equal(chunk, view)


@pytest.mark.parametrize("view", VIEWS)
@given(data=st.data())
def test_columns_of_any_keys_and_values_equal_the_reference(view, data):
    pairs = made.commits() | made.group_records() | made.transaction_records() | st.tuples(made.BYTES, made.BYTES)
    cut = pairs.flatmap(lambda pair: st.tuples(*(_cut(each) for each in pair)))
    chunk = made.chunk_of(data.draw(st.lists(made.batches(cut), min_size=1, max_size=3)))
    equal(chunk, view)


@pytest.mark.parametrize("view", VIEWS)
@given(data=st.data())
def test_some_columns_equal_the_same_ones_of_the_reference(view, data):
    pairs = made.commits() | made.group_records() | made.transaction_records()
    cut = pairs | pairs.flatmap(lambda pair: st.tuples(*(_cut(each) for each in pair)))
    chunk = made.chunk_of(data.draw(st.lists(made.batches(cut, made.provenances()), min_size=1, max_size=3)))
    names = data.draw(st.sets(st.sampled_from(VIEWS[view].names), min_size=1, max_size=4))
    found = made.rows(columnar.decode_columns(chunk, view, names))
    assert found == [
        {name: row[name] for name in row if name in names} for row in made.rows([decode_plain(chunk, view)])
    ]


def _cut(whole: bytes | None) -> st.SearchStrategy[bytes | None]:
    """Some of the bytes, or others."""
    if not whole:
        return st.just(whole)
    changed = st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)).map(
        lambda at: whole[: at[0]] + bytes([at[1]]) + whole[at[0] + 1 :]
    )
    return st.just(whole) | st.integers(0, len(whole)).map(lambda n: whole[:n]) | changed


def test_columns_of_thousands_of_records_equal_the_reference(only_columns):
    batches, offset = [], 0
    for n in range(600):
        count = 1 + n % 7 if n != 300 else 5000
        records = [(made.commit_key(f"g{n}", "t" * (n % 90), i), made.commit_value(n * i), ()) for i in range(count)]
        batches.append(made.batch_of(records, base_offset=offset))
        offset += count
    for view in ("raw", "offsets"):
        equal(made.chunk_of(batches), view)


@pytest.mark.parametrize("counts", [(0, 2, 1), (1, 1, 1), (2, 0), (1, 0, 2, 1), (0,), (0, 0, 3)])
def test_columns_of_as_many_batches_as_records_equal_the_reference(only_columns, counts):
    by = (("member", b"m"), ("client", b"c"))
    batches, offset = [], 0
    for number, count in enumerate(counts):
        records = [
            (made.commit_key(f"g{number}"), made.commit_value(n), by[:number] if not n else ()) for n in range(count)
        ]
        batches.append(made.batch_of(records, base_offset=offset, leader_epoch=number))
        offset += max(count, 1)
    for view in ("raw", "offsets"):
        equal(made.chunk_of(batches), view)


def test_headers_of_a_commits_first_record_are_on_all_rows_of_its_batch(only_columns):
    by = (("member", b"m-1"), ("instance", b"i-1"), ("generation", b"\0\0\0\x07"), ("client", b"c-1"))
    records = [(made.commit_key(partition=p), made.commit_value(p), by if p == 0 else ()) for p in range(3)]
    others = [(made.commit_key(partition=9), made.commit_value(9), ())]
    chunk = made.chunk_of([made.batch_of(records), made.batch_of(others, base_offset=3)])
    found = made.rows(columnar.decode_columns(chunk, "offsets"))
    who = [(row["member_id"], row["instance_id"], row["generation"], row["client_id"]) for row in found]
    assert who == [("m-1", "i-1", 7, "c-1")] * 3 + [(None,) * 4]


@pytest.mark.parametrize("where", ["name", "group", "metadata"])
def test_text_that_is_not_utf8_is_shown_and_never_fails_a_read(where):
    bad = b"\xff\xfe"
    records = {
        "name": [(b"k", b"v", [(bad.decode("utf-8", "surrogateescape"), b"x")])],
        "group": [(b"\0\x01\0\x02" + bad + b"\0\x01t\0\0\0\0", made.commit_value(1), ())],
        "metadata": [(made.commit_key(), made.commit_value(1, 3, metadata="xy").replace(b"xy", bad), ())],
    }[where]
    for view in ("raw", "offsets"):
        equal(made.chunk_of([made.batch_of(records)]), view)
