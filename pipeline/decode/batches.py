"""Walks the record batches of a segment: chunks of whole batches, with every CRC checked, within bounds of offsets.

The bounds are offsets and not byte positions, because the cleaner rewrites files. A batch is within bounds by its last
offset, which cleaning does not change; so every batch belongs to exactly one of adjacent ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, Protocol

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from numpy.typing import NDArray

from protocol.record_batch import ATTRIBUTES_POSITION, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC

CHUNK_BYTES: Final = 4 << 20
EVERYTHING: Final = (1 << 63) - 1
LAST_DELTA_POSITION: Final = 23
_FRONT: Final = Struct(">8xi4xBI")  # length, magic, CRC
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

    @property
    def topic(self) -> str:
        return partition_of(self.log)[0]

    @property
    def partition(self) -> int:
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
    is_tail: bool = True  # the log ends in this file: bytes behind the last whole batch are an unfinished write


@dataclass(slots=True)
class _Walk:
    """The result of walking one buffer."""

    at: int = 0  # position behind the last whole batch
    next_offset: int = -1  # offset behind it
    needs: int = 0  # size of the next batch, if the buffer ends within it
    is_past_end: bool = False
    damage: str = ""
    starts: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # of the batches in bounds


def chunks(file: File, source: Source, bounds: Bounds, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """The wanted batches in file order. Errors: CorruptSegmentError: the file is damaged in the middle of its log."""
    for data, position, walk in _walked(file, source, bounds, chunk_bytes):
        if walk.starts.size:
            yield Chunk(source, position, data, walk.starts)


def ends(file: File, source: Source, bounds: Bounds, chunk_bytes: int = CHUNK_BYTES) -> Iterator[tuple[int, int]]:
    """(position, offset) behind each chunk's last whole batch. Errors: see chunks."""
    for _, position, walk in _walked(file, source, bounds, chunk_bytes):
        if walk.next_offset >= 0:
            yield position + walk.at, walk.next_offset


def _walked(file: File, source: Source, bounds: Bounds, chunk_bytes: int) -> Iterator[tuple[bytes, int, _Walk]]:
    size = file.size()
    position = bounds.position if _begins_batch(file, size, bounds) else 0
    wanted = chunk_bytes = max(chunk_bytes, HEADER_BYTES)
    while position < size:
        data = file.read_at(min(wanted, size - position), position)
        walk = _walk(data, bounds)
        yield data, position, walk
        if walk.is_past_end:
            return
        rest = size - position - walk.at
        if walk.damage:
            if bounds.is_tail and not _begins_batch(file, size, bounds, position + walk.at + walk.needs):
                return
            raise CorruptSegmentError(
                f"{source.log}, segment {source.segment}: {walk.damage} at position {position + walk.at}"
            )
        if not rest or (walk.needs or HEADER_BYTES) > rest:
            if rest and not bounds.is_tail:
                raise CorruptSegmentError(
                    f"{source.log}, segment {source.segment}: a truncated batch at position {position + walk.at}"
                )
            return
        position += walk.at
        wanted = max(chunk_bytes, walk.needs)


def _walk(data: bytes, bounds: Bounds) -> _Walk:
    """Find the whole batches of one buffer, and those of them within bounds."""
    walk = _Walk()
    unpack, total = _FRONT.unpack_from, len(data)
    limit = total - HEADER_BYTES
    found: list[int] = []
    add = found.append  # this loop takes a third of the time of small batches
    at = 0
    while at <= limit:
        length, magic, crc = unpack(data, at)
        after = at + length + LOG_OVERHEAD_BYTES
        if magic != MAGIC or length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
            walk.damage = "not a record batch of version 2"
            break
        if after > total:
            walk.needs = after - at
            break
        if crc32c(data[at + ATTRIBUTES_POSITION : after]) != crc:
            walk.damage, walk.needs = "a batch with a wrong CRC", after - at
            break
        add(at)
        at = after
    if found:
        _bound(walk, bounds, data, np.array(found, np.int64), at)
    return walk


def _bound(walk: _Walk, bounds: Bounds, data: bytes, starts: Ints, at: int) -> None:
    last = read_at(data, ">i8", starts) + read_at(data, ">i4", starts + LAST_DELTA_POSITION)
    beyond = np.flatnonzero(last >= bounds.end)
    if beyond.size:
        at, walk.is_past_end = int(starts[beyond[0]]), True
        starts, last = starts[: beyond[0]], last[: beyond[0]]
    walk.at = at
    if last.size:
        walk.next_offset = int(last[-1]) + 1
        walk.is_past_end |= walk.next_offset >= bounds.end
    walk.starts = (
        starts if bounds.first <= 0 or not last.size or last[0] >= bounds.first else starts[last >= bounds.first]
    )


def _begins_batch(file: File, size: int, bounds: Bounds, position: int | None = None) -> bool:
    """Whether a whole batch begins at a position.

    At the default, bounds.position, the batch must also not begin behind bounds.first.
    """
    at = bounds.position if position is None else position
    if at + HEADER_BYTES > size:
        return position is None and at == size
    head = file.read_at(HEADER_BYTES, at)
    length, magic, crc = _FRONT.unpack_from(head)
    if magic != MAGIC or not HEADER_BYTES - LOG_OVERHEAD_BYTES <= length <= size - at - LOG_OVERHEAD_BYTES:
        return False
    if position is None and int.from_bytes(head[:8], "big") > bounds.first:
        return False
    body = file.read_at(length + LOG_OVERHEAD_BYTES - ATTRIBUTES_POSITION, at + ATTRIBUTES_POSITION)
    return bool(crc32c(body) == crc)
