"""The `.snapshot` files beside a log: Kafka's image of the producers at an offset, read instead of the log.

The file at offset N holds the state before N. Two are kept, as in Kafka: if the newest is damaged, the one before it
costs only some more reading.

Format (big-endian): i16 version 1 | u32 CRC-32C of all from 6 on | i32 count, then for each: i64 producer id
| i16 epoch | i32 last sequence | i64 last offset | i32 offset delta | i64 timestamp | i32 coordinator epoch
| i64 first offset of the open transaction (-1: none). Kafka's files end there, and Kafka reads no further. Momus adds
for each producer i32 sequences known to be written up to the last one, and then i64 offset of the last marker that
aborted a transaction (-1: none), which shows whether a `.txnindex` is lost.

A snapshot is not synced: one damaged by a power cut fails its CRC, and the log is read instead.
"""

from __future__ import annotations

import logging
import struct
import sys
from array import array
from bisect import insort
from collections.abc import Generator, Iterable
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from broker.partitions.producers import ProducerSnapshot
from storage.env import Files

logger = logging.getLogger("momus.partition")

SUFFIX: Final = ".snapshot"
KEPT: Final = 2
_VERSION: Final = 1
_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_LAST_ABORTED: Final = Struct(">q")
_PRODUCERS_A_STEP: Final = 2000  # encoded in one step: about 2 ms
UNTOLD: Final = -2  # a snapshot of Kafka: it does not name the last aborting marker
NONE_ABORTED: Final = -1


class Snapshot(NamedTuple):
    """The content of a snapshot file."""

    producers: list[ProducerSnapshot]
    last_aborted_offset: int = NONE_ABORTED


def encode_steps(producers: Iterable[ProducerSnapshot], last_aborted_offset: int) -> Generator[None, None, bytes]:
    """The content of a file, made in steps of about 2 ms."""
    steps: list[bytes] = []  # joined step by step: joining a million entries at the end takes too long
    entries: list[bytes] = []
    written = array("i")
    pack = _ENTRY.pack
    for producer in producers:
        entries.append(pack(*producer[:8]))
        written.append(producer[8])
        if len(entries) == _PRODUCERS_A_STEP:
            steps.append(b"".join(entries))
            entries.clear()
            yield
    count = len(written)
    if sys.byteorder == "little":
        written.byteswap()
    body = b"".join([_COUNT.pack(count), *steps, *entries, written.tobytes(), _LAST_ABORTED.pack(last_aborted_offset)])
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> Snapshot:
    """Decode a snapshot. Errors: ValueError: it is damaged."""
    try:
        version, crc = _HEAD.unpack_from(data)
        body = data[_HEAD.size :]
        (count,) = _COUNT.unpack_from(body)
    except struct.error:
        raise ValueError("it ends too early") from None
    if version != _VERSION:
        raise ValueError(f"version {version} is unknown")
    if crc32c(body) != crc:
        raise ValueError("its CRC is wrong")
    end = _COUNT.size + count * _ENTRY.size
    entries = _ENTRY.iter_unpack(memoryview(body)[_COUNT.size : end])
    if len(body) == end:
        return Snapshot([ProducerSnapshot(*entry) for entry in entries], UNTOLD)
    if len(body) != end + count * 4 + _LAST_ABORTED.size:
        raise ValueError(f"{count} producers do not fit {len(body)} bytes")
    written = array("i", body[end : end + count * 4])
    if sys.byteorder == "little":
        written.byteswap()
    producers = [ProducerSnapshot(*(*entry, known)) for entry, known in zip(entries, written, strict=True)]
    return Snapshot(producers, _LAST_ABORTED.unpack_from(body, end + count * 4)[0])


class ProducerSnapshots:
    """The snapshots in one log's directory. Their names are read once, at the first use."""

    __slots__ = ("_directory", "_files", "_known")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._known: list[int] | None = None

    @property
    def offsets(self) -> list[int]:
        """Offsets of the snapshots, rising."""
        if self._known is None:
            names = self._files.listdir(self._directory)
            stems = [name[: -len(SUFFIX)] for name in names if name.endswith(SUFFIX)]
            self._known = sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isdigit())
        return self._known

    def latest(self, end_offset: int) -> tuple[int, Snapshot] | None:
        """Offset and content of the newest undamaged snapshot up to this end of the log."""
        for offset in reversed(self.offsets.copy()):
            if offset > end_offset:
                continue
            try:
                return offset, decode_snapshot(self._files.read_file(self._path(offset)))
            except (ValueError, OSError) as error:
                self.refuse(offset, str(error))
        return None

    def refuse(self, offset: int, why: str) -> None:
        """Log and remove an unusable snapshot."""
        logger.warning("deleting the unusable producer snapshot %s: %s", self._path(offset), why)
        self._remove(offset)

    def write(self, offset: int, data: bytes) -> None:
        """Write the snapshot at an offset, and remove all but the newest."""
        self._files.write_file_atomic(self._path(offset), data, sync=False)
        if offset not in self.offsets:
            insort(self.offsets, offset)
        for old in self.offsets[:-KEPT]:
            self._remove(old)

    def remove_after(self, end_offset: int) -> None:
        """The log was cut back: remove snapshots of what is no longer in it."""
        for offset in self.offsets.copy():
            if offset > end_offset:
                self._remove(offset)

    def remove_before(self, start_offset: int) -> None:
        """The log start offset has moved: remove older snapshots."""
        for offset in self.offsets.copy():
            if offset < start_offset:
                self._remove(offset)

    def _remove(self, offset: int) -> None:
        self.offsets.remove(offset)
        with suppress(FileNotFoundError):  # it may have gone with its segment
            self._files.remove(self._path(offset))

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{SUFFIX}"
