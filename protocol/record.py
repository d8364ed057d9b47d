"""One record of a record batch: its varint coding, both ways.

Layout: length varint | attributes i8 0 | timestamp delta varlong | offset delta varint | key length varint
(-1 null), key | value length, value | header count, {name length, name, value length, value}; all zigzag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError

Buffer = bytes | bytearray | memoryview
Headers = Sequence[tuple[str, bytes | None]]
# key, value[, headers[, timestamp_ms]]
RecordTuple = tuple[bytes | None, bytes | None] | tuple[Any, ...]


class Record(NamedTuple):
    """One record, with what its batch says about it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


_new: Final = tuple.__new__
_varints: dict[int, bytes] = {}


def varint(value: int) -> bytes:
    """Zigzag varint; small ones come from a table that fills itself (record lengths repeat)."""
    known = _varints.get(value)
    if known is not None:
        return known
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    data = bytes(out)
    if -1 <= value < 1 << 14:
        _varints[value] = data
    return data


def read_varint(buffer: Buffer, pos: int, max_bytes: int = 5) -> tuple[int, int]:
    """Zigzag varint at pos and the position after it; raises ValueError when longer than max_bytes."""
    first, second = buffer[pos], buffer[pos + 1] if buffer[pos] >= 0x80 else 0x80
    if first >= 0x80 > second:  # two bytes, as most that are longer than one
        result = first & 0x7F | second << 7
        return (result >> 1) ^ -(result & 1), pos + 2
    result = shift = 0
    for at in range(pos, pos + max_bytes):
        byte = buffer[at]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at + 1
        shift += 7
    raise ValueError(f"a varint at {pos} is longer than {max_bytes} bytes")


def encode_record(
    offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, headers: Headers = ()
) -> bytes:
    """One record with its length in front."""
    parts = [b"\0", varint(timestamp_delta), varint(offset_delta)]
    if key is None:
        parts.append(b"\x01")
    else:
        parts += (varint(len(key)), key)
    if value is None:
        parts.append(b"\x01")
    else:
        parts += (varint(len(value)), value)
    parts.append(encode_headers(headers) if headers else b"\0")
    body = b"".join(parts)
    return varint(len(body)) + body


def encode_headers(headers: Headers) -> bytes:
    """The last part of a record: the count of headers, and each name and value."""
    parts = [varint(len(headers))]
    for name, content in headers:
        raw = name.encode("utf-8", "surrogateescape")
        parts += (varint(len(raw)), raw)
        if content is None:
            parts.append(b"\x01")
        else:
            parts += (varint(len(content)), content)
    return b"".join(parts)


def encode_records(records: Sequence[RecordTuple], base_timestamp: int, timestamp_ms: int) -> tuple[bytes, int]:
    """The record section of a batch of new records, and its largest timestamp."""
    get = _varints.get
    parts: list[bytes] = []
    add = parts.append
    max_timestamp = base_timestamp
    plain = base_timestamp == timestamp_ms
    for delta, record in enumerate(records):
        if plain and len(record) == 2:  # what a coordinator writes: no headers, the batch's time
            key, value = record
            key_length = -1 if key is None else len(key)
            value_length = -1 if value is None else len(value)
            body = b"".join(
                (
                    b"\0\0",
                    get(delta) or varint(delta),
                    get(key_length) or varint(key_length),
                    key or b"",
                    get(value_length) or varint(value_length),
                    value or b"",
                    b"\0",
                )
            )
            size = len(body)
            add(get(size) or varint(size))
            add(body)
            continue
        key, value, headers, timestamp = (*record, (), None)[:4] if len(record) != 3 else (*record, None)
        if timestamp is None:
            timestamp = timestamp_ms
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        add(encode_record(delta, timestamp - base_timestamp, key, value, headers or ()))
    return b"".join(parts), max_timestamp


def check_record_sizes(section: bytes | memoryview, count: int, most_bytes: int) -> None:
    """Refuse a record section in which a record is larger, without its length field, than a topic takes.

    Where a length cannot be read it looks no further: whoever reads the records says so.

    Errors:  KafkaError(INVALID_RECORD).
    Source:  max.decompressed.message.bytes of Kafka 4.4.
    """
    if len(section) <= most_bytes:
        return
    pos = 0
    for _ in range(count):
        try:
            size, pos = read_varint(section, pos)
        except (IndexError, ValueError):
            return
        if size > most_bytes:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"A record has {size} bytes when decompressed, max.decompressed.message.bytes is {most_bytes}",
            )
        pos += max(size, 0)


def decode_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None = None
) -> Iterator[Record]:
    """The records of an uncompressed record section; raises ValueError where it is not whole.

    append_time replaces every record's own time (LogAppendTime batches).
    """
    # Lengths below 64 and most deltas are varints of one byte: those are read in place: 1.6x on small records.
    pos = 0
    total = len(data)
    try:
        for _ in range(count):
            byte = data[pos]
            if byte < 0x80:
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                length, pos = read_varint(data, pos)
            end = pos + length
            if length < 6 or end > total:
                raise ValueError("a record is longer than its batch")
            byte = data[pos + 1]
            if byte < 0x80:
                timestamp, pos = base_timestamp + ((byte >> 1) ^ -(byte & 1)), pos + 2
            else:
                timestamp_delta, pos = read_varint(data, pos + 1, 10)
                timestamp = base_timestamp + timestamp_delta
            byte = data[pos]
            if byte < 0x80:
                offset, pos = base_offset + ((byte >> 1) ^ -(byte & 1)), pos + 1
            else:
                offset_delta, pos = read_varint(data, pos)
                offset = base_offset + offset_delta
            byte = data[pos]
            if byte < 0x80 and not byte & 1:
                start = pos + 1
                pos = start + (byte >> 1)
                key: bytes | None = data[start:pos]
            else:
                key, pos = _read_bytes(data, pos, end)
            byte = data[pos]
            if byte < 0x80 and not byte & 1:
                start = pos + 1
                pos = start + (byte >> 1)
                value: bytes | None = data[start:pos]
            else:
                value, pos = _read_bytes(data, pos, end)
            headers: tuple[tuple[str, bytes | None], ...] = ()
            if data[pos]:
                headers, pos = _read_headers(data, pos, end)
            else:
                pos += 1
            if pos != end:
                raise ValueError("a record's fields do not fill its length")
            yield _new(Record, (offset, timestamp if append_time is None else append_time, key, value, headers))
    except IndexError:
        raise ValueError("the records end too early") from None
    if pos != total:
        raise ValueError("bytes are left after the last record")


def decode_keys(data: bytes, count: int, base_offset: int) -> Iterator[tuple[int, bytes | None, bool]]:
    """(offset, key, whether the value is null) of each record of a record section; values and headers are passed over.

    Raises ValueError where the records, or a key, reach over their end.
    """
    pos, total = 0, len(data)
    try:
        for _ in range(count):
            byte = data[pos]
            if byte < 0x80:
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                length, pos = read_varint(data, pos)
            end = pos + length
            if length < 6 or end > total:
                raise ValueError("a record is longer than its batch")
            pos += 2  # the attributes, and a time of one byte
            if data[pos - 1] >= 0x80:
                _, pos = read_varint(data, pos - 1, 10)
            byte = data[pos]
            if byte < 0x80:
                offset, pos = base_offset + ((byte >> 1) ^ -(byte & 1)), pos + 1
            else:
                delta, pos = read_varint(data, pos)
                offset = base_offset + delta
            byte = data[pos]
            if byte < 0x80 and not byte & 1:
                start = pos + 1
                pos = start + (byte >> 1)
                key: bytes | None = data[start:pos]
            else:
                key, pos = _read_bytes(data, pos, end)
            if pos + 2 > end:  # the sizes of the value and of the headers
                raise ValueError("a field is longer than its record")
            yield offset, key, data[pos] == 1
            pos = end
    except IndexError:
        raise ValueError("the records end too early") from None
    if pos != total:
        raise ValueError("bytes are left after the last record")


def decode_values(data: bytes, count: int) -> list[bytes | None]:
    """The values of a record section, in half the time of decode_records; raises ValueError wherever that does."""
    # Varints of one byte and of two are read in place: lengths of records and values, and deltas, are mostly that.
    values: list[bytes | None] = []
    add = values.append
    pos, total = 0, len(data)
    try:
        for _ in range(count):
            byte, second = data[pos], data[pos + 1]
            if byte < 0x80:
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 2
            elif second < 0x80:
                byte = byte & 0x7F | second << 7
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 3
            else:
                length, pos = read_varint(data, pos)
                pos += 1
            end = pos - 1 + length  # the attributes are read; no field may reach over it: see below
            pos += 1
            if data[pos - 1] >= 0x80:  # a time
                _, pos = read_varint(data, pos - 1, 10)
            pos += 1
            if data[pos - 1] >= 0x80:  # an offset
                pos += 1
                if data[pos - 1] >= 0x80:
                    _, pos = read_varint(data, pos - 2)
            byte = data[pos]
            if byte < 0x80 and not byte & 1:
                pos += 1 + (byte >> 1)
            else:
                _, pos = _read_bytes(data, pos, end)
            byte, second = data[pos], data[pos + 1]
            if byte >= 0x80 > second and not byte & 1:
                start = pos + 2
                pos = start + ((byte & 0x7F | second << 7) >> 1)
                value: bytes | None = data[start:pos]
            else:
                value, pos = _read_bytes(data, pos, end)
            if data[pos]:
                _, pos = _read_headers(data, pos, end)
            else:
                pos += 1
            if pos != end:
                raise ValueError("a record's fields do not fill its length")
            add(value)
    except IndexError:
        raise ValueError("the records end too early") from None
    if pos != total:
        raise ValueError("bytes are left after the last record")
    return values


def _read_bytes(data: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    size = data[pos]
    if size < 0x80:
        size, pos = (size >> 1) ^ -(size & 1), pos + 1
    else:
        size, pos = read_varint(data, pos)
    if size < 0:
        if size != -1:
            raise ValueError(f"negative length {size}")
        return None, pos
    after = pos + size
    if after > end:
        raise ValueError("a field is longer than its record")
    return data[pos:after], after


def _read_headers(data: bytes, pos: int, end: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, pos = read_varint(data, pos)
    if count < 0 or count > end - pos:
        raise ValueError(f"{count} headers in {end - pos} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, pos = _read_bytes(data, pos, end)
        if name is None:
            raise ValueError("a header without a name")
        value, pos = _read_bytes(data, pos, end)
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), pos
