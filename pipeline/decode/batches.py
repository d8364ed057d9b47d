"""Walks the record batches of a segment: chunks of whole batches, with every CRC checked, within bounds of offsets.

The bounds are offsets and not byte positions, because the cleaner rewrites files. A batch is within bounds by its last
offset, which cleaning does not change; so every batch belongs to exactly one of adjacent ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from numpy.typing import NDArray

from protocol.record_batch import ATTRIBUTES_POSITION, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC

CHUNK_BYTES: Final = 4 << 20
EVERYTHING: Final = (1 << 63) - 1
LAST_DELTA_POSITION: Final = 23
_LENGTH_POSITION: Final = 8
_MAGIC_POSITION: Final = 16
_FRONT: Final = Struct(">8xi4xBI")  # length, magic, CRC
_PLACE: Final = Struct(">qi4xB")  # base offset, length, magic
_LOOK_BYTES: Final = 1 << 16
Ints = NDArray[np.int64]


def read_at(data: bytes, letters: str, positions: Ints) -> Ints:
    """Big-endian numbers at these positions, which need not be aligned. letters: a numpy type such as ">i4"."""
    dtype = np.dtype(letters)
    window: NDArray[Any] = np.ndarray((len(data) - dtype.itemsize + 1,), dtype, data, strides=(1,))
    return window[positions].astype(np.int64)


class CorruptSegmentError(ValueError):
    """Bytes in the middle of a log that are not a valid record batch."""


class File(Protocol):
    """The methods of pyarrow's NativeFile that are used."""

    def read_at(self, nbytes: int, offset: int) -> bytes: ...

    def size(self) -> int: ...


def partition_of(log: str) -> tuple[str, int]:
    """Topic and partition from the name of a log's directory, TOPIC-PARTITION."""
    topic, _, partition = log.rpartition("-")
    return topic, int(partition)


@dataclass(frozen=True, slots=True)
class Source:
    """A segment file's log and base offset: the first columns of every row."""

    log: str
    segment: int
    topic_id: str | None = None

    @property
    def topic(self) -> str:
        """The log's topic."""
        return partition_of(self.log)[0]

    @property
    def partition(self) -> int:
        """The log's partition index."""
        return partition_of(self.log)[1]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file, with the positions of the wanted batches in it."""

    source: Source
    position: int  # of data[0] in the file
    data: bytes
    starts: Ints


@dataclass(frozen=True, slots=True)
class Bounds:
    """What to read of a segment: the batches whose last offset is in [first, end)."""

    first: int = 0
    end: int = EVERYTHING
    position: int = 0  # a hint: where a batch at or below `first` may begin; it is checked
    is_tail: bool = True  # the log ends in this file: bytes after the last whole batch are an unfinished write
    start: int = 0  # of the log: records below it are deleted, also those of a batch that extends past it


@dataclass(slots=True)
class Walk:
    """The result of walking one buffer."""

    at: int = 0  # position after the last whole batch
    next_offset: int = -1  # offset after it
    needs: int = 0  # size of the next batch, if the buffer ends within it
    is_past_end: bool = False
    damage: str = ""
    starts: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # of the batches in bounds


class Damage(NamedTuple):
    """Bytes of a segment file that are no record batch, although the log goes on after them."""

    position: int
    size: int  # bytes up to the next whole batch, or to the end of the file
    what: str


def chunks(
    file: File,
    source: Source,
    bounds: Bounds,
    chunk_bytes: int = CHUNK_BYTES,
    on_damage: Callable[[Damage], None] | None = None,
) -> Iterator[Chunk]:
    """The wanted batches in file order.

    Errors:  CorruptSegmentError: the file is damaged in the middle of its log. With `on_damage` that is called instead,
             and the walk goes on after the damage.
    """
    for data, position, found in _walked(file, source, bounds, chunk_bytes, on_damage):
        if found.starts.size:
            yield Chunk(source, position, data, found.starts)


def ends(file: File, source: Source, bounds: Bounds, chunk_bytes: int = CHUNK_BYTES) -> Iterator[tuple[int, int]]:
    """(position, offset) after each chunk's last whole batch. Errors: see chunks."""
    for _, position, found in _walked(file, source, bounds, chunk_bytes):
        if found.next_offset >= 0:
            yield position + found.at, found.next_offset


def batch_positions(file: File, position: int, end: int, step: int) -> Iterator[tuple[int, int]]:
    """(base offset, position) of batches, at least `step` bytes apart, from header to header up to the position `end`.

    What follows a header is neither read nor checked, so large batches cost little. It stops where no header is.
    """
    wanted = position + step
    while position + HEADER_BYTES <= end:
        data = file.read_at(min(_LOOK_BYTES, end - position), position)
        at, limit = 0, len(data) - HEADER_BYTES
        if limit < 0:
            return  # the file was cut
        while at <= limit:
            base, length, magic = _PLACE.unpack_from(data, at)
            if magic != MAGIC or length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
                return
            if position + at >= wanted:
                yield base, position + at
                wanted = position + at + step
            at += length + LOG_OVERHEAD_BYTES
        position += at


def _walked(
    file: File,
    source: Source,
    bounds: Bounds,
    chunk_bytes: int,
    on_damage: Callable[[Damage], None] | None = None,
) -> Iterator[tuple[bytes, int, Walk]]:
    size = file.size()
    position = bounds.position if _begins_batch(file, size, bounds) else 0
    wanted = chunk_bytes = max(chunk_bytes, HEADER_BYTES)
    next_offset = source.segment
    while position < size:
        data = file.read_at(min(wanted, size - position), position)
        found = walk(data, bounds)
        next_offset = max(next_offset, found.next_offset)
        yield data, position, found
        if found.is_past_end:
            return
        position += found.at
        rest = size - position
        wanted = max(chunk_bytes, found.needs)
        if not found.damage and (found.needs or HEADER_BYTES) <= rest:
            continue
        if not rest:
            return
        # What a crash left unfinished is at the end of a log. A whole batch after it shows that this is damage.
        follows = _whole_batch_after(file, size, position + 1, next_offset)
        if follows is None and bounds.is_tail:
            return
        what = found.damage or "a truncated batch"
        if on_damage is None:
            after = "" if follows is None else f", and a whole batch follows at {follows}"
            raise CorruptSegmentError(f"{source.log}, segment {source.segment}: {what} at position {position}{after}")
        on_damage(Damage(position, (size if follows is None else follows) - position, what))
        if follows is None:
            return
        position, wanted = follows, chunk_bytes


def _whole_batch_after(file: File, size: int, position: int, next_offset: int) -> int | None:
    """The position of the first whole batch at or after a position whose offsets go on; None: there is none."""
    while position + HEADER_BYTES <= size:
        data = file.read_at(min(CHUNK_BYTES, size - position), position)
        magic = np.frombuffer(data, np.uint8)[_MAGIC_POSITION:][: len(data) - HEADER_BYTES + 1]
        starts = np.flatnonzero(magic == MAGIC)
        total = read_at(data, ">i4", starts + _LENGTH_POSITION) + LOG_OVERHEAD_BYTES
        fits = (total >= HEADER_BYTES) & (total <= size - position - starts)
        fits &= read_at(data, ">i8", starts) >= next_offset
        for start in starts[fits].tolist():
            length, _, crc = _FRONT.unpack_from(data, start)
            batch = file.read_at(
                length + LOG_OVERHEAD_BYTES - ATTRIBUTES_POSITION, position + start + ATTRIBUTES_POSITION
            )
            if crc32c(batch) == crc:
                return int(position + start)
        position += len(data) - HEADER_BYTES + 1
    return None


def walk(data: bytes, bounds: Bounds) -> Walk:
    """Find the whole batches of one buffer, and those of them within bounds."""
    found = Walk()
    unpack, total = _FRONT.unpack_from, len(data)
    limit = total - HEADER_BYTES
    places: list[int] = []
    add = places.append  # this loop takes a third of the time of small batches
    at = 0
    while at <= limit:
        length, magic, crc = unpack(data, at)
        after = at + length + LOG_OVERHEAD_BYTES
        if magic != MAGIC or length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
            found.damage = "not a record batch of version 2"
            break
        if after > total:
            found.needs = after - at
            break
        if crc32c(data[at + ATTRIBUTES_POSITION : after]) != crc:
            found.damage, found.needs = "a batch with a wrong CRC", after - at
            break
        add(at)
        at = after
    if places:
        _bound(found, bounds, data, np.array(places, np.int64), at)
    return found


def _bound(found: Walk, bounds: Bounds, data: bytes, starts: Ints, at: int) -> None:
    last = read_at(data, ">i8", starts) + read_at(data, ">i4", starts + LAST_DELTA_POSITION)
    beyond = np.flatnonzero(last >= bounds.end)
    if beyond.size:
        at, found.is_past_end = int(starts[beyond[0]]), True
        starts, last = starts[: beyond[0]], last[: beyond[0]]
    found.at = at
    if last.size:
        found.next_offset = int(last[-1]) + 1
        found.is_past_end |= found.next_offset >= bounds.end
    found.starts = (
        starts if bounds.first <= 0 or not last.size or last[0] >= bounds.first else starts[last >= bounds.first]
    )


def _begins_batch(file: File, size: int, bounds: Bounds) -> bool:
    """Whether a whole batch begins at bounds.position, and not after bounds.first."""
    at = bounds.position
    if at + HEADER_BYTES > size:
        return at == size
    head = file.read_at(HEADER_BYTES, at)
    length, magic, crc = _FRONT.unpack_from(head)
    if magic != MAGIC or not HEADER_BYTES - LOG_OVERHEAD_BYTES <= length <= size - at - LOG_OVERHEAD_BYTES:
        return False
    if int.from_bytes(head[:8], "big") > bounds.first:
        return False
    body = file.read_at(length + LOG_OVERHEAD_BYTES - ATTRIBUTES_POSITION, at + ATTRIBUTES_POSITION)
    return bool(crc32c(body) == crc)
