"""Reads the keys of a batch's records and passes over the rest: most batches tell the cleaner all by their keys."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.record import read_varint


def record_keys(data: bytes, count: int, base_offset: int) -> Iterator[tuple[int, bytes | None, bool]]:
    """(offset, key, whether the value is null) of each record of an uncompressed record section.

    Errors: ValueError: the records, or a key, reach over their end. Values and headers are not looked at.
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
            size = data[pos]
            if size < 0x80:
                size, pos = (size >> 1) ^ -(size & 1), pos + 1
            else:
                size, pos = read_varint(data, pos)
            key = None
            if size >= 0:
                key = data[pos : pos + size]
                pos += size
            elif size != -1:
                raise ValueError(f"negative length {size}")
            if pos + 2 > end:  # the sizes of the value and of the headers
                raise ValueError("a field is longer than its record")
            yield offset, key, data[pos] == 1
            pos = end
    except IndexError:
        raise ValueError("the records end too early") from None
    if pos != total:
        raise ValueError("bytes are left after the last record")
