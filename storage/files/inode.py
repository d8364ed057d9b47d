"""A file of the simulated disk: its bytes, which several may share until one of them is changed."""

from __future__ import annotations


class Inode:
    """The bytes of a file in memory, apart from its name."""

    __slots__ = ("_is_shared", "data", "modified_ms", "replaced", "synced_bytes")

    def __init__(self, data: bytes = b"", synced_bytes: int = 0) -> None:
        self.data = bytearray(data)
        self.synced_bytes = synced_bytes
        self.modified_ms = 0
        self.replaced: dict[int, bytes] = {}  # what was in places that were written again, and not synced since
        self._is_shared = False

    def pread(self, n: int, pos: int) -> bytes:
        """Up to n bytes from byte pos."""
        return bytes(memoryview(self.data)[pos : pos + n])

    def share(self) -> Inode:
        """Another file with the same bytes, which are there once until one of the two is changed."""
        other = Inode()
        other.data, other.synced_bytes, other.modified_ms = self.data, self.synced_bytes, self.modified_ms
        self._is_shared = other._is_shared = True
        return other

    def own(self) -> None:
        """Before a change: have the bytes for itself alone."""
        if self._is_shared:
            self.data = bytearray(self.data)
            self._is_shared = False

    def overwrite(self, data: bytes, position: int) -> None:
        """Write in place, or at the end."""
        self.own()
        old = bytes(self.data[position : position + len(data)])
        if old:
            self.replaced.setdefault(position, old)
        self.data[position : position + len(data)] = data

    def settle(self) -> None:
        """All of it is synced."""
        self.synced_bytes = len(self.data)
        self.replaced.clear()

    def durable(self) -> bytes:
        """What a loss of power leaves at least."""
        data = bytearray(self.data[: self.synced_bytes])
        for position, old in self.replaced.items():
            if position < self.synced_bytes:
                data[position : position + len(old)] = old
        return bytes(data)
