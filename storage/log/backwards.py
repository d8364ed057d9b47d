"""A log read backwards: the headers of its batches from an offset down, a slice at a time, by the sparse index."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from protocol.record_batch import BatchHeader
from storage.files.errors import StorageError
from storage.segments.segment import base_offset_of

if TYPE_CHECKING:
    from storage.log.log import Log

SLICE_BYTES: Final = 32 * 1024  # of log, looked through at once: half a millisecond where batches are small


def headers_below(log: Log, end_offset: int) -> Iterator[list[BatchHeader]]:
    """The headers of the written batches below an offset at which one begins, newest first, down to the first segment.

    Each list is one slice. The log may grow, be cleaned and lose segments between two of them: each slice finds its
    place by its offset.
    Errors:  StorageError: the log is out of use, or ends within a batch.
    """
    while True:
        if log.broken:
            raise StorageError(log.broken)
        segments = log.segments
        at = bisect_right(segments, end_offset - 1, key=base_offset_of) - 1
        if at < 0:
            return
        segment = segments[at]
        stop = segment.position_of(end_offset)
        start = segment.index.boundary_at_or_before(stop - SLICE_BYTES) if stop > SLICE_BYTES else 0
        headers: list[BatchHeader] = []
        for position, header in segment.headers(start):
            if position >= stop:
                break
            headers.append(header)
        end_offset = headers[0].base_offset if headers else segment.base_offset
        headers.reverse()
        yield headers
