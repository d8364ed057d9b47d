"""The `.snapshot` files beside a log: Kafka's image of the producers at an offset, read instead of the log.

The file at offset N holds the state before N. Two are kept, as in Kafka: if the newest is damaged, the one before it
costs only some more reading.

Format (big-endian): i16 version 1 | u32 CRC-32C of all from 6 on | i32 count, then for each: i64 producer id
| i16 epoch | i32 last sequence | i64 last offset | i32 offset delta | i64 timestamp | i32 coordinator epoch
| i64 first offset of the open transaction (-1: none). What follows is ignored, as in Kafka.

Beside each lies a `.momus-producers` file with what Kafka does not know: 8 bytes `momusPR1` | u32 CRC-32C of all that
follows | u32 the CRC in the snapshot that it belongs to | i64 offset of the last marker that aborted a transaction
(-1: none), which shows whether a `.txnindex` is lost | for each producer i32 sequences known to be written up to the
last one, without a gap | for each i32 time of its last marker after its last batch. Without this file, or
with that of another snapshot, only the last batch of each producer is known, as in Kafka.

Neither is synced: one damaged by a power cut fails its CRC, and the log is read instead.
"""

from __future__ import annotations

import logging
import struct
import sys
from array import array
from bisect import insort
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from broker.partitions.producer_table import ProducerSnapshot, ProducerTable
from storage.files.env import Files

logger = logging.getLogger("momus.partition")

SUFFIX: Final = ".snapshot"
OURS_SUFFIX: Final = ".momus-producers"
KEPT: Final = 2
NO_OFFSET: Final = -1
MOST_WRITTEN: Final = 2**30  # half of all sequences: what is further behind could as well be ahead
_VERSION: Final = 1
_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_OURS_MAGIC: Final = b"momusPR1"
_OURS_CRC: Final = Struct(">I")
_OURS_HEAD: Final = Struct(">Iq")  # the snapshot's CRC, the last aborting marker
_PRODUCERS_A_STEP: Final = 2000  # encoded in one step: about 2 ms
UNTOLD: Final = -2  # a snapshot of Kafka: it does not name the last aborting marker
NONE_ABORTED: Final = -1


class Snapshot(NamedTuple):
    """The content of a snapshot file and of the one beside it."""

    producers: list[ProducerSnapshot]
    last_aborted_offset: int = UNTOLD


class SnapshotFiles(NamedTuple):
    """The bytes of a `.snapshot` file, and of the `.momus-producers` file beside it."""

    kafkas: bytes
    ours: bytes


def encode_steps(
    producers: Iterable[ProducerSnapshot], last_aborted_offset: int
) -> Generator[None, None, SnapshotFiles]:
    """The content of both files, made in steps of about 2 ms."""
    steps: list[bytes] = []  # joined step by step: joining a million entries at the end takes too long
    entries: list[bytes] = []
    written, delays = array("i"), array("i")
    pack = _ENTRY.pack
    for producer in producers:
        entries.append(pack(*producer[:8]))
        written.append(producer[8])
        delays.append(producer[9])
        if len(entries) == _PRODUCERS_A_STEP:
            steps.append(b"".join(entries))
            entries.clear()
            yield
    body = b"".join([_COUNT.pack(len(written)), *steps, *entries])
    crc = crc32c(body)
    yield
    if sys.byteorder == "little":
        written.byteswap()
        delays.byteswap()
    ours = b"".join([_OURS_HEAD.pack(crc, last_aborted_offset), written.tobytes(), delays.tobytes()])
    return SnapshotFiles(_HEAD.pack(_VERSION, crc) + body, b"".join([_OURS_MAGIC, _OURS_CRC.pack(crc32c(ours)), ours]))


def decode_snapshot(kafkas: bytes, ours: bytes = b"") -> Snapshot:
    """Decode a snapshot, with what the file beside it adds.

    Errors:  ValueError: the snapshot is damaged. The file beside it may be: then it adds nothing.
    """
    try:
        version, crc = _HEAD.unpack_from(kafkas)
        body = memoryview(kafkas)[_HEAD.size :]
        (count,) = _COUNT.unpack_from(body)
    except struct.error:
        raise ValueError("it ends too early") from None
    if version != _VERSION:
        raise ValueError(f"version {version} is unknown")
    if crc32c(body) != crc:
        raise ValueError("its CRC is wrong")
    end = _COUNT.size + count * _ENTRY.size
    if not 0 <= count <= (len(body) - _COUNT.size) // _ENTRY.size:
        raise ValueError(f"{count} producers do not fit {len(body)} bytes")
    entries = _ENTRY.iter_unpack(body[_COUNT.size : end])
    columns = _decode_ours(ours, crc, count)
    if columns is None:
        return Snapshot([ProducerSnapshot(*entry) for entry in entries], UNTOLD)
    last_aborted_offset, written, delays = columns
    producers = [
        ProducerSnapshot(*(*entry, known, delay)) for entry, known, delay in zip(entries, written, delays, strict=True)
    ]
    return Snapshot(producers, last_aborted_offset)


def _decode_ours(ours: bytes, snapshot_crc: int, count: int) -> tuple[int, array[int], array[int]] | None:
    """The last aborting marker, and two numbers for each producer; None: damaged, or of another snapshot."""
    start = len(_OURS_MAGIC) + _OURS_CRC.size
    at = start + _OURS_HEAD.size
    if not ours.startswith(_OURS_MAGIC) or len(ours) != at + 8 * count:
        return None
    if _OURS_CRC.unpack_from(ours, len(_OURS_MAGIC))[0] != crc32c(memoryview(ours)[start:]):
        return None
    of_crc, last_aborted_offset = _OURS_HEAD.unpack_from(ours, start)
    if of_crc != snapshot_crc:
        return None
    written, delays = array("i", ours[at : at + 4 * count]), array("i", ours[at + 4 * count :])
    if sys.byteorder == "little":
        written.byteswap()
        delays.byteswap()
    return last_aborted_offset, written, delays


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
            for name in names:
                if name.endswith(OURS_SUFFIX) and name[: -len(OURS_SUFFIX)] not in stems:
                    self._files.remove(f"{self._directory}/{name}")  # a crash left it, or Kafka removed its snapshot
        return self._known

    def latest(self, end_offset: int) -> tuple[int, Snapshot] | None:
        """Offset and content of the newest undamaged snapshot up to this end of the log."""
        for offset in reversed(self.offsets.copy()):
            if offset > end_offset:
                continue
            try:
                return offset, self._read(offset)
            except (ValueError, OSError) as error:
                self.refuse(offset, str(error))
        return None

    def _read(self, offset: int) -> Snapshot:
        ours = b""
        with suppress(OSError):
            ours = self._files.read_file(self._path(offset, OURS_SUFFIX))
        return decode_snapshot(self._files.read_file(self._path(offset)), ours)

    def refuse(self, offset: int, why: str) -> None:
        """Log and remove an unusable snapshot."""
        logger.warning("deleting the unusable producer snapshot %s: %s", self._path(offset), why)
        self._remove(offset)

    def write(self, offset: int, data: SnapshotFiles) -> None:
        """Write the snapshot at an offset, and remove all but the newest."""
        self._files.write_file_atomic(self._path(offset, OURS_SUFFIX), data.ours, sync=False)
        self._files.write_file_atomic(self._path(offset), data.kafkas, sync=False)
        if offset not in self.offsets:
            insort(self.offsets, offset)
        for old in self.offsets[:-KEPT]:
            self._remove(old)

    def remove_after(self, end_offset: int) -> None:
        """The log was cut back: remove snapshots of what is no longer in it.

        Durable: when this returns, or a loss of power could bring them back when the log has grown beyond them. An
        error of this sync is passed over: a log is cut back after a failed sync too, and the partition has to go on.
        """
        lost = [offset for offset in self.offsets if offset > end_offset]
        for offset in lost:
            self._remove(offset)
        if lost:
            with suppress(OSError):
                self._files.sync_dir(self._directory)

    def remove_before(self, start_offset: int) -> None:
        """The log start offset has moved: remove older snapshots."""
        for offset in self.offsets.copy():
            if offset < start_offset:
                self._remove(offset)

    def _remove(self, offset: int) -> None:
        self.offsets.remove(offset)
        for suffix in (SUFFIX, OURS_SUFFIX):
            with suppress(FileNotFoundError):  # Kafka wrote only the first
                self._files.remove(self._path(offset, suffix))

    def _path(self, offset: int, suffix: str = SUFFIX) -> str:
        return f"{self._directory}/{offset:020d}{suffix}"


def snapshot_of(table: ProducerTable, open_: dict[int, int]) -> Iterator[ProducerSnapshot]:
    """The rows of a table, with the first offsets of open transactions, by producer id."""
    for producer_id, (epoch, last, offset, delta, timestamp_ms, coordinator_epoch, written, delay) in table.items():
        first = open_.get(producer_id, NO_OFFSET)
        yield ProducerSnapshot(
            producer_id, epoch, last, offset, delta, timestamp_ms, coordinator_epoch, first, written, delay
        )


def rows_of(snapshot: Iterable[ProducerSnapshot]) -> tuple[list[tuple[int, tuple[int, ...]]], dict[int, int]]:
    """What `snapshot_of` was made from: rows by rising producer id, and first offsets of open transactions, rising."""
    rows: list[tuple[int, tuple[int, ...]]] = []
    open_: list[tuple[int, int]] = []
    for producer_id, epoch, last, offset, delta, timestamp_ms, coordinator_epoch, first, written, delay in snapshot:
        if offset >= 0 and written <= delta:
            written = delta + 1  # a snapshot of Kafka has one batch only
        written = min(written, MOST_WRITTEN)
        rows.append((producer_id, (epoch, last, offset, delta, timestamp_ms, coordinator_epoch, written, delay)))
        if first >= 0:
            open_.append((first, producer_id))
    return sorted(rows), {producer_id: first for first, producer_id in sorted(open_)}
