"""The disk: files by name, and a bounded pool of the descriptors that are open.

A partition's file is opened when it is needed and closed when others need the descriptor more, so that ten thousand
partitions live within two thousand descriptors. A file whose name is about to go is retired: it takes its handle out
of the pool, and the handle closes when the last slice that is read from it is gone. No counting of our own.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from typing import Final, Protocol

from storage.clock.clock import SystemClock
from storage.files.cells import SystemCells
from storage.files.disk_thread import DiskThread, Work
from storage.files.handle import Handle, Platform
from storage.files.lock import FileLock
from storage.files.troubles import SYNC, WRITE, Troubles, find_trouble

Buffer = bytes | bytearray | memoryview

MAX_OPEN_FILES: Final = 512
_IOV_MAX: Final = 1024
_O_BINARY: Final = getattr(os, "O_BINARY", 0)
_O_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)
_OPEN_FLAGS: Final = os.O_RDWR | os.O_APPEND | _O_BINARY | _O_CLOEXEC


class Source(Protocol):
    """Files that share bytes with others."""

    shared: int  # counts up whenever they do: then a file must be asked again before it is changed


PRIVATE_MODE: Final = 0o600


class SystemFiles:
    """Files on the real disk. What the methods of env.Files do is said there."""

    def __init__(self, max_open_files: int = MAX_OPEN_FILES, platform: Platform | None = None) -> None:
        self.max_open_files = max(1, max_open_files)
        self.platform = platform or Platform()
        self.troubles: Troubles = {}
        self.shared = 1  # counts up whenever other names are made for files here: those must be looked at again
        self.syncs = False  # as env.Files says it; so must a copy of it
        self._pool: OrderedDict[SystemFile, Handle] = OrderedDict()
        self._lock = threading.Lock()  # log.sync() opens handles from another thread
        self.disk_thread = DiskThread()
        self.is_private: Callable[[str], bool] = lambda path: False  # files that the owner alone may read

    def share(self, *, syncs: bool = False) -> SystemFiles:
        """The same disk and pool of descriptors for another cluster, with troubles of its own; `syncs`: as below."""
        other = copy(self)
        other.troubles = {}
        other.syncs = syncs
        return other

    @property
    def open_handles(self) -> int:
        """How many descriptors the pool has open."""
        return len(self._pool)

    # -- the pool

    def handle(self, file: SystemFile) -> Handle:
        """The open descriptor of a file; the one used longest ago makes room. Errors: OSError."""
        with self._lock:
            handle = self._pool.get(file)
            if handle is not None:
                self._pool.move_to_end(file)
                return handle
            while len(self._pool) >= self.max_open_files:
                self._close_oldest()
            # a deleted file that is still referred to must not come back as an empty one
            flags = _OPEN_FLAGS if file.size else _OPEN_FLAGS | os.O_CREAT
            handle = Handle(self._open(file.path, flags), self.platform)
            self._pool[file] = handle
            file._handle = handle
            return handle

    def _open(self, path: str, flags: int) -> int:
        try:
            return os.open(path, flags, self._mode(path))
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._pool:
                raise
        for _ in range(max(1, len(self._pool) // 4)):  # sockets took our descriptors: give some back
            self._close_oldest()
        return os.open(path, flags, self._mode(path))

    def _mode(self, path: str) -> int:
        return PRIVATE_MODE if self.is_private(path) else 0o644

    def _close_oldest(self) -> None:
        file, _ = self._pool.popitem(last=False)
        file._handle = None

    def forget(self, file: SystemFile) -> None:
        """Take a file's descriptor out of the pool; it closes after the last read."""
        with self._lock:
            self._pool.pop(file, None)
            file._handle = None

    # -- names

    def open_append(self, path: str) -> SystemFile:
        return SystemFile(self, path)

    def open_cells(self, path: str) -> SystemCells:
        return SystemCells(self._open(path, os.O_RDWR | _O_BINARY | _O_CLOEXEC), self.platform.fdatasync)

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

    def file_clock_ms(self) -> int:
        return SystemClock().now_ms()

    def read_file(self, path: str) -> bytes:
        with open(path, "rb") as stream:
            return stream.read()

    def write_file_atomic(self, path: str, data: Buffer, sync: bool = True) -> None:
        """Readers and a crash find the old content or the new, never a mix."""
        temporary = path + ".tmp"
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, self._mode(path))) as stream:
            stream.write(data)
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, path)
        if sync:
            self.sync_dir(os.path.dirname(path))

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def adopt(self, source: Source, old: str, new: str) -> None:
        try:
            if os.name == "nt":  # a file with a second name cannot be replaced there while it is being read
                raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
            os.link(old, new)
        except FileNotFoundError:
            raise
        except OSError:  # no links on this file system, or too many
            _copy(old, new)
        source.shared += 1

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        import shutil  # 1.5 ms, and a start needs it rarely

        shutil.rmtree(path, ignore_errors=True)

    def sync_dir(self, path: str) -> None:
        if os.name == "nt":  # a directory cannot be opened there, and NTFS flush states names
            return
        fd = os.open(path or ".", os.O_RDONLY | _O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def start(self, work: Work) -> Callable[[], bool]:
        return self.disk_thread.start(work)

    def lock(self, path: str) -> FileLock:
        return FileLock(path)

    def free_bytes(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume, as DescribeLogDirs reports them."""
        import shutil  # 1.5 ms, and a start needs it rarely

        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def close(self) -> None:
        with self._lock:
            while self._pool:
                self._close_oldest()


class SystemFile:
    """env.File on the real disk: a name; its descriptor is borrowed from the pool for each use."""

    __slots__ = ("_asked", "_files", "_handle", "path", "size")

    def __init__(self, files: SystemFiles, path: str) -> None:
        self._files = files
        self.path = path
        self._asked = 0  # as files.shared was when this file was known to have one name
        self._handle: Handle | None = None
        try:
            self.size = os.stat(path).st_size
        except FileNotFoundError:
            self.size = 0

    def append(self, buffers: Sequence[Buffer]) -> None:
        """All of it, or OSError with self.size unchanged: then the file may hold a part, to be cut back."""
        files = self._files
        if self._asked != files.shared:
            self._own()
        # a hot file need not be moved up in the pool each time: a use after eviction opens it again
        handle = self._handle or files.handle(self)
        if files.troubles:
            self._meet_trouble(handle.fd, buffers)
        if len(buffers) == 1:  # as is usual
            data = buffers[0]
            size, done = len(data), os.write(handle.fd, data)
            if done != size:
                self._write_rest(handle.fd, buffers, done)
            self.size += size
            return
        written, writev = 0, self._files.platform.writev
        for at in range(0, len(buffers), _IOV_MAX):
            part = buffers[at : at + _IOV_MAX]
            size = sum(map(len, part))
            done = writev(handle.fd, part) if writev is not None else 0
            if done != size:
                self._write_rest(handle.fd, part, done)
            written += size
        self.size += written

    def _meet_trouble(self, fd: int, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        found = find_trouble(self._files.troubles, WRITE, self.path, len(data))
        if found is not None:
            os.write(fd, data[: found.short_bytes])
            raise OSError(found.errno, os.strerror(found.errno), self.path)

    def _write_rest(self, fd: int, buffers: Sequence[Buffer], done: int) -> None:
        """write(2) may take less than it was given; the next call says why."""
        rest = memoryview(b"".join(buffers))[done:]
        while len(rest):
            sent = os.write(fd, rest)  # not within the slice: mypyc works out its bounds twice
            rest = rest[sent:]

    def pread(self, n: int, pos: int) -> bytes:
        return (self._handle or self._files.handle(self)).pread(n, pos)

    def send(self, descriptor: int, n: int, pos: int) -> int:
        return os.sendfile(descriptor, (self._handle or self._files.handle(self)).fd, pos, n)

    def lend(self) -> int:
        return os.dup((self._handle or self._files.handle(self)).fd)

    def retire(self) -> None:
        """The name goes now: whoever still reads keeps this object, and by it the open file, until it is done."""
        try:
            handle = self._files.handle(self)
        except OSError:  # out of descriptors, or never made: then no reader can have it open for long
            self.close()
            return
        self.close()
        if os.name != "nt":  # an open file cannot be deleted there
            self._handle = handle
            self._files.disk_thread.begin()
            handle.close_with(
                self._files.disk_thread.close
            )  # who lets it go last need not wait until its bytes are freed

    def sync(self) -> None:
        handle = self._files.handle(self)
        if self._files.troubles:
            found = find_trouble(self._files.troubles, SYNC, self.path, 0)
            if found is not None:
                raise OSError(found.errno, os.strerror(found.errno), self.path)
        self._files.platform.fdatasync(handle.fd)

    def truncate(self, n: int) -> None:
        if self._asked != self._files.shared:
            self._own()
        os.ftruncate(self._files.handle(self).fd, n)
        self.size = n

    def _own(self) -> None:
        """Before a change: if the file has another name, go on with a copy. Errors: OSError: nothing has changed."""
        files = self._files
        asked = files.shared
        try:
            names = os.stat(self.path).st_nlink
        except FileNotFoundError:
            names = 1
        if names > 1:
            copied = self.path + ".tmp"  # a start removes what a crash leaves of it
            _copy(self.path, copied, sync=files.syncs)
            os.replace(copied, self.path)
            if files.syncs:  # a thread may have synced the other file meanwhile: the copy must be as durable
                files.sync_dir(os.path.dirname(self.path))
            self.close()
        self._asked = asked

    def close(self) -> None:
        self._files.forget(self)


def _copy(old: str, new: str, *, sync: bool = False) -> None:
    """Copy a file. File systems that can share its blocks do."""
    with open(old, "rb") as source, open(new, "wb") as target:
        os.chmod(new, stat.S_IMODE(os.fstat(source.fileno()).st_mode))
        left = os.fstat(source.fileno()).st_size
        try:
            while left > 0:
                done = os.copy_file_range(source.fileno(), target.fileno(), left)
                left = left - done if done else -1
        except (OSError, AttributeError):  # not on every system, nor on all file systems
            left = -1
        if left < 0:
            source.seek(0)
            target.seek(0)
            target.truncate()
            while chunk := source.read(1 << 20):
                target.write(chunk)
        if sync:
            target.flush()
            os.fsync(target.fileno())
