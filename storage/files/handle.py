"""An open descriptor that closes itself, and which system calls there are to use it with."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


class Platform:
    """Which system calls there are; a test turns them off to force the fallbacks."""

    __slots__ = ("fdatasync", "pread", "writev")

    def __init__(self, *, writev: bool = True, pread: bool = True, fdatasync: bool = True) -> None:
        self.writev: Any = getattr(os, "writev", None) if writev else None
        self.pread: Any = getattr(os, "pread", None) if pread else None
        # macOS has fsync only, and so has Windows
        self.fdatasync: Any = getattr(os, "fdatasync", os.fsync) if fdatasync else os.fsync


class Handle:
    """An open descriptor that closes itself when nothing refers to it any more."""

    __slots__ = ("_close", "_lock", "_platform", "fd")

    def __init__(self, fd: int, platform: Platform) -> None:
        self.fd = fd
        # at the interpreter's end this module may be empty before the last handle goes
        self._close: Callable[[int], object] = os.close
        self._platform = platform
        self._lock = None if platform.pread else threading.Lock()

    def close_with(self, close: Callable[[int], object]) -> None:
        """Have the descriptor closed by another function than os.close."""
        self._close = close

    def pread(self, n: int, pos: int) -> bytes:
        """Up to n bytes from byte pos."""
        if self._lock is None:
            data: bytes = self._platform.pread(self.fd, n, pos)
            return data
        with self._lock:
            os.lseek(self.fd, pos, os.SEEK_SET)
            return os.read(self.fd, n)

    def __del__(self) -> None:
        self._close(self.fd)
