"""A part of a segment's file that a reply consists of: read or sent when the client takes it."""

from __future__ import annotations

from typing import Final

from storage.files.env import File
from storage.files.errors import StorageError

_KEPT_BYTES: Final = 1 << 16


class FileSlice:
    """Whole batches of one segment, to be sent without being read into memory at once.

    Its bytes can be read even when the segment is deleted or compacted meanwhile; a descriptor it needs only
    while it is read, so a thousand slow readers do not hold a thousand of them.
    """

    __slots__ = ("_data", "_file", "_size", "asked", "end_offset", "keeps", "position")

    def __init__(self, file: File, position: int, size: int, end_offset: int, asked: int = 0) -> None:
        self._file = file
        self.position = position
        self._size = size
        self.end_offset = end_offset  # that of the batch after it
        # what counts against a Fetch's limits: where the limit leaves a batch out, all of it (Kafka sends a part of it)
        self.asked = asked if asked > size else size
        self.keeps = False  # what was read, for others that want it; they let go of this slice soon
        self._data: bytes | None = None

    def __len__(self) -> int:
        return self._size

    def pread(self, n: int, at: int) -> bytes:
        """Up to n bytes from byte `at` of the slice; fewer only at its end."""
        n = min(n, self._size - at)
        data = self._file.pread(n, self.position + at)
        while len(data) < n:
            more = self._file.pread(n - len(data), self.position + at + len(data))
            if not more:
                raise StorageError(f"A log ends {n - len(data)} bytes before the slice that is read from it")
            data += more
        return data

    def send(self, descriptor: int, n: int, at: int) -> int:
        """Have a socket take up to n bytes from byte `at` of the slice, without a copy of them here. How many it took.

        Errors:  OSError: the socket is full or closed, or the file cannot be sent so.
        """
        return self._file.send(descriptor, min(n, self._size - at), self.position + at)

    def lend(self) -> int:
        """A descriptor of its file, for another process; the caller closes it. Errors: OSError: there is none."""
        return self._file.lend()

    def read(self) -> bytes:
        """All of it. Errors: StorageError, OSError."""
        if self._data is not None:
            return self._data
        data = self.pread(self._size, 0)
        if self.keeps and self._size <= _KEPT_BYTES:
            self._data = data
        return data

    def part(self, start: int, stop: int, end_offset: int) -> FileSlice:
        """The batches between two bytes of the slice; `end_offset`: that of the batch after them."""
        return FileSlice(self._file, self.position + start, stop - start, end_offset)
