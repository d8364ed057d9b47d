"""Finds every field of every record of a chunk with numpy, as columns of positions and numbers.

The batches of a chunk are walked side by side: one step handles the k-th record of all of them. Anything unexpected
raises IrregularError, and the reference decoder decides what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipeline.decode.batches import Chunk, Ints, read_at
from protocol.record_batch import CONTROL, HEADER_BYTES, MAX_INFLATED_BYTES, BatchHeader, records_of

Mask = NDArray[np.bool_]

# Fewer batches than this are walked one after another: a step of numpy over them would take longer.
_SIDE_BY_SIDE: Final = 200
_INFLATED_BYTES: Final = 16 << 20
_PADDING: Final = bytes(32)  # so that a read at the last position stays within the buffer
_HEADER: Final = np.dtype(
    {
        "names": [
            "base_offset",
            "length",
            "leader_epoch",
            "attributes",
            "last_delta",
            "base_time",
            "max_time",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "count",
        ],
        "formats": [">i8", ">i4", ">i4", ">i2", ">i4", ">i8", ">i8", ">i8", ">i2", ">i4", ">i4"],
        "offsets": [0, 8, 12, 21, 23, 27, 35, 43, 51, 53, 57],
        "itemsize": HEADER_BYTES,
    }
)


class IrregularError(ValueError):
    """The columnar decoder cannot decode this chunk; the reference decoder must."""


class Bytes:
    """A buffer that is read at many positions at once."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data) - len(_PADDING)
        self._array = np.frombuffer(data, np.uint8)

    def _at(self, letters: str, positions: Ints) -> NDArray[Any]:
        dtype = np.dtype(letters)
        window: NDArray[Any] = np.ndarray((len(self.data) - dtype.itemsize + 1,), dtype, self.data, strides=(1,))
        return window[positions]

    def byte(self, positions: Ints) -> NDArray[np.uint8]:
        """The byte at each position."""
        return self._array[positions]

    def i16(self, positions: Ints) -> Ints:
        """The big-endian int16 at each position."""
        return read_at(self.data, ">i2", positions)

    def i32(self, positions: Ints) -> Ints:
        """The big-endian int32 at each position."""
        return read_at(self.data, ">i4", positions)

    def i64(self, positions: Ints) -> Ints:
        """The big-endian int64 at each position."""
        return read_at(self.data, ">i8", positions)

    def u64(self, positions: Ints) -> NDArray[np.uint64]:
        """The big-endian uint64 at each position."""
        return self._at(">u8", positions).astype(np.uint64)

    def raw(self, positions: Ints, size: int) -> NDArray[np.void]:
        """`size` bytes at each position, undecoded."""
        return self._at(f"V{size}", positions)

    def varints(self, positions: Ints) -> tuple[Ints, Ints]:
        """Zigzag varints at these positions, and the positions after them."""
        pair = self._at("<u2", positions)
        if not (pair & 0x80).any():
            number = (pair & 0x7F).astype(np.int64)
            return (number >> 1) ^ -(number & 1), positions + 1
        is_long = pair & 0x80 != 0
        number = np.where(is_long, (pair & 0x7F) | (pair >> 1 & 0x3F80), pair & 0x7F).astype(np.int64)
        number = (number >> 1) ^ -(number & 1)
        after = positions + 1 + is_long
        longer = np.flatnonzero(pair & 0x8080 == 0x8080)
        if longer.size:
            number[longer], after[longer] = self._long_varints(positions[longer])
        return number, after

    def _long_varints(self, positions: Ints) -> tuple[Ints, Ints]:
        """Varints of three bytes or more. Errors: IrregularError: longer than 10 bytes."""
        number = np.zeros(len(positions), np.uint64)
        at = positions.copy()
        going = np.arange(len(positions))
        for shift in range(0, 70, 7):
            byte = self._array[np.minimum(at[going], self.size)]
            number[going] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(shift)
            at[going] += 1
            going = going[byte >= 0x80]
            if not going.size:
                break
        else:
            raise IrregularError("a varint is longer than 10 bytes")
        signed = (number >> np.uint64(1)).astype(np.int64)
        return signed ^ -(number & np.uint64(1)).astype(np.int64), at


@dataclass
class Frame:
    """The records of some batches, as arrays with a value a record, or a value a batch where noted."""

    bytes: Bytes
    header: NDArray[Any]  # by batch
    position: Ints  # of the batch in the file, by batch
    first: Ints  # index of its first record, by batch
    is_single: bool  # every batch has one record
    batch: Ints  # index of its batch, by record
    start: Ints
    size: Ints
    time_delta: Ints
    offset_delta: Ints
    key: Ints
    key_size: Ints  # -1: null
    value: Ints
    value_size: Ints
    after: Ints  # position after the value, where the headers begin

    @cached_property
    def headers(self) -> Headers:
        """All headers; found only when a column needs them."""
        return _headers(self.bytes, self.after, self.start + self.size)

    def __len__(self) -> int:
        return len(self.start)

    def of_batch(self, name: str) -> NDArray[Any]:
        """A header field of each record's batch."""
        column = self.header[name]
        native = column.astype(column.dtype.newbyteorder("="))
        return native if self.is_single else native[self.batch]

    def is_control(self) -> Mask:
        """Which records are markers."""
        flags: Mask = self.of_batch("attributes") & CONTROL != 0
        return flags


@dataclass(slots=True)
class Headers:
    """All headers, in the order of their records."""

    count: Ints  # by record
    record: Ints  # by header, as are the following
    name: Ints
    name_size: Ints
    value: Ints
    value_size: Ints


def frames(chunk: Chunk) -> Iterator[Frame]:
    """The chunk as one frame, or as several if its batches decompress to more than _INFLATED_BYTES."""
    data, starts = Bytes(chunk.data + _PADDING), chunk.starts
    header = data.raw(starts, HEADER_BYTES).view(_HEADER)
    if not (header["attributes"] & 7).any():
        sizes = header["length"].astype(np.int64) + (12 - HEADER_BYTES)
        yield _frame(data, header, starts + chunk.position, starts + HEADER_BYTES, sizes)
        return
    begin, inflated, total = 0, list[bytes | memoryview](), 0
    for number, start in enumerate(starts.tolist()):
        section = _inflate(chunk, start)
        if inflated and total + len(section) > _INFLATED_BYTES:
            yield _joined(header[begin:number], starts[begin:number] + chunk.position, inflated)
            begin, inflated, total = number, [], 0
        inflated.append(section)
        total += len(section)
    yield _joined(header[begin:], starts[begin:] + chunk.position, inflated)


def _inflate(chunk: Chunk, start: int) -> bytes | memoryview:
    head = BatchHeader.from_buffer(chunk.data, start)
    return records_of(memoryview(chunk.data)[start : start + head.size], head, MAX_INFLATED_BYTES)


def _joined(header: NDArray[Any], position: Ints, sections: list[bytes | memoryview]) -> Frame:
    sizes = np.array([len(each) for each in sections], np.int64)
    return _frame(Bytes(b"".join([*sections, _PADDING])), header, position, np.cumsum(sizes) - sizes, sizes)


def _frame(data: Bytes, header: NDArray[Any], position: Ints, section: Ints, section_size: Ints) -> Frame:
    counts = header["count"].astype(np.int64)
    if (counts < 0).any() or (counts > section_size).any():
        raise IrregularError("a batch with fewer bytes than records")
    first = np.cumsum(counts) - counts
    start = _record_starts(data, counts, first, section)
    batch = np.repeat(np.arange(len(counts)), counts)
    end = np.empty_like(start)
    end[:-1] = start[1:]
    filled = counts > 0
    end[(first + counts - 1)[filled]] = (section + section_size)[filled]

    length, at = data.varints(start)
    _must(bool(((length >= 6) & (at + length == end)).all()))
    time_delta, at = data.varints(at + 1)
    offset_delta, at = data.varints(at)
    key_size, key, at = _field(data, at, -1)
    value_size, value, at = _field(data, at, -1)
    return Frame(
        data,
        header,
        position,
        first,
        bool((counts == 1).all()),
        batch,
        start,
        end - start,
        time_delta,
        offset_delta,
        key,
        key_size,
        value,
        value_size,
        at,
    )


def _must(is_so: bool) -> None:
    if not is_so:
        raise IrregularError("a record whose fields do not fill its length")


def _record_starts(data: Bytes, counts: Ints, first: Ints, section: Ints) -> Ints:
    """The position of each record: each length leads to the next one."""
    starts = np.empty(int(counts.sum()), np.int64)
    going = np.flatnonzero(counts)
    at, step = section[going], 0
    while going.size > _SIDE_BY_SIDE:
        starts[first[going] + step] = at
        length, at = data.varints(at)
        at = np.minimum(at + np.maximum(length, 0), data.size)
        step += 1
        more = counts[going] > step
        if not more.all():
            going, at = going[more], at[more]
    for number, begin in zip(going.tolist(), at.tolist(), strict=True):
        found = _starts_one_by_one(data.data, begin, int(counts[number]) - step)
        starts[first[number] + step : first[number] + int(counts[number])] = found
    return starts


def _starts_one_by_one(data: bytes, at: int, count: int) -> list[int]:
    starts = []
    try:
        for _ in range(count):
            starts.append(at)
            byte = data[at]
            if byte < 0x80:
                at += 1 + (byte >> 1)
                continue
            length, shift = byte & 0x7F, 7
            while byte >= 0x80 and shift < 35:
                at += 1
                byte = data[at]
                length |= (byte & 0x7F) << shift
                shift += 7
            at += 1 + (length >> 1)
    except IndexError:
        raise IrregularError("records that end too early") from None
    return starts


def _headers(data: Bytes, at: Ints, end: Ints) -> Headers:
    """The headers of every record, which must end at the record's end."""
    count, at = data.varints(at)
    _must(bool(((count >= 0) & (count <= end - at)).all()))
    going = np.flatnonzero(count)
    total = int(count.sum())
    found = Headers(count, np.repeat(np.arange(len(count)), count), *(np.empty(total, np.int64) for _ in range(4)))
    first, steps, place = np.cumsum(count) - count, int(count.max(initial=0)), at[going]
    is_even = total == len(going) * steps  # every record with headers has the same number of them
    for step in range(steps):
        number = slice(step, None, steps) if is_even else first[going] + step
        found.name_size[number], found.name[number], place = _field(data, place, 0)
        found.value_size[number], found.value[number], place = _field(data, place, -1)
        if not is_even:
            at[going] = place
            more = count[going] > step + 1
            going, place = going[more], place[more]
    if is_even:
        at[going] = place
    _must(bool((at == end).all()))
    return found


def _field(data: Bytes, at: Ints, least: int) -> tuple[Ints, Ints, Ints]:
    """Fields with a varint size of at least `least`: sizes, positions, and the positions after the fields."""
    size, start = data.varints(at)
    smallest = int(size.min(initial=0))
    after = start + (size if smallest >= 0 else np.maximum(size, 0))
    _must(smallest >= least and int(after.max(initial=0)) <= data.size)
    return size, start, after
