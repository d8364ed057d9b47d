"""Divides large ranges of a segment at entries of its offset index, so that several tasks read one segment.

Layout: BASE.index   relative offset i32 | position i32, big-endian, an entry each few kilobytes. The offset is the last
one of the batches that were appended together, the position that of the first of them. Kafka allocates an active
segment's index in advance: entries of zeros end it.

The index carries no checksum, and the log may be cleaned after it was read. So it decides only how the work is shared:
the ranges are those of offsets, every batch is in exactly one of them, and a reader checks the position before it
begins there (Bounds.position).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np
from pyarrow import fs

from pipeline.decode.batches import Ints
from pipeline.source.segment_ranges import SegmentRange

PIECE_BYTES: Final = 32 << 20
_ENTRY_BYTES: Final = 8
_LOG, _INDEX, _SWAP = ".log", ".index", ".swap"


def divided(files: fs.FileSystem, ranges: Iterable[SegmentRange], piece_bytes: int = PIECE_BYTES) -> list[SegmentRange]:
    """The same offsets in the same order: ranges of two pieces and more are divided into pieces of about piece_bytes.

    A range is left whole where its segment has no index: a broker that runs may not have written it yet.
    """
    found: list[SegmentRange] = []
    for each in ranges:
        found += _pieces(each, _entries(files, each), piece_bytes) if each.size >= 2 * piece_bytes else [each]
    return found


def _pieces(whole: SegmentRange, entries: Ints, piece_bytes: int) -> list[SegmentRange]:
    """entries: rows of (offset, position); those that do not rise are passed over."""
    pieces, rest = [], whole
    end = whole.bounds.position + whole.size
    for offset, position in entries.tolist():
        bounds = rest.bounds
        if offset >= bounds.end or end - position < piece_bytes:
            break
        if offset > bounds.first and position - bounds.position >= piece_bytes:
            pieces.append(replace(rest, size=position - bounds.position, bounds=replace(bounds, end=offset)))
            rest = replace(rest, size=end - position, bounds=replace(bounds, first=offset, position=position))
    return [*pieces, rest]


def _entries(files: fs.FileSystem, segment: SegmentRange) -> Ints:
    """(offset, position) of each entry."""
    try:
        with files.open_input_stream(_index_path(segment.path)) as stream:
            content = stream.read()
    except FileNotFoundError:
        content = b""
    rows = np.frombuffer(content, ">i4", len(content) // _ENTRY_BYTES * 2).reshape(-1, 2).astype(np.int64)
    rows = rows[rows[:, 1] > 0]  # half of an active segment's may be zeros
    rows[:, 0] += segment.segment
    return rows


def _index_path(path: str) -> str:
    """Of BASE.log or, while it replaces others, BASE.log.swap."""
    swap = _SWAP if path.endswith(_SWAP) else ""
    return f"{path.removesuffix(swap).removesuffix(_LOG)}{_INDEX}{swap}"
