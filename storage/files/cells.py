"""Small files that are written in place: fields of a fixed size, each written whole and within one sector of a disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, Protocol

from storage.files.inode import Inode

_PWRITE: Final = getattr(os, "pwrite", None)  # not on every system


class Cells(Protocol):
    """A small file that exists, open for writing in place. Several threads may use it."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """For a user who looks before he writes. It is held for microseconds."""

    def read(self) -> bytes:
        """All of it. Errors: OSError."""

    def write(self, data: bytes, position: int) -> None:
        """Write within one sector, or at the end.

        Durable: survives kill -9 when this returns. A loss of power leaves the old bytes or the new ones.
        Errors:  OSError: the bytes may be mixed.
        """

    def sync(self) -> None:
        """Durable: what was written survives loss of power. Errors: OSError."""

    def close(self) -> None:
        """Give the descriptor back. What is written later is lost, without an error."""


class SystemCells:
    """Cells on the real disk."""

    __slots__ = ("_fd", "_sync", "lock")

    def __init__(self, fd: int, sync: Callable[[int], object]) -> None:
        self._fd = fd
        self._sync = sync
        self.lock = threading.Lock()

    def read(self) -> bytes:
        os.lseek(self._fd, 0, os.SEEK_SET)
        return os.read(self._fd, os.fstat(self._fd).st_size)

    def write(self, data: bytes, position: int) -> None:
        if self._fd < 0:
            return
        if _PWRITE is None:
            os.lseek(self._fd, position, os.SEEK_SET)
            os.write(self._fd, data)
        else:
            _PWRITE(self._fd, data, position)

    def sync(self) -> None:
        if self._fd >= 0:
            self._sync(self._fd)

    def close(self) -> None:
        with self.lock:
            fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)


class MemoryCells:
    """Cells of the simulated disk."""

    __slots__ = ("_change", "_inode", "lock")

    def __init__(self, inode: Inode, change: Callable[[str], object]) -> None:
        self._inode = inode
        self._change = change  # told "cell" or "sync" before it happens
        self.lock: AbstractContextManager[object] = nullcontext()

    def read(self) -> bytes:
        return bytes(self._inode.data)

    def write(self, data: bytes, position: int) -> None:
        self._change("cell")
        self._inode.overwrite(data, position)

    def sync(self) -> None:
        self._change("sync")
        self._inode.settle()

    def close(self) -> None:
        """Nothing is held open."""
