"""Segments divided at their indexes and batches: every row once and in order, whatever the index says."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from struct import Struct

import made_batches as made
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from pipeline.decode.batches import CorruptSegmentError, batch_positions
from pipeline.source.read_options import ReadOptions, spark_options
from pipeline.source.segment_index import divided
from pipeline.source.segment_ranges import read_range, whole_segments

ENTRY = Struct(">ii")
LOG = "orders-0"
PIECE = 1_000


def batches(count: int, base: int, seed: int = 0) -> list[tuple[int, int, bytes]]:
    """(offset of the first record, of the last, bytes) of each; offsets have gaps, as a cleaned log has."""
    dice, found, offset = random.Random(seed), [], base
    for _ in range(count):
        records = dice.randint(1, 4)
        last = offset + records - 1 + dice.choice([0, 0, 3])
        rows = [(b"k", b"v" * dice.randint(0, 90), ()) for _ in range(records)]
        found.append((offset, last, made.batch_of(rows, base_offset=offset, last_delta=last - offset)))
        offset = last + 1 + dice.choice([0, 0, 5])
    return found


def index_of(found, base: int, every: int) -> bytes:
    """As Kafka writes it: for batches that were appended together, the last offset of all and where the first is."""
    entries, at, together = b"", 0, 0
    for number, (_, _, data) in enumerate(found):
        if number and number % every == 0:
            together = min(number + number % 3, len(found) - 1)
            entries += ENTRY.pack(found[together][1] - base, at)
        at += len(data)
    return entries


def write(directory, found, index: bytes, base: int = 0, tail: bytes = b"", suffix: str = "") -> None:
    path = made.write_segment(directory, LOG, base, *(data for _, _, data in found), tail)
    path.with_suffix(f".index{suffix}").write_bytes(index)
    if suffix:
        path.rename(f"{path}{suffix}")


def options_of(directory) -> ReadOptions:
    return ReadOptions(spark_options(str(directory), "raw", columns=("log", "offset", "value")))


def whole_and_pieces(directory, piece: int = PIECE, starts=()):
    options = options_of(directory)
    whole = whole_segments(options.segments(), dict(starts))
    return options, whole, divided(options.files, whole, piece)


def rows(options, ranges):
    found = [batch for each in ranges for batch in read_range(options, each)]
    return pa.Table.from_batches(found).to_pylist() if found else []


@pytest.mark.parametrize("base", [0, 7000])
def test_large_segment_is_divided_at_entries_of_its_index(tmp_path, base):
    found = batches(200, base)
    write(tmp_path, found, index_of(found, base, 3) + bytes(80_000), base)  # an active segment's: allocated in advance
    options, whole, pieces = whole_and_pieces(tmp_path)
    assert len(whole) == 1
    assert len(pieces) > 10
    assert all(PIECE <= each.size < 3 * PIECE for each in pieces)
    assert sum(each.size for each in pieces) == whole[0].size
    assert all(each.bounds.end == after.bounds.first for each, after in pairwise(pieces))
    assert rows(options, pieces) == rows(options, whole)


def test_piece_reads_its_part_of_the_file_and_no_more(tmp_path):
    found = batches(200, 0)
    write(tmp_path, found, index_of(found, 0, 3))
    options, _, pieces = whole_and_pieces(tmp_path)
    path = tmp_path / LOG / f"{0:020d}.log"
    middle, content = pieces[5], path.read_bytes()
    expected = rows(options, [middle])
    begin, end = middle.bounds.position, middle.bounds.position + middle.size + 2 * PIECE
    path.write_bytes(bytes(begin) + content[begin:end] + bytes(len(content) - end))
    assert rows(options, [middle]) == expected


def without_index(directory, found, base: int = 0, tail: bytes = b"") -> None:
    write(directory, found, b"", base, tail)
    (directory / LOG / f"{base:020d}.index").unlink()


@pytest.mark.parametrize("tail", [b"", b"\1" * 30, bytes(300), made.batch_of([(b"k", b"v" * 80, ())])[:-1]])
def test_last_segment_without_index_is_divided_at_its_batches(tmp_path, tail):
    without_index(tmp_path, batches(200, 0), tail=tail)
    options, whole, pieces = whole_and_pieces(tmp_path)
    assert len(pieces) > 10
    assert all(PIECE <= each.size < 3 * PIECE for each in pieces)
    assert sum(each.size for each in pieces) == whole[0].size
    assert rows(options, pieces) == rows(options, whole)
    path = tmp_path / LOG / f"{0:020d}.log"
    middle, content = pieces[5], path.read_bytes()
    expected = rows(options, [middle])
    begin, end = middle.bounds.position, middle.bounds.position + middle.size + 2 * PIECE
    path.write_bytes(bytes(begin) + content[begin:end] + bytes(len(content) - end))
    assert rows(options, [middle]) == expected  # read where it lies, and no more


def test_batches_that_are_larger_than_what_is_looked_at_are_passed(tmp_path):
    large = [made.batch_of([(b"k", b"v" * 90_000, ())], base_offset=offset) for offset in range(40)]
    without_index(tmp_path, [(offset, offset, data) for offset, data in enumerate(large)])
    options, whole, pieces = whole_and_pieces(tmp_path, 200_000)
    assert [each.bounds.first for each in pieces] == list(range(0, 38, 3))
    assert rows(options, pieces) == rows(options, whole)


def test_closed_segment_without_index_is_read_whole(tmp_path):
    """There may be thousands of them, and each is a task."""
    found = batches(200, 0)
    without_index(tmp_path, found)
    without_index(tmp_path, batches(3, found[-1][1] + 1), found[-1][1] + 1)
    _, whole, pieces = whole_and_pieces(tmp_path)
    assert pieces == whole


@pytest.mark.parametrize(("at", "wrong"), [(8, b"\xff\xff\xff\xf4"), (16, b"\1")])  # length -12, version 1
def test_damage_ends_the_division_and_is_told(tmp_path, at, wrong):
    found = batches(200, 0)
    bad = found[100][2]
    without_index(tmp_path, [*found[:100], (0, 0, bad[:at] + wrong + bad[at + len(wrong) :]), *found[101:]])
    options, _, pieces = whole_and_pieces(tmp_path)
    assert len(pieces) > 5
    assert pieces[-1].size > 5 * PIECE
    with pytest.raises(CorruptSegmentError, match="not a record batch"):
        rows(options, pieces[-1:])
    options.skip_damaged = True
    assert rows(options, pieces) == rows(options, [replace(each, size=0) for each in pieces])


def test_only_so_many_bytes_are_looked_through(tmp_path):
    without_index(tmp_path, batches(200, 0))
    options, [whole], _ = whole_and_pieces(tmp_path)
    other = replace(whole, log="other-0")
    assert divided(options.files, [whole], PIECE, most_walked=whole.size - 1) == [whole]
    *pieces, last = divided(options.files, [whole, other], PIECE, most_walked=2 * whole.size - 1)
    assert len(pieces) > 10
    assert last == other


def test_batches_are_looked_for_where_the_index_ends_and_no_denser_than_wanted(tmp_path):
    found = batches(200, 0)
    write(tmp_path, found, index_of(found[:100], 0, 3))
    options, [whole], pieces = whole_and_pieces(tmp_path)
    path = tmp_path / LOG / f"{0:020d}.log"
    path.write_bytes(bytes(PIECE) + path.read_bytes()[PIECE:])
    assert divided(options.files, [whole], PIECE) == pieces
    with options.files.open_input_file(str(path)) as file:
        places = [PIECE, *(at for _, at in batch_positions(file, pieces[1].bounds.position, whole.size, PIECE))]
    assert len(places) > 10
    assert all(after - before >= PIECE for before, after in pairwise(places))


def test_file_on_another_store_is_not_looked_through(tmp_path):
    """It would cross the network twice."""
    without_index(tmp_path, batches(200, 0))
    options, whole, pieces = whole_and_pieces(tmp_path)
    assert divided(fs.SubTreeFileSystem("/", options.files), whole, PIECE) == whole != pieces


def test_file_that_is_gone_or_cut_is_divided_as_far_as_it_is_there(tmp_path):
    found = batches(200, 0)
    without_index(tmp_path, found)
    options, whole, _ = whole_and_pieces(tmp_path)
    path = tmp_path / LOG / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[: whole[0].size // 2])
    assert len(divided(options.files, whole, PIECE)) > 5
    path.unlink()
    assert divided(options.files, whole, PIECE) == whole


def test_small_segment_is_read_whole(tmp_path):
    found = batches(200, 0)
    write(tmp_path, found, index_of(found, 0, 3))
    _, whole, pieces = whole_and_pieces(tmp_path, piece=1 << 20)
    assert pieces == whole


def test_segment_that_replaces_others_has_its_own_index(tmp_path):
    found = batches(200, 0)
    write(tmp_path, found, index_of(found, 0, 3), suffix=".swap")
    options, whole, pieces = whole_and_pieces(tmp_path)
    assert len(pieces) > 10
    assert rows(options, pieces) == rows(options, whole)


def test_piece_finds_its_records_in_the_file_that_replaced_its_own(tmp_path):
    found = batches(200, 0)
    write(tmp_path, found, index_of(found, 0, 3))
    options, whole, pieces = whole_and_pieces(tmp_path)
    kept = found[::2]
    made.write_segment(tmp_path, LOG, 0, *(data for _, _, data in kept))  # cleaned, under the same name
    assert rows(options, pieces) == rows(options, whole)
    (tmp_path / LOG / f"{0:020d}.log").rename(tmp_path / LOG / f"{0:020d}.log.swap")
    assert rows(options, pieces) == rows(options, whole)


def test_damage_is_told_by_the_piece_that_has_it(tmp_path):
    found = batches(200, 0)
    bad = bytearray(found[100][2])
    bad[-1] ^= 1
    write(tmp_path, [*found[:100], (0, 0, bytes(bad)), *found[101:]], index_of(found, 0, 3))
    options, _, pieces = whole_and_pieces(tmp_path)
    failed = []
    for each in pieces:
        try:
            rows(options, [each])
        except CorruptSegmentError:
            failed.append(each)
    assert any(each.bounds.first <= found[100][0] < each.bounds.end for each in failed)
    assert len(failed) <= 2  # and the one that would begin at the damaged batch, if it does
    options.skip_damaged = True
    assert rows(options, pieces) == rows(options, [replace(each, size=0) for each in pieces])


garbled = st.one_of(
    st.none(),
    st.binary(max_size=400),
    st.lists(st.tuples(st.integers(0, 1200), st.integers(0, 40_000)).map(lambda each: ENTRY.pack(*each))).map(b"".join),
    st.lists(st.tuples(st.integers(0, 1200), st.integers(0, 40_000)))
    .map(lambda pairs: zip(sorted({each[0] for each in pairs}), sorted({each[1] for each in pairs}), strict=False))
    .map(lambda pairs: b"".join(ENTRY.pack(*each) for each in pairs)),
)


@given(
    seed=st.integers(0, 1000),
    base=st.sampled_from([0, 70]),
    every=st.integers(1, 9),
    index=garbled,
    tail=st.sampled_from([b"", b"\1" * 30, bytes(300)]),
    start=st.sampled_from([0, 100, 350]),
    piece=st.sampled_from([1, 300, PIECE, 5 * PIECE]),
    stale=st.booleans(),
)
def test_pieces_hold_what_the_whole_segment_holds(
    tmp_path_factory, seed, base, every, index, tail, start, piece, stale
):
    """By Kafka's index, by garbage, by one of another file, above a log's start, before an unfinished write."""
    directory = tmp_path_factory.mktemp("logs")
    found = batches(120, base, seed)
    other = batches(120, base, seed + 1) if stale else found
    write(directory, found, index_of(other, base, every) if index is None else index, base, tail)
    options, whole, pieces = whole_and_pieces(directory, piece, [(LOG, start)])
    assert rows(options, pieces) == rows(options, whole)


def test_closed_segment_that_is_cut_short_is_damage_in_pieces_too(tmp_path):
    found = batches(200, 0)
    write(tmp_path, found, index_of(found, 0, 3))
    path = tmp_path / LOG / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-5])
    made.write_segment(tmp_path, LOG, found[-1][1] + 1, made.batch_of([(b"k", b"v", ())]))
    options, whole, pieces = whole_and_pieces(tmp_path)
    assert len(pieces) > 10
    for ranges in (whole[:1], pieces[-2:-1]):
        with pytest.raises(CorruptSegmentError, match="a truncated batch"):
            rows(options, ranges)


@pytest.mark.parametrize("is_known", [True, False])
def test_stream_s_range_within_a_segment_is_divided_inside_its_bounds(tmp_path, is_known):
    found = batches(200, 0)
    write(tmp_path, found, index_of(found, 0, 3))
    options, [whole], _ = whole_and_pieces(tmp_path)
    first, end = found[40][0], found[150][0]
    at = sum(len(data) for _, _, data in found[:40]) if is_known else 0
    bounds = replace(whole.bounds, first=first, end=end, position=at, is_tail=False)
    part = replace(whole, bounds=bounds, size=whole.size - at)
    pieces = divided(options.files, [part], PIECE)
    assert len(pieces) > 5
    assert pieces[0].bounds.position == at
    assert rows(options, pieces) == rows(options, [part])
    assert {row["offset"] for row in rows(options, pieces)} <= set(range(first, end))
    assert all(first <= each.bounds.first < each.bounds.end <= end for each in pieces)


@pytest.mark.parametrize("suffix", ["", ".swap"])
def test_index_that_is_cut_short_is_used_as_far_as_it_goes_and_batches_behind_it(tmp_path, suffix):
    found = batches(200, 0)
    index = index_of(found, 0, 3)
    write(tmp_path, found, index[: len(index) // 2 + 3], suffix=suffix)
    options, whole, pieces = whole_and_pieces(tmp_path)
    assert len(pieces) > 10
    assert all(PIECE <= each.size < 3 * PIECE for each in pieces)
    assert rows(options, pieces) == rows(options, whole)
