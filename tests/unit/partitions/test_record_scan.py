"""The quick look at records agrees with plain decoding, on whole sections and on damaged ones."""

from __future__ import annotations

import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st

from broker.partitions.record_scan import scan_records
from protocol.errors import ErrorCode, KafkaError
from protocol.record import decode_records, encode_record, varint

sizes = st.one_of(st.integers(0, 5), st.sampled_from([62, 63, 64, 65, 127, 128, 8191, 8192]))
content = st.one_of(st.none(), sizes.map(bytes), st.binary(max_size=6))
headers = st.lists(st.tuples(st.text(max_size=3), content), max_size=2).map(tuple)
times = st.one_of(st.integers(-3, 3), st.sampled_from([-65, -64, 63, 64, 8191, 8192, -8193, 10**6, -(10**12), 10**15]))
records = st.tuples(times, content, content, headers)


@st.composite
def sections(draw: st.DrawFn) -> tuple[bytes, int]:
    """Runs of like records among single ones, as producers make them."""
    rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]] = []
    for _ in range(draw(st.integers(1, 4))):
        time, key, value, heads = draw(records)
        repeat = draw(st.sampled_from([1, 1, 2, 5, 9, 70, 150]))
        jitter = draw(st.sampled_from([0, 0, 1, 60]))
        for i in range(repeat):
            rows.append((time + (i * 7 % (jitter + 1)), key, value, heads))
    return b"".join(encode_record(i, *row) for i, row in enumerate(rows)), len(rows)


def plainly(data: bytes, count: int) -> tuple[int, int, list[int]] | None:
    """What decoding record by record says, None where it refuses."""
    try:
        found = list(decode_records(data, count, 0, 0))
    except ValueError:
        return None
    if [record.offset for record in found] != list(range(count)):
        return None
    deltas = [record.timestamp for record in found]
    return min(deltas), max(deltas), [record.offset for record in found if record.key is None]


def quickly(data: bytes | memoryview, count: int) -> tuple[int, int, list[int]] | None:
    try:
        scan = scan_records(data, count, keys_wanted=True)
    except KafkaError as error:
        if error.code != ErrorCode.INVALID_RECORD:
            raise
        return None
    return scan.min_timestamp_delta, scan.max_timestamp_delta, scan.without_key


@given(sections())
@budget(40)
def test_scan_of_whole_sections_agrees_with_decoding(section: tuple[bytes, int]) -> None:
    data, count = section
    assert quickly(memoryview(data), count) == plainly(data, count) is not None


@given(sections(), st.data())
@budget(80)
def test_scan_of_damaged_sections_agrees_with_decoding(section: tuple[bytes, int], data: st.DataObject) -> None:
    whole, count = section
    damaged = bytearray(whole)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(whole) - 1)) :]
    count += data.draw(st.sampled_from([0, 0, 0, 1, -1]))
    if count > 0:
        assert quickly(bytes(damaged), count) == plainly(bytes(damaged), count)


def test_each_timestamp_lists_every_delta() -> None:
    deltas = [0, -3, 70, 10**6, 5]
    data = b"".join(encode_record(i, delta, None, b"v") for i, delta in enumerate(deltas))
    seen: list[int] = []
    assert scan_records(data, len(deltas), each_timestamp=seen)[:2] == (-3, 10**6)
    assert seen == deltas


def test_long_run_is_proven_across_both_delta_widths() -> None:
    data = b"".join(encode_record(i, i % 50, b"k", b"v" * 10) for i in range(9000))
    assert scan_records(data, 9000) == (0, 49, [])
    for at in (4, 70, 5000, 8191, 8192, 8999):
        wrong = b"".join(encode_record(i if i != at else i + 1, 0, b"k", b"v" * 10) for i in range(9000))
        with pytest.raises(KafkaError):
            scan_records(wrong, 9000)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0\0\0\1\1",  # no header count
        b"\0\0\0\3\1\0",  # key of -2 bytes
        b"\0\0\0\1\3\0",  # value of -2 bytes
        b"\0\0\0\1\1\1",  # -1 headers
        b"\0\0\0\1\1\2\1",  # a header without a name
        b"\0\0\0\1\1\2\0\3",  # a header value of -2 bytes
        b"\0\0\0\x7e\1\0",  # a key that reaches over the end
        b"\0\0\0\1\1\0\0",  # a byte too many
        b"\0" + b"\x80" * 11 + b"\0\1\1\0",  # an endless varint
    ],
)
def test_record_that_is_not_whole_is_refused(body: bytes) -> None:
    data = varint(len(body)) + body
    assert quickly(data, 1) is None


def test_record_of_negative_length_is_refused() -> None:
    assert quickly(varint(-1), 1) is None
    assert quickly(b"\xff\xff\xff\xff\x0f", 1) is None
    assert quickly(b"", 1) is None
