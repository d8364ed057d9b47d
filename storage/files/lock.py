"""A lock on a file of the real disk, which one process at a time has."""

from __future__ import annotations

import os
from typing import Any, Final

from storage.files.errors import LockedError

_O_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)


class FileLock:
    """An exclusive lock that the system drops when the process dies, however it dies."""

    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | _O_CLOEXEC, 0o644)
        try:
            _lock(fd)
        except OSError:
            os.close(fd)
            raise LockedError(f"{path} is held by another process: is a broker using it?") from None
        self._fd: int | None = fd

    def release(self) -> None:
        """Let others have it; nothing if it was released before."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _lock(fd: int) -> None:
    try:
        import fcntl  # not on every system
    except ImportError:
        import msvcrt  # not on every system

        locking: Any = vars(msvcrt)["locking"]
        locking(fd, vars(msvcrt)["LK_NBLCK"], 1)
    else:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
