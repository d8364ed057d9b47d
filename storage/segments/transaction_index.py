"""The `.txnindex` files of segments: the transactions that markers in a segment have aborted, 34 bytes each.

Format, as Kafka's, big-endian: i16 version 0 | i64 producer id | i64 first offset | i64 offset of the marker | i64 last
stable offset at the marker; in the order of the markers. A segment without any has no file. A line stays as long as its
marker: a reader leaves an aborted transaction at its marker, so without one it would drop all that the producer commits
later.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from storage.files.env import Files

SUFFIX: Final = ".txnindex"
LINE: Final = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """One line of a `.txnindex` file."""

    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    last_stable_offset: int  # when the marker was written; all later transactions begin at or above it


class Markers:
    """The offsets of the markers in a part of a log, added in rising order: 8 bytes each."""

    __slots__ = ("_offsets",)

    def __init__(self) -> None:
        self._offsets = array("q")

    def add(self, offset: int) -> None:
        """Add a marker after the others."""
        self._offsets.append(offset)

    def __contains__(self, offset: int) -> bool:
        at = bisect_left(self._offsets, offset)
        return at < len(self._offsets) and self._offsets[at] == offset


def encode_index(transactions: Iterable[AbortedTransaction]) -> bytes:
    """The content of a file."""
    return b"".join([LINE.pack(0, *transaction) for transaction in transactions])


def decode_index(data: bytes) -> list[AbortedTransaction]:
    """The lines of a file, up to the first invalid one."""
    found: list[AbortedTransaction] = []
    last = -1
    for version, producer_id, first_offset, last_offset, stable_offset in LINE.iter_unpack(
        data[: len(data) // LINE.size * LINE.size]
    ):
        if version != 0 or last_offset <= last:
            break
        last = last_offset
        found.append(AbortedTransaction(producer_id, first_offset, last_offset, stable_offset))
    return found


def merge_indexes(files: Files, directory: str, bases: Sequence[int], markers: Markers) -> None:
    """Several segments have become one: give it, the first, all lines whose markers it holds.

    Call it before the other segments are removed. Doing it twice is the same as once, so a start can finish it.
    Durable: when this returns.
    """
    paths = [f"{directory}/{base:020d}{SUFFIX}" for base in bases]
    before = [files.read_file(path) if files.exists(path) else b"" for path in paths]
    lines = {line.last_offset: line for data in before for line in decode_index(data) if line.last_offset in markers}
    after = encode_index(lines[offset] for offset in sorted(lines))
    if after == before[0]:
        return
    if after:
        files.write_file_atomic(paths[0], after)
    else:
        files.remove(paths[0])
