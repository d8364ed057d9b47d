"""Whole batches of a file, in big reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from protocol.record_batch import HEADER, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, BatchHeader
from storage.files.env import File

_READ_BYTES: Final = 128 << 10


def read_batches(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Whole batches of a file between two positions; neither CRC nor order of offsets is checked."""
    unpack = HEADER.unpack_from
    new = tuple.__new__
    view = memoryview(b"")
    start = position
    while position + HEADER_BYTES <= end:
        at = position - start
        if at + HEADER_BYTES > len(view):
            view, start, at = memoryview(file.pread(min(_READ_BYTES, end - position), position)), position, 0
            if len(view) < HEADER_BYTES:
                return
        header: BatchHeader = new(BatchHeader, unpack(view, at))
        size = header[1] + LOG_OVERHEAD_BYTES
        if size < HEADER_BYTES or position + size > end or header[3] != MAGIC:
            return
        if at + size > len(view):
            wanted = min(max(_READ_BYTES, size), end - position)
            view, start, at = memoryview(file.pread(wanted, position)), position, 0
            if len(view) < size:
                return
        yield position, header, view[at : at + size]
        position += size
