"""The outside world: clock, randomness and the disk. Nothing else in the core may reach for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from storage.clock.clock import Clock, SystemClock
from storage.files.cells import Cells
from storage.files.disk import MAX_OPEN_FILES, Buffer, Source, SystemFile, SystemFiles
from storage.files.disk_thread import Work
from storage.files.handle import Platform
from storage.files.lock import FileLock
from storage.files.troubles import Troubles

__all__ = [
    "MAX_OPEN_FILES",
    "Buffer",
    "Cells",
    "Clock",
    "Env",
    "File",
    "FileLock",
    "Files",
    "Lock",
    "Platform",
    "Rng",
    "Source",
    "SystemClock",
    "SystemFile",
    "SystemFiles",
    "SystemRng",
    "system_env",
]


class Rng(random.Random):
    """Random numbers and identifiers; seeded in tests, from the system otherwise."""

    def uuid_bytes(self) -> bytes:
        """A random (version 4) UUID that Kafka accepts: its text must not begin with a dash."""
        while True:
            raw = bytearray(self.getrandbits(128).to_bytes(16, "big"))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            if raw[0] >> 2 != 62:  # 62 is "-" in URL-safe base64
                return bytes(raw)


class SystemRng(random.SystemRandom, Rng):
    """Rng from the operating system: two brokers never draw the same ids."""


class File(Protocol):
    """One append-only file. Nothing exists on disk before the first append."""

    size: int

    @property
    def path(self) -> str:
        """Where it is."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all buffers at the end.

        Durable: survives kill -9 when this returns.
        Errors:  OSError: `size` is as before; the file may hold a part, which the caller cuts back.
        """

    def pread(self, n: int, pos: int) -> bytes:
        """Up to n bytes from byte pos; fewer only at the end of the file."""

    def send(self, descriptor: int, n: int, pos: int) -> int:
        """Have a socket take up to n bytes from byte pos, while it has room. How many it took; 0: no more are there.

        Errors:  OSError: it has no room (BlockingIOError), or cannot take bytes of this file so.
        """

    def lend(self) -> int:
        """A descriptor to read from, for another process; the caller closes it. Errors: OSError: there is none."""

    def retire(self) -> None:
        """Let the name go. Who reads this object reads on; the descriptor closes after the last reader."""

    def sync(self) -> None:
        """Durable: what was appended survives loss of power. Errors: OSError: what the disk holds is unknown."""

    def truncate(self, n: int) -> None:
        """Cut the file to n bytes."""

    def close(self) -> None:
        """Give the descriptor back; the next use opens the file again."""


class Lock(Protocol):
    def release(self) -> None:
        """Let others have it."""


class Files(Protocol):
    """The only door to the disk."""

    shared: int  # as Source
    syncs: bool  # what is written is relied on to survive loss of power

    @property
    def troubles(self) -> Troubles:
        """What a test wants to go wrong below some directories."""

    def open_append(self, path: str) -> File:
        """The file of a path, whether it exists or not."""

    def open_cells(self, path: str) -> Cells:
        """A small file that exists, to be written in place. Errors: FileNotFoundError."""

    def listdir(self, path: str) -> list[str]:
        """Sorted names; empty when there is no such directory."""

    def makedirs(self, path: str) -> None:
        """Make a directory and those above it, unless it exists."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""

    def file_size(self, path: str) -> int:
        """Bytes. Errors: FileNotFoundError."""

    def modified_ms(self, path: str) -> int:
        """When the file was last written, by the clock of file_clock_ms. Errors: FileNotFoundError."""

    def file_clock_ms(self) -> int:
        """Unix milliseconds by the clock that files are dated with: the machine's, on a disk."""

    def read_file(self, path: str) -> bytes:
        """All of a file. Errors: FileNotFoundError."""

    def write_file_atomic(self, path: str, data: Buffer, sync: bool = True) -> None:
        """Replace a file: readers and a crash find the old content or the new, never a mix.

        Durable: with sync, when this returns.
        """

    def rename(self, old: str, new: str) -> None:
        """Rename, replacing what has the new name. Durable: after sync_dir."""

    def adopt(self, source: Source, old: str, new: str) -> None:
        """Take a file of `source`, whose bytes both share. Whoever appends or truncates gets bytes of its own first.

        Durable: no. Errors: FileNotFoundError, OSError.
        """

    def remove(self, path: str) -> None:
        """Delete a file. Durable: after sync_dir. Errors: FileNotFoundError."""

    def remove_tree(self, path: str) -> None:
        """Delete a directory and all in it, as far as that goes."""

    def sync_dir(self, path: str) -> None:
        """Durable: the names in a directory survive loss of power."""

    def start(self, work: Work) -> Callable[[], bool]:
        """Have something done to the disk beside the caller, after all that was started before.

        The function returned tells whether that is done, and raises what the work raised.
        """

    def lock(self, path: str) -> Lock:
        """Take a lock that the system drops when the process dies. Errors: LockedError: another process has it."""

    def free_bytes(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume."""

    def close(self) -> None:
        """Give all descriptors back."""


class Env:
    """Clock, randomness and files, as one thing to hand around."""

    __slots__ = ("clock", "files", "rng")

    def __init__(self, clock: Clock, rng: Rng, files: Files) -> None:
        self.clock = clock
        self.rng = rng
        self.files = files


def system_env(max_open_files: int = MAX_OPEN_FILES) -> Env:
    """The machine's clock, randomness and disk."""
    return Env(SystemClock(), SystemRng(), SystemFiles(max_open_files))
