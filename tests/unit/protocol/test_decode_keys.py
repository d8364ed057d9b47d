"""Keys, and values, read without their records: those of whole records, and an error where these cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocol.record import decode_keys, decode_records, decode_values, encode_record, varint

WORDS = st.one_of(st.none(), st.binary(max_size=3), st.binary(min_size=60, max_size=200))
ROWS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 70), st.integers(0, 2**31 - 1)),
        st.one_of(st.integers(-70, 70), st.integers(-(2**40), 2**40)),
        WORDS,
        WORDS,
        st.sampled_from([(), (("a", b"b"),), (("a", None), ("longer", b"x" * 90))]),
    ),
    max_size=5,
)


# one byte, and what makes a varint longer, ends it, or makes it negative
BYTES = st.one_of(st.integers(0, 255), st.sampled_from((0, 1, 3, 0x7F, 0x80, 0x81, 0xFF)))


def found(data: bytes, count: int) -> Any:
    return list(decode_keys(data, count, 1000))


@given(rows=ROWS)
def test_keys_are_those_of_whole_records(rows: list[Any]) -> None:
    data = b"".join(encode_record(*row) for row in rows)
    whole = [(each.offset, each.key, each.value is None) for each in decode_records(data, len(rows), 1000, 0)]
    assert found(data, len(rows)) == whole


def outcome(read: Callable[[bytes, int], list[Any]], data: bytes, count: int) -> list[Any] | None:
    try:
        return read(data, count)
    except ValueError:
        return None


@given(rows=ROWS, cut=st.integers(0, 3), more=st.integers(-1, 1), spots=st.lists(st.tuples(st.floats(0, 1), BYTES)))
@example(rows=[(0, 0, b"k", b"v", ())], cut=0, more=0, spots=[(1.0, 1)])
def test_values_are_those_of_whole_records_or_none_where_one_cannot_be_read(
    rows: list[Any], cut: int, more: int, spots: list[tuple[float, int]]
) -> None:
    data = bytearray(b"".join(encode_record(*row) for row in rows))
    del data[len(data) - cut :]
    for place, byte in spots[: len(data)]:
        data[min(int(place * len(data)), len(data) - 1)] = byte
    for count in {len(rows), max(0, len(rows) + more)}:
        expected = outcome(lambda *given: [each.value for each in decode_records(*given, 0, 0)], bytes(data), count)
        assert outcome(decode_values, bytes(data), count) == expected


def record(*fields: bytes, length: int | None = None) -> bytes:
    body = b"".join(fields)
    return varint(len(body) if length is None else length) + body


ONE = encode_record(0, 0, b"key", b"value")
HEAD = b"\0\0\0"  # attributes, time, offset


@pytest.mark.parametrize(
    ("data", "count", "why"),
    [
        (ONE[:-1], 1, "longer than its batch"),
        (ONE, 2, "end too early"),
        (ONE + ONE, 1, "bytes are left"),
        (ONE[:3], 1, "longer than its batch"),
        (record(HEAD, b"\x01\x01"), 1, "longer than its batch"),  # no record has five bytes
        (varint(-7) + ONE, 1, "longer than its batch"),
        (record(HEAD, b"\x03\x01\0"), 1, "negative length -2"),
        (record(HEAD, varint(3), b"ke") + ONE, 2, "longer than its record"),
        (record(HEAD, varint(3), b"key") + ONE, 2, "longer than its record"),
        (record(HEAD, varint(3), b"key", b"\x01") + ONE, 2, "longer than its record"),
        (b"\xff" * 9, 1, "longer than 5 bytes"),
    ],
)
def test_records_that_reach_over_their_end_are_an_error(data: bytes, count: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        found(data, count)
    with pytest.raises(ValueError):  # noqa: PT011  # in words of another place
        decode_values(data, count)


@pytest.mark.parametrize(
    ("data", "count", "why"),
    [
        (record(HEAD, b"\x01\x01\0\0"), 1, "do not fill"),
        (record(HEAD, b"\x01\x01\0", length=9) + ONE, 2, "do not fill"),
        (record(HEAD, b"\x01", varint(100), b"x" * 99) + ONE, 2, "longer than its record"),
        (record(b"\0\0", b"\x80" * 5 + b"\0", b"\x01\x01\0"), 1, "longer than 5 bytes"),
        (record(b"\0", b"\x80" * 10 + b"\0", b"\0\x01\x01\0"), 1, "longer than 10 bytes"),
    ],
)
def test_values_of_what_are_no_records_are_an_error_as_these_are(data: bytes, count: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        list(decode_records(data, count, 0, 0))
    with pytest.raises(ValueError):  # noqa: PT011  # in words of another place
        decode_values(data, count)


def test_smallest_record_is_read() -> None:
    assert found(encode_record(5, 0, None, None), 1) == [(1005, None, True)]
    assert found(record(HEAD, varint(3), b"key", b"\x01\0"), 1) == [(1000, b"key", True)]
