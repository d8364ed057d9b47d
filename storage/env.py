"""The outside world: clock, randomness and the disk. Nothing else in the core may reach for them.

Files keeps a bounded pool of open handles: a partition's file is opened when it is needed and closed when
others need the descriptor more, so that ten thousand partitions live within two thousand descriptors.
A file whose name is about to go is retired: it takes its handle out of the pool, and the handle closes when the
last slice that is read from it is gone. No counting of our own.
"""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from storage.errors import LockedError

Buffer = bytes | bytearray | memoryview

MAX_OPEN_FILES: Final = 512
_IOV_MAX: Final = 1024
_O_BINARY: Final = getattr(os, "O_BINARY", 0)
_O_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)
_OPEN_FLAGS: Final = os.O_RDWR | os.O_APPEND | _O_BINARY | _O_CLOEXEC


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


class Syncable(Protocol):
    def sync(self) -> object: ...


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


class Platform:
    """Which system calls there are; a test turns them off to force the fallbacks."""

    __slots__ = ("fdatasync", "pread", "writev")

    def __init__(self, *, writev: bool = True, pread: bool = True, fdatasync: bool = True) -> None:
        self.writev: Any = getattr(os, "writev", None) if writev else None
        self.pread: Any = getattr(os, "pread", None) if pread else None
        # macOS has fsync only, and so has Windows
        self.fdatasync: Any = getattr(os, "fdatasync", os.fsync) if fdatasync else os.fsync


class Handle:
    """An open descriptor that closes itself when nobody holds it any more."""

    __slots__ = ("_lock", "_platform", "fd")

    def __init__(self, fd: int, platform: Platform) -> None:
        self.fd = fd
        self._platform = platform
        self._lock = None if platform.pread else threading.Lock()

    def pread(self, n: int, pos: int) -> bytes:
        if self._lock is None:
            data: bytes = self._platform.pread(self.fd, n, pos)
            return data
        with self._lock:
            os.lseek(self.fd, pos, os.SEEK_SET)
            return os.read(self.fd, n)

    def __del__(self, close: Any = os.close) -> None:
        close(self.fd)


class SystemFiles:
    """Files on the real disk."""

    def __init__(self, max_open_files: int = MAX_OPEN_FILES, platform: Platform | None = None) -> None:
        self.max_open_files = max(1, max_open_files)
        self.platform = platform or Platform()
        self._pool: OrderedDict[SystemFile, Handle] = OrderedDict()
        # log.sync() opens handles from another thread
        self._lock = threading.Lock()

    @property
    def open_handles(self) -> int:
        return len(self._pool)

    # -- the pool

    def handle(self, file: SystemFile) -> Handle:
        with self._lock:
            handle = self._pool.get(file)
            if handle is not None:
                self._pool.move_to_end(file)
                return handle
            while len(self._pool) >= self.max_open_files:
                self._close_oldest()
            # a deleted file that somebody still names must not come back as an empty one
            flags = _OPEN_FLAGS if file.size else _OPEN_FLAGS | os.O_CREAT
            handle = Handle(self._open(file.path, flags), self.platform)
            self._pool[file] = handle
            file._handle = handle
            return handle

    def _open(self, path: str, flags: int) -> int:
        try:
            return os.open(path, flags, 0o644)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._pool:
                raise
        for _ in range(max(1, len(self._pool) // 4)):  # sockets took our descriptors: give some back
            self._close_oldest()
        return os.open(path, flags, 0o644)

    def _close_oldest(self) -> None:
        file, _ = self._pool.popitem(last=False)
        file._handle = None

    def forget(self, file: SystemFile) -> None:
        with self._lock:
            self._pool.pop(file, None)
            file._handle = None

    # -- names

    def open_append(self, path: str) -> SystemFile:
        return SystemFile(self, path)

    def listdir(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def makedirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def file_size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def read_file(self, path: str) -> bytes:
        with open(path, "rb") as stream:
            return stream.read()

    def write_file_atomic(self, path: str, data: Buffer, sync: bool = True) -> None:
        """Readers and a crash find the old content or the new, never a mix."""
        temporary = path + ".tmp"
        with open(temporary, "wb") as stream:
            stream.write(data)
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, path)
        if sync:
            self.sync_dir(os.path.dirname(path))

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        import shutil

        shutil.rmtree(path, ignore_errors=True)

    def sync_dir(self, path: str) -> None:
        if os.name == "nt":  # a directory cannot be opened there, and NTFS journals names
            return
        fd = os.open(path or ".", os.O_RDONLY | _O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def start_sync(self, file: Syncable) -> Callable[[], bool]:
        """Sync beside the caller; what is returned says whether it is done, and raises what it raised."""
        outcome: list[OSError | None] = []

        def run() -> None:
            try:
                file.sync()
            except OSError as error:
                outcome.append(error)
            else:
                outcome.append(None)

        def is_done() -> bool:
            if outcome and outcome[0] is not None:
                raise outcome[0]
            return bool(outcome)

        threading.Thread(target=run, name="momus-sync", daemon=True).start()
        return is_done

    def lock(self, path: str) -> FileLock:
        return FileLock(path)

    def free_bytes(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume, as DescribeLogDirs reports them."""
        import shutil

        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def close(self) -> None:
        with self._lock:
            while self._pool:
                self._close_oldest()


class SystemFile:
    """A file by name; its descriptor is borrowed from the pool for each use."""

    __slots__ = ("_files", "_handle", "path", "size")

    def __init__(self, files: SystemFiles, path: str) -> None:
        self._files = files
        self.path = path
        self._handle: Handle | None = None
        try:
            self.size = os.stat(path).st_size
        except FileNotFoundError:
            self.size = 0

    def append(self, buffers: Sequence[Buffer]) -> None:
        """All of it, or OSError with self.size unchanged: then the file may hold a part, to be cut back."""
        # a hot file need not be moved up in the pool each time: a use after eviction opens it again
        handle = self._handle or self._files.handle(self)
        written = 0
        for at in range(0, len(buffers), _IOV_MAX):
            part = buffers if len(buffers) <= _IOV_MAX else buffers[at : at + _IOV_MAX]
            written += self._write(handle.fd, part)
        self.size += written

    def _write(self, fd: int, buffers: Sequence[Buffer]) -> int:
        writev = self._files.platform.writev
        total = sum(map(len, buffers))
        done: int = writev(fd, buffers) if writev is not None else 0
        if done != total:  # write(2) may take less than it was given; the next call says why
            rest = memoryview(b"".join(buffers))[done:]
            while len(rest):
                rest = rest[os.write(fd, rest) :]
        return total

    def pread(self, n: int, pos: int) -> bytes:
        return (self._handle or self._files.handle(self)).pread(n, pos)

    def retire(self) -> None:
        """The name goes now: whoever still reads keeps this object, and by it the open file, until it is done."""
        try:
            handle = self._files.handle(self)
        except OSError:  # out of descriptors, or never made: then nobody can be reading it for long
            self.close()
            return
        self.close()
        if os.name != "nt":  # an open file cannot be deleted there
            self._handle = handle

    def sync(self) -> None:
        handle = self._files.handle(self)
        self._files.platform.fdatasync(handle.fd)

    def truncate(self, n: int) -> None:
        os.ftruncate(self._files.handle(self).fd, n)
        self.size = n

    def close(self) -> None:
        self._files.forget(self)


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
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _lock(fd: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        locking: Any = vars(msvcrt)["locking"]
        locking(fd, vars(msvcrt)["LK_NBLCK"], 1)
    else:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
