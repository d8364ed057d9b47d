"""The sparse indexes of one segment: offset to position, timestamp to offset; Kafka's .index and .timeindex.

Layout: .index      relative last offset i32 | position of that batch i32, one entry per index interval
        .timeindex  largest timestamp so far i64 | relative last offset of the batch that has it i32
Both are made from the log and may be deleted; they carry no checksum, so what is read is checked against it.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import Final

OFFSET_ENTRY_BYTES: Final = 8
TIME_ENTRY_BYTES: Final = 12
# which half of an i64 comes first in memory
_LOW, _HIGH = (0, 1) if sys.byteorder == "little" else (1, 0)


class SparseIndex:
    """Columns, not objects: 20 bytes for every index interval of log."""

    __slots__ = ("offsets", "positions", "time_offsets", "timestamps")

    def __init__(self) -> None:
        self.offsets = array("i")
        self.positions = array("i")
        self.timestamps = array("q")
        self.time_offsets = array("i")

    def add(self, relative_offset: int, position: int) -> None:
        """Add an entry; offset and position rise from entry to entry."""
        self.offsets.append(relative_offset)
        self.positions.append(position)

    def add_time(self, timestamp: int, relative_offset: int) -> None:
        """Only a larger timestamp is worth an entry (and a later one for the same time is not)."""
        if timestamp >= 0 and (not self.timestamps or timestamp > self.timestamps[-1]):
            self.timestamps.append(timestamp)
            self.time_offsets.append(relative_offset)

    def position_before(self, relative_offset: int) -> int:
        """A position from which a walk forward meets the batch that holds this offset."""
        at = bisect_right(self.offsets, relative_offset) - 1
        return self.positions[at] if at >= 0 else 0

    def boundary_at_or_before(self, position: int) -> int:
        """The last known batch start not after this position; 0 when none is known."""
        at = bisect_right(self.positions, position) - 1
        return self.positions[at] if at >= 0 else 0

    def offset_before_time(self, timestamp: int) -> int:
        """Relative offset of a batch before which nothing is as late as timestamp."""
        at = bisect_left(self.timestamps, timestamp) - 1
        return self.time_offsets[at] if at >= 0 else 0

    def cut_back(self, position: int, relative_offset: int) -> None:
        """Forget what is at or after a position and an offset."""
        at = bisect_left(self.positions, position)
        del self.offsets[at:], self.positions[at:]
        at = bisect_left(self.time_offsets, relative_offset)
        del self.time_offsets[at:], self.timestamps[at:]

    def encode_offsets(self) -> bytes:
        """The bytes of Kafka's .index: (relative offset, position), 4 bytes each."""
        words = array("i", bytes(OFFSET_ENTRY_BYTES * len(self.offsets)))
        words[0::2] = self.offsets
        words[1::2] = self.positions
        return _big_endian(words).tobytes()

    def encode_times(self) -> bytes:
        """The bytes of Kafka's .timeindex: 8 bytes of timestamp, 4 of relative offset."""
        halves = array("i", self.timestamps.tobytes())
        words = array("i", bytes(TIME_ENTRY_BYTES * len(self.timestamps)))
        words[0::3] = halves[_HIGH::2]
        words[1::3] = halves[_LOW::2]
        words[2::3] = self.time_offsets
        return _big_endian(words).tobytes()


def decode(offset_entries: bytes, time_entries: bytes, log_bytes: int) -> SparseIndex | None:
    """The index that two files hold, or None when they cannot belong to a log of log_bytes."""
    if len(offset_entries) % OFFSET_ENTRY_BYTES or len(time_entries) % TIME_ENTRY_BYTES:
        return None
    index = SparseIndex()
    words = _big_endian(array("i", offset_entries))
    index.offsets = words[0::2]
    index.positions = words[1::2]
    words = _big_endian(array("i", time_entries))
    index.time_offsets = words[2::3]
    halves = array("i", bytes(8 * len(index.time_offsets)))
    halves[_HIGH::2] = words[0::3]
    halves[_LOW::2] = words[1::3]
    index.timestamps = array("q", halves.tobytes())
    if not _rising(index.offsets) or not _rising(index.positions) or not _rising(index.timestamps):
        return None
    if index.offsets and (index.offsets[0] < 0 or index.positions[0] < 0 or index.positions[-1] >= log_bytes):
        return None
    if index.time_offsets and index.time_offsets[0] < 0:
        return None
    return index


def _rising(column: array[int]) -> bool:
    return list(column) == sorted(column)  # linear on what is sorted already: 3 ms for a segment of 1 GiB


def _big_endian(words: array[int]) -> array[int]:
    """Swap in place between the machine's order and the disk's."""
    if sys.byteorder == "little":
        words.byteswap()
    return words
