"""A world without surprises, or with exactly the surprises a test asks for: manual clock, seeded randomness,
files in memory that can run full, break, write a part and lose what was not synced.

The same MemoryFiles is what a broker with flush=memory runs on.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from storage.clock.manual_clock import ManualClock
from storage.files.cells import MemoryCells
from storage.files.disk_thread import Work
from storage.files.env import Buffer, Clock, Env, Rng, Source
from storage.files.errors import LockedError
from storage.files.inode import Inode
from storage.files.sim_faults import ALL_KINDS, Fault, SimulatedCrash
from storage.files.troubles import SYNC, WRITE, Troubles, find_trouble


def sim_env(seed: int = 0, now_ms: int = 1_700_000_000_000, files: MemoryFiles | None = None) -> Env:
    """A clock that stands, seeded randomness and files in memory."""
    clock = ManualClock(now_ms)
    disk = files or MemoryFiles()
    disk.clock = clock
    return Env(clock, Rng(seed), disk)


class MemoryFiles:
    """Files that live as long as this object."""

    def __init__(self) -> None:
        # directory -> name -> file, or None for a directory
        self._names: dict[str, dict[str, Inode | None]] = {"": {}}
        # the same as the disk would have it if power went now
        self._durable: dict[str, dict[str, Inode | None]] = {"": {}}
        self._locks: set[str] = set()
        self._faults: list[Fault] = []
        self._dead = False
        self.troubles: Troubles = {}
        self.shared = 0
        self.syncs = True
        self.operations = 0
        # what files are dated with; without it their age is unknown
        self.clock: Clock | None = None

    # -- faults

    def inject(
        self,
        nth: int,
        *,
        kinds: Collection[str] = ("write",),
        error: int = errno.ENOSPC,
        short_bytes: int = 0,
        forever: bool = False,
    ) -> None:
        """Fail the nth operation of these kinds from now on; a write leaves short_bytes of itself."""
        self._faults.append(Fault(nth, kinds, OSError(error, os.strerror(error)), short_bytes, forever))

    def kill_at(self, nth: int, *, short_bytes: int = 0, kinds: Collection[str] = ALL_KINDS) -> None:
        """The process dies in its nth change of the disk: nothing after it happens."""
        death = SimulatedCrash(f"killed at operation {nth}")
        self._faults.append(Fault(nth, kinds, death, short_bytes, True))

    def heal(self) -> None:
        """Let injected errors end."""
        self._faults.clear()

    def crash(self, *, lose_unsynced: bool = False) -> MemoryFiles:
        """The disk as the next process finds it: after kill -9, or (lose_unsynced) after a power cut.

        A process that dies takes nothing along, and syncs nothing: what only the page cache held, it holds still.
        """
        after = MemoryFiles()
        copies: dict[int, Inode] = {}

        def copied(inode: Inode | None) -> Inode | None:
            if inode is not None and id(inode) not in copies:
                data = inode.durable() if lose_unsynced else bytes(inode.data)
                copy = copies[id(inode)] = Inode(data, inode.synced_bytes)
                copy.replaced = {} if lose_unsynced else dict(inode.replaced)
            return None if inode is None else copies[id(inode)]

        names = self._durable if lose_unsynced else self._names
        for directory in _reachable(names):
            after._names[directory] = {name: copied(inode) for name, inode in names[directory].items()}
            kept = self._durable.get(directory, {})
            after._durable[directory] = {name: copied(inode) for name, inode in kept.items()}
        return after

    def _operation(self, kind: str) -> int | None:
        """Count one change; the number of bytes a failing write still writes, or None when it succeeds."""
        if self._dead:
            raise SimulatedCrash("the process is dead")
        self.operations += 1
        for fault in self._faults:
            if kind not in fault.kinds:
                continue
            fault.left -= 1
            if fault.left == 0 or (fault.left < 0 and fault.forever):
                self._failing = fault
                return fault.short_bytes
        return None

    def _fail(self) -> None:
        error = self._failing.error
        self._dead = isinstance(error, SimulatedCrash)
        raise error

    def _change(self, kind: str) -> None:
        if self._operation(kind) is not None:
            self._fail()

    # -- names

    def _find(self, path: str) -> Inode:
        directory, _, name = path.rpartition("/")
        inode = self._names.get(directory, {}).get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def _entries(self, path: str) -> tuple[dict[str, Inode | None], str]:
        directory, _, name = path.rpartition("/")
        entries = self._names.get(directory)
        if entries is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return entries, name

    def open_append(self, path: str) -> MemoryFile:
        return MemoryFile(self, path)

    def open_cells(self, path: str) -> MemoryCells:
        return MemoryCells(self._find(path), self._change)

    def listdir(self, path: str) -> list[str]:
        return sorted(self._names.get(path.rstrip("/"), {}))

    def makedirs(self, path: str) -> None:
        path = path.rstrip("/")
        if path in self._names:
            return
        directory, _, name = path.rpartition("/")
        if directory not in self._names:
            self.makedirs(directory)
        self._change("mkdir")
        self._names[directory][name] = None
        self._names[path] = {}
        self._durable[path] = {}

    def exists(self, path: str) -> bool:
        directory, _, name = path.rstrip("/").rpartition("/")
        return name in self._names.get(directory, {})

    def file_size(self, path: str) -> int:
        return len(self._find(path).data)

    def modified_ms(self, path: str) -> int:
        return self._find(path).modified_ms

    def file_clock_ms(self) -> int:
        return self.clock.now_ms() if self.clock is not None else 0

    def read_file(self, path: str) -> bytes:
        return bytes(self._find(path).data)

    def write_file_atomic(self, path: str, data: Buffer, sync: bool = True) -> None:
        entries, name = self._entries(path)
        self._change("replace")
        inode = Inode(bytes(data), len(data) if sync else 0)
        entries[name] = inode
        if sync:
            self._durable[path.rpartition("/")[0]][name] = inode

    def rename(self, old: str, new: str) -> None:
        source, old_name = self._entries(old)
        target, new_name = self._entries(new)
        if old_name not in source:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
        self._change("rename")
        target[new_name] = source.pop(old_name)
        if target[new_name] is None:  # a directory takes everything below it along
            for names in (self._names, self._durable):
                for directory in [d for d in names if d == old or d.startswith(old + "/")]:
                    names[new + directory[len(old) :]] = names.pop(directory)

    def adopt(self, source: Source, old: str, new: str) -> None:
        assert isinstance(source, MemoryFiles), "bytes in memory are shared with bytes in memory"
        entries, name = self._entries(new)
        self._change("replace")
        entries[name] = source._find(old).share()
        source.shared += 1

    def remove(self, path: str) -> None:
        self._find(path)
        self._change("remove")
        entries, name = self._entries(path)
        del entries[name]

    def remove_tree(self, path: str) -> None:
        for name, inode in list(self._names.get(path, {}).items()):
            if inode is None:
                self.remove_tree(f"{path}/{name}")
            else:
                self.remove(f"{path}/{name}")
        if path in self._names:
            self._change("remove")
            entries, name = self._entries(path)
            entries.pop(name, None)
            del self._names[path]

    def sync_dir(self, path: str) -> None:
        path = path.rstrip("/")
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._change("sync_dir")
        self._durable[path] = dict(self._names[path])

    def start(self, work: Work) -> Callable[[], bool]:
        """At once: a simulated world has no second thread."""
        work()
        return lambda: True

    def lock(self, path: str) -> MemoryLock:
        if path in self._locks:
            raise LockedError(f"{path} is held by another process: is a broker using it?")
        self._locks.add(path)
        return MemoryLock(self._locks, path)

    def free_bytes(self, path: str) -> tuple[int, int]:
        return 1 << 40, 1 << 39

    def close(self) -> None:
        """Nothing is held open."""

    def discard(self) -> None:
        """Give all memory back. Whoever still holds a file finds it empty."""
        for entries in self._names.values():
            for inode in entries.values():
                if inode is not None:
                    inode.data = bytearray()
        self._names, self._durable = {"": {}}, {"": {}}


def _reachable(names: dict[str, dict[str, Inode | None]]) -> list[str]:
    """Directories that the root leads to; "data" and "/data" both hang below it."""
    found: list[str] = []
    todo = [""]
    while todo:
        directory = todo.pop()
        found.append(directory)
        for name, inode in names[directory].items():
            if inode is None:
                paths = (f"{directory}/{name}",) if directory else (name, "/" + name)
                todo += [path for path in paths if path in names]
    return found


class MemoryLock:
    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        """Let others have it."""
        self._locks.discard(self._path)


class MemoryFile:
    """One name; the bytes are shared by everybody who opened it."""

    __slots__ = ("_files", "_inode", "path", "size")

    def __init__(self, files: MemoryFiles, path: str) -> None:
        self._files = files
        self.path = path
        try:
            self._inode: Inode | None = files._find(path)
            self.size = len(self._inode.data)
        except FileNotFoundError:
            self._inode = None
            self.size = 0

    def _open(self) -> Inode:
        if self._inode is None:
            self._inode = self._files._find(self.path)
        return self._inode

    def append(self, buffers: Sequence[Buffer]) -> None:
        if self._inode is None and not self.size:
            entries, name = self._files._entries(self.path)
            if entries.get(name) is None:
                entries[name] = Inode()
        inode = self._open()
        inode.own()
        if self._files.troubles:
            self._meet_trouble(inode, buffers)
        short_bytes = self._files._operation("write")
        if short_bytes is not None:
            inode.data += b"".join(buffers)[:short_bytes]
            self._files._fail()
        data = inode.data
        for buffer in buffers:
            data += buffer
        self.size = len(data)
        if self._files.clock is not None:
            inode.modified_ms = self._files.clock.now_ms()

    def _meet_trouble(self, inode: Inode, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        found = find_trouble(self._files.troubles, WRITE, self.path, len(data))
        if found is not None:
            inode.data += data[: found.short_bytes]
            raise OSError(found.errno, os.strerror(found.errno), self.path)

    def pread(self, n: int, pos: int) -> bytes:
        return self._open().pread(n, pos)

    def send(self, descriptor: int, n: int, pos: int) -> int:
        with memoryview(self._open().data) as data:
            return os.write(descriptor, data[pos : pos + n])

    def lend(self) -> int:
        raise OSError(f"{self.path} is in memory")

    def retire(self) -> None:
        """The bytes stay with whoever holds this object."""
        if self._inode is None:
            with suppress(FileNotFoundError):
                self._open()

    def sync(self) -> None:
        inode = self._open()
        found = find_trouble(self._files.troubles, SYNC, self.path, 0)
        if found is not None:
            raise OSError(found.errno, os.strerror(found.errno), self.path)
        self._files._change("sync")
        inode.synced_bytes = len(inode.data)

    def truncate(self, n: int) -> None:
        inode = self._open()
        self._files._change("truncate")
        inode.own()
        del inode.data[n:]
        inode.synced_bytes = min(inode.synced_bytes, n)
        self.size = n

    def close(self) -> None:
        self._inode = None
