"""Scans the records of a batch: validates them, and finds their timestamps and the records without a key.

Every record is checked, as in Kafka: its fields fill its length, offset deltas count 0, 1, 2 …, their number is the
declared one. Most batches have runs of records that differ only in timestamp delta, offset delta and content. Such a
run is checked column by column (a strided slice is one C call), which costs a tenth of parsing it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.record import read_varint

_RUN_MIN: Final = 4  # a shorter run is parsed as fast
_RUN_RETRY: Final = 16  # records to parse after a failed run before the next is tried

_ONE_BYTE_DELTAS: Final = bytes(range(0, 128, 2))  # zigzag of 0..63
_BAND_ENDS: Final = (64, 8192)  # from these offset deltas on the varint is one byte longer


# positions of the body, after the record and after the time; the time's varint; position of the key and its varint;
# positions of the value's size and of its content; the first byte of the headers
_Fields = tuple[int, int, int, int, int, int, int, int, int]


class Scan(NamedTuple):
    """The result of a scan. Deltas are against the batch's base timestamp, in ms."""

    min_timestamp_delta: int
    max_timestamp_delta: int
    without_key: list[int]  # indices, if keys_wanted was given


_new: Final = tuple.__new__  # a NamedTuple's own is a function in Python, compiled or not


def scan_records(
    data: bytes | memoryview, count: int, *, keys_wanted: bool = False, each_timestamp: list[int] | None = None
) -> Scan:
    """Validate an uncompressed record section; each_timestamp, if given, collects every timestamp delta.

    Errors:  INVALID_RECORD: a field exceeds its record, a delta is out of order, there are too few or too many records.
    """
    if count > 1 and type(data) is not bytes:
        data = bytes(data)  # indexing bytes takes half the time of indexing a view
    try:
        if count == 1 and each_timestamp is None:
            return _scan_one(data, keys_wanted)
        return _scan(data, count, keys_wanted, each_timestamp)
    except IndexError:
        raise KafkaError(ErrorCode.INVALID_RECORD, "The records of the batch end too early") from None
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"The records of the batch cannot be read: {error}") from None


def _scan_one(data: bytes | memoryview, keys_wanted: bool) -> Scan:
    end = len(data)
    _, stop, _, zigzag, _, key, _, _, _ = _record(data, 0, end, 0)
    if stop != end:
        raise ValueError("bytes are left after the last record")
    delta = (zigzag >> 1) ^ -(zigzag & 1)
    return _new(Scan, (delta, delta, [0] if keys_wanted and key == 1 else []))


def _scan(data: bytes | memoryview, count: int, keys_wanted: bool, each_timestamp: list[int] | None) -> Scan:
    end = len(data)
    without_key: list[int] = []
    low = high = last_zigzag = 0
    pos = index = 0
    next_run = 0 if each_timestamp is None and type(data) is bytes else count
    while index < count:
        start = pos
        body, stop, after_time, zigzag, key_at, key, value_at, content_at, headers = _record(data, pos, end, index)
        pos = stop
        if zigzag != last_zigzag or not index:
            last_zigzag = zigzag
            delta = (zigzag >> 1) ^ -(zigzag & 1)
            low = delta if not index or delta < low else low
            high = delta if not index or delta > high else high
        if each_timestamp is not None:
            each_timestamp.append((zigzag >> 1) ^ -(zigzag & 1))
        if keys_wanted and key == 1:
            without_key.append(index)
        index += 1
        if index >= next_run and not headers and count - index >= _RUN_MIN and isinstance(data, bytes):
            stride = stop - start
            after_key_size = value_at - max(0, _key_bytes(data, key_at))
            fixed = (
                *range(body - start),
                *range(key_at - start, after_key_size - start),
                *range(value_at - start, content_at - start),
                stride - 1,
            )
            times = range(body + 1 - start, after_time - start)
            run = _run(data, start, index - 1, min(count - index, (end - stop) // stride), stride, fixed, times)
            if run is None:
                next_run = index + _RUN_RETRY
            else:
                rows, run_low, run_high = run
                low, high = min(low, run_low), max(high, run_high)
                if keys_wanted and data[key_at] == 1:
                    without_key.extend(range(index, index + rows))
                index += rows
                pos += rows * stride
    if pos != end:
        raise ValueError("bytes are left after the last record")
    return _new(Scan, (low, high, without_key))


def _record(data: bytes | memoryview, pos: int, end: int, index: int) -> _Fields:
    """Check one record. Varints of two bytes are read in place where they are usual: a call takes twice as long."""
    start = pos
    zigzag = data[pos]
    pos += 1
    if zigzag >= 0x80:
        byte = data[pos]
        pos += 1
        if byte < 0x80:
            zigzag += (byte << 7) - 0x80
        else:
            zigzag, pos = _zigzag(data, start)
    body = pos
    stop = pos + (zigzag >> 1)
    if zigzag & 1 or stop > end:
        raise ValueError(f"record {index} is longer than what is left")
    time = data[pos + 1]  # the attributes before it are unused
    pos += 2
    if time >= 0x80:
        time, pos = _zigzag(data, pos - 1, 10)
    after_time = pos
    zigzag = data[pos]
    pos += 1
    if zigzag >= 0x80:
        zigzag += (data[pos] << 7) - 0x80
        pos += 1
    if zigzag != 2 * index or index >= _BAND_ENDS[1]:  # not these bytes, or more of them
        pos = _offset_delta(data, after_time, index)
    key_at = pos
    key = data[pos]
    pos += 1
    if key >= 0x80:
        key, pos = _zigzag(data, pos - 1)
    value_at = pos = pos + (key >> 1)  # a null key (1) has no bytes
    value = data[pos]
    pos += 1
    if value >= 0x80:
        byte = data[pos]
        pos += 1
        if byte < 0x80:
            value += (byte << 7) - 0x80
        else:
            value, pos = _zigzag(data, pos - 2)
    content_at = pos
    pos += value >> 1
    if (key & 1 and key != 1) or (value & 1 and value != 1):
        raise ValueError(f"record {index} has a key or a value of negative length")
    if pos >= stop:
        raise ValueError(f"the fields of record {index} reach over its end")
    headers = data[pos]
    pos = _skip_headers(data, pos, stop) if headers else pos + 1
    if pos != stop:
        raise ValueError(f"the fields of record {index} do not fill it")
    return body, stop, after_time, time, key_at, key, value_at, content_at, headers


def _offset_delta(data: bytes | memoryview, pos: int, index: int) -> int:
    """The position after the offset delta of a record, of any length."""
    zigzag, pos = _zigzag(data, pos)
    if zigzag != 2 * index:
        raise ValueError(f"record {index} has another offset delta")
    return pos


def _key_bytes(data: bytes | memoryview, pos: int) -> int:
    return read_varint(data, pos)[0]


def _zigzag(data: bytes | memoryview, pos: int, max_bytes: int = 5) -> tuple[int, int]:
    """A varint with its sign in the lowest bit, and the position after it."""
    value, pos = read_varint(data, pos, max_bytes)
    return (value << 1) ^ (value >> 63), pos


def _run(
    data: bytes,
    start: int,
    first: int,
    rows: int,
    stride: int,
    fixed: tuple[int, ...],
    times: range,
) -> tuple[int, int, int] | None:
    """How many records after record `first` (at start) have its layout, and their least and greatest timestamp delta.

    None: they have not, or it cannot be checked column by column.
    """
    for band_end in _BAND_ENDS:
        if first < band_end:
            rows = min(rows, band_end - 1 - first)
            break
    else:
        return None
    if rows < _RUN_MIN:
        return None
    at = start + stride
    stop = at + rows * stride
    for column in fixed:
        if data[at + column : stop : stride] != data[start + column : start + column + 1] * rows:
            return None
    column = times[-1] + 1
    if band_end == 64:
        if data[at + column : stop : stride] != _ONE_BYTE_DELTAS[first + 1 : first + 1 + rows]:
            return None
    else:
        ones, twos = _two_byte_deltas()
        if data[at + column : stop : stride] != ones[first + 1 : first + 1 + rows]:
            return None
        if data[at + column + 1 : stop : stride] != twos[first + 1 : first + 1 + rows]:
            return None
    values = _times(data, start, at, stop, stride, times, rows)
    return None if values is None else (rows, min(values), max(values))


def _times(data: bytes, start: int, at: int, stop: int, stride: int, times: range, rows: int) -> Iterable[int] | None:
    """The timestamp deltas of a run; None: they cannot be read column by column."""
    if len(times) == 1:
        deltas = set(data[at + times[0] : stop : stride])
        if max(deltas) >= 0x80:
            return None
        return [(byte >> 1) ^ -(byte & 1) for byte in deltas]
    if len(times) == 2:
        pairs = set(zip(data[at + times[0] : stop : stride], data[at + times[1] : stop : stride], strict=True))
        if min(pairs)[0] < 0x80 or max(high for _, high in pairs) >= 0x80:
            return None
        return [(zigzag >> 1) ^ -(zigzag & 1) for zigzag in ((byte & 0x7F) | high << 7 for byte, high in pairs)]
    for column in times:
        if data[at + column : stop : stride] != data[start + column : start + column + 1] * rows:
            return None
    return [read_varint(data, start + times[0], 10)[0]]


_two_bytes: list[bytes] = []


def _two_byte_deltas() -> tuple[bytes, bytes]:
    """First and second varint byte of the zigzag of 0..8191 (used from 64 on), made when first needed."""
    if not _two_bytes:
        _two_bytes.append(bytes(2 * delta & 0x7F | 0x80 for delta in range(8192)))
        _two_bytes.append(bytes(2 * delta >> 7 for delta in range(8192)))
    return _two_bytes[0], _two_bytes[1]


def _skip_headers(data: bytes | memoryview, pos: int, stop: int) -> int:
    count, pos = read_varint(data, pos)
    if count < 0 or count > stop - pos:
        raise ValueError(f"{count} headers in {stop - pos} bytes")
    for _ in range(count):
        size, pos = read_varint(data, pos)
        if size < 0:
            raise ValueError("a header has no name")
        pos += size
        size, pos = read_varint(data, pos)
        if size > 0:
            pos += size
        elif size < -1:
            raise ValueError(f"a header's value has {size} bytes")
        if pos > stop:
            raise ValueError("a header reaches over the end of its record")
    return pos
