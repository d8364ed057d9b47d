"""Divides large ranges of a segment at entries of its offset index or at its batches: several tasks read one segment.

Layout: BASE.index   relative offset i32 | position i32, big-endian, an entry each few kilobytes. The offset is the last
one of the batches that were appended together, the position that of the first of them. Kafka allocates an active
segment's index in advance: entries of zeros end it.

The index carries no checksum, and the log may be cleaned after it was read. So it decides only how the work is shared:
the ranges are those of offsets, every batch is in exactly one of them, and a reader checks the position before it
begins there (Bounds.position).

A broker that runs may keep the index of its active segment in memory, as momus does. So the last segment of a log is
divided at its batches where its index has no entries: from header to header, the records between are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from pyarrow import fs

from pipeline.decode.batches import batch_positions
from pipeline.source.segment_ranges import SegmentRange

PIECE_BYTES: Final = 32 << 20
MOST_WALKED: Final = 4 << 30  # bytes: five seconds where every batch has one commit; of more there are tasks enough
_ENTRY_BYTES: Final = 8
_LOG, _INDEX, _SWAP = ".log", ".index", ".swap"


def divided(
    files: fs.FileSystem, ranges: Iterable[SegmentRange], piece_bytes: int = PIECE_BYTES, most_walked: int = MOST_WALKED
) -> list[SegmentRange]:
    """The same offsets in the same order: ranges of two pieces and more are divided into pieces of about piece_bytes.

    A range is left whole where its segment has no index, unless it is the last one of a log on a local disk; of these,
    most_walked bytes are looked through.
    """
    found: list[SegmentRange] = []
    given = list(ranges)
    for number, each in enumerate(given):
        if each.size < 2 * piece_bytes:
            found.append(each)
            continue
        *pieces, rest = _pieces(each, _entries(files, each), piece_bytes)
        found += pieces
        is_last = number + 1 == len(given) or given[number + 1].log != each.log
        if is_last and 2 * piece_bytes <= rest.size <= most_walked and isinstance(files, fs.LocalFileSystem):
            most_walked -= rest.size
            found += _pieces(rest, _batches(files, rest, piece_bytes), piece_bytes)
        else:
            found.append(rest)
    return found


def _pieces(whole: SegmentRange, places: Iterable[tuple[int, int]], piece_bytes: int) -> list[SegmentRange]:
    """places: (offset, position) where it may be divided; those that do not rise are passed over."""
    pieces, rest = [], whole
    end = whole.bounds.position + whole.size
    for offset, position in places:
        bounds = rest.bounds
        if offset >= bounds.end or end - position < piece_bytes:
            break
        if offset > bounds.first and position - bounds.position >= piece_bytes:
            pieces.append(replace(rest, size=position - bounds.position, bounds=replace(bounds, end=offset)))
            rest = replace(rest, size=end - position, bounds=replace(bounds, first=offset, position=position))
    return [*pieces, rest]


def _entries(files: fs.FileSystem, segment: SegmentRange) -> list[tuple[int, int]]:
    """(offset, position) of each entry of the index."""
    try:
        with files.open_input_stream(_index_path(segment.path)) as stream:
            content = stream.read()
    except FileNotFoundError:
        content = b""
    rows = np.frombuffer(content, ">i4", len(content) // _ENTRY_BYTES * 2).reshape(-1, 2).astype(np.int64)
    rows = rows[rows[:, 1] > 0]  # half of an active segment's may be zeros
    rows[:, 0] += segment.segment
    return [(offset, position) for offset, position in rows.tolist()]


def _batches(files: fs.FileSystem, part: SegmentRange, step: int) -> Iterator[tuple[int, int]]:
    """(offset, position) of batches, at least `step` bytes apart."""
    try:
        file = files.open_input_file(part.path)
    except FileNotFoundError:
        return  # cleaned or deleted since it was listed
    with file:
        yield from batch_positions(file, part.bounds.position, part.bounds.position + part.size, step)


def _index_path(path: str) -> str:
    """Of BASE.log or, while it replaces others, BASE.log.swap."""
    swap = _SWAP if path.endswith(_SWAP) else ""
    return f"{path.removesuffix(swap).removesuffix(_LOG)}{_INDEX}{swap}"
