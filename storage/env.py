"""The outside world: clock, randomness and the disk. Nothing else in the core may reach for them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from storage.disk import MAX_OPEN_FILES, Buffer, FileLock, Platform, Syncable, SystemFile, SystemFiles

__all__ = [
    "MAX_OPEN_FILES",
    "Buffer",
    "Clock",
    "Env",
    "File",
    "FileLock",
    "Files",
    "Lock",
    "Platform",
    "Rng",
    "Syncable",
    "SystemClock",
    "SystemFile",
    "SystemFiles",
    "SystemRng",
    "system_env",
]


class Clock(Protocol):
    def now_ms(self) -> int: ...
    def monotonic_ms(self) -> int: ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


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
    def path(self) -> str: ...
    def append(self, buffers: Sequence[Buffer]) -> None: ...
    def pread(self, n: int, pos: int) -> bytes: ...
    def retire(self) -> None: ...
    def sync(self) -> None: ...
    def truncate(self, n: int) -> None: ...
    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Files(Protocol):
    """The only door to the disk."""

    def open_append(self, path: str) -> File: ...
    def listdir(self, path: str) -> list[str]: ...
    def makedirs(self, path: str) -> None: ...
    def exists(self, path: str) -> bool: ...
    def file_size(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int: ...
    def read_file(self, path: str) -> bytes: ...
    def write_file_atomic(self, path: str, data: Buffer, sync: bool = True) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_tree(self, path: str) -> None: ...
    def sync_dir(self, path: str) -> None: ...
    def start_sync(self, file: Syncable) -> Callable[[], bool]: ...
    def lock(self, path: str) -> Lock: ...
    def free_bytes(self, path: str) -> tuple[int, int]: ...
    def close(self) -> None: ...


class Env:
    """Clock, randomness and files, as one thing to hand around."""

    __slots__ = ("clock", "files", "rng")

    def __init__(self, clock: Clock, rng: Rng, files: Files) -> None:
        self.clock = clock
        self.rng = rng
        self.files = files


def system_env(max_open_files: int = MAX_OPEN_FILES) -> Env:
    return Env(SystemClock(), SystemRng(), SystemFiles(max_open_files))
