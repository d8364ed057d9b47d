"""Keys read without their records: the same as from whole records, and an error where these reach over their end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.record import decode_keys, decode_records, encode_record, varint

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


def found(data: bytes, count: int) -> Any:
    return list(decode_keys(data, count, 1000))


@given(rows=ROWS)
def test_keys_are_those_of_whole_records(rows: list[Any]) -> None:
    data = b"".join(encode_record(*row) for row in rows)
    whole = [(each.offset, each.key, each.value is None) for each in decode_records(data, len(rows), 1000, 0)]
    assert found(data, len(rows)) == whole


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


def test_smallest_record_is_read() -> None:
    assert found(encode_record(5, 0, None, None), 1) == [(1005, None, True)]
    assert found(record(HEAD, varint(3), b"key", b"\x01\0"), 1) == [(1000, b"key", True)]
