"""Up to where each log was synced, noted beside the logs: so that a start can tell an unsynced tail from damage.

A loss of power may take any page of what was not synced. Where a later page reached the disk and an earlier one did
not, whole batches follow a hole; in synced data the same picture is damage. One file for all logs of a data directory
says where the border is, FORMAT.md how. It never says more than was synced. It may say less: a mark is written after
each sync and not synced itself, so a loss of power may leave an older one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from struct import Struct
from typing import Final

from fastcrc.crc32 import iscsi as crc32c

from storage.files.cells import Cells
from storage.files.env import Files

FILE_NAME: Final = ".momus-synced"
MAGIC: Final = b"momusSY1".ljust(32, b"\0")
UNKNOWN: Final = -1  # the log is older than the file, and has not been synced since
NO_TOPIC: Final = bytes(16)  # the id of a log without one: that of the metadata

_SLOT: Final = Struct(">16siq")  # topic id, partition, synced end; then the CRC-32C of these
_CRC: Final = Struct(">I").pack
SLOT_BYTES: Final = _SLOT.size + 4

LogId = tuple[bytes, int]  # topic id and partition


def encode(log_id: LogId, end_offset: int) -> bytes:
    """A slot of the file."""
    data = _SLOT.pack(*log_id, end_offset)
    return data + _CRC(crc32c(data))


class SyncedEnds:
    """The file, open. Slots are given out by one thread; each is written by whoever syncs its log."""

    def __init__(self, cells: Cells) -> None:
        """Errors: OSError."""
        self.cells = cells
        self._slots: dict[LogId, int] = {}  # where each log's slot is
        self._free: list[int] = []
        self._ends: dict[LogId, int] = {}
        data = cells.read()
        for position in range(len(MAGIC), len(data) - SLOT_BYTES + 1, SLOT_BYTES):
            topic_id, index, end_offset = _SLOT.unpack_from(data, position)
            slot = data[position : position + SLOT_BYTES]
            if slot == encode((topic_id, index), end_offset) and (topic_id, index) not in self._slots:
                self._slots[topic_id, index] = position
                self._ends[topic_id, index] = end_offset
            else:  # torn, or never written: a log without a slot was never synced
                self._free.append(position)
        self._size = len(MAGIC) + max(0, len(data) - len(MAGIC)) // SLOT_BYTES * SLOT_BYTES

    @staticmethod
    def load(files: Files, path: str) -> SyncedEnds | None:
        """The file of this path; None when there is none, or it is of another version. Errors: OSError."""
        try:
            cells = files.open_cells(path)
        except FileNotFoundError:
            return None
        if not cells.read().startswith(MAGIC):
            cells.close()
            return None
        return SyncedEnds(cells)

    @staticmethod
    def create(files: Files, path: str, ends: Mapping[LogId, int]) -> SyncedEnds:
        """Begin the file, with what is known of the logs that are there already, or UNKNOWN.

        Durable: when this returns. Errors: OSError.
        """
        slots = b"".join(encode(log_id, end_offset) for log_id, end_offset in ends.items())
        files.write_file_atomic(path, MAGIC + slots)
        return SyncedEnds(files.open_cells(path))

    def end_of(self, log_id: LogId) -> int | None:
        """Below this offset a log was synced: 0 where it never was. None: it is unknown."""
        end_offset = self._ends.get(log_id, 0)
        return None if end_offset == UNKNOWN else end_offset

    def mark(self, log_id: LogId) -> SyncedMark:
        """The mark of a log that is opened."""
        position = self._slots.get(log_id)
        if position is None:
            if not self._free:
                self._free.append(self._size)
                self._size += SLOT_BYTES
            position = self._slots[log_id] = self._free.pop()
        return SyncedMark(self.cells, log_id, position, self._ends.get(log_id, 0))

    def forget(self, log_id: LogId) -> None:
        """The log was deleted; its topic's id does not come again, so what its slot says is harmless."""
        self._ends.pop(log_id, None)
        if log_id in self._slots:
            self._free.append(self._slots.pop(log_id))

    def keep(self, known: Collection[bytes]) -> None:
        """Forget the logs of all topics but those with these ids."""
        for log_id in [each for each in self._slots if each[0] not in known and each[0] != NO_TOPIC]:
            self.forget(log_id)

    def close(self) -> None:
        """Close the file; marks that are written later are lost."""
        self.cells.close()


class SyncedMark:
    """What the file says of one log."""

    __slots__ = ("_cells", "_log_id", "_position", "_was_unknown", "cuts", "end_offset")

    def __init__(self, cells: Cells, log_id: LogId, position: int, end_offset: int) -> None:
        self._cells = cells
        self._log_id = log_id
        self._position = position
        self.end_offset = end_offset
        self._was_unknown = end_offset == UNKNOWN
        self.cuts = 0  # how often the log was cut back: a sync that began before a cut has nothing to say after it

    def opened(self, synced_offset: int) -> None:
        """The log is open, and synced so far.

        Durable: when this returns, where it was unknown before: it must not be unknown again. Errors: OSError.
        """
        if self.end_offset < synced_offset:
            self.note(synced_offset, self.cuts)
        if self._was_unknown:
            self._cells.sync()
            self._was_unknown = False

    def note(self, end_offset: int, cuts: int) -> None:
        """A sync has ended that began after so many cuts: everything below an offset is synced. From any thread.

        Where the mark cannot be written it says less than it could.
        """
        slot = encode(self._log_id, end_offset)
        with self._cells.lock:
            if cuts == self.cuts:
                self.end_offset = end_offset
                try:
                    self._cells.write(slot, self._position)
                except OSError:
                    return

    def cut(self, end_offset: int) -> None:
        """The log is about to be cut back: what comes after this offset is not synced.

        Durable: when this returns. Errors: OSError: the log must stay as it is.
        """
        with self._cells.lock:
            self.cuts += 1
            if self.end_offset > end_offset:
                self._cells.write(encode(self._log_id, end_offset), self._position)
                self._cells.sync()
                self.end_offset = end_offset
