"""The consumer embedded protocol: the bytes that classic consumers put into JoinGroup and SyncGroup.

The broker reads them only to convert groups; for classic groups it passes them on.

    ConsumerProtocolSubscription  i16 version, [string] topics, nullable bytes user data, v1 owned [topic, [i32]],
                                  v2 i32 generation, v3 nullable string rack
    ConsumerProtocolAssignment    i16 version, [string topic, [i32] partitions], nullable bytes user data

New versions only append fields: a version above the newest known one is read as that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, NamedTuple

NEWEST: Final = 3
_SHORT, _INT = Struct(">h"), Struct(">i")


class EmbeddedSubscription(NamedTuple):
    """The topics a consumer subscribes to, and the partitions it owns."""

    version: int
    topics: frozenset[str]
    owned: Mapping[str, tuple[int, ...]]
    rack_id: str | None


class _Reader:
    """Reads one field after the other. Errors: ValueError: the bytes end before the field does."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        start, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._data):
            raise ValueError(f"{size} bytes at {start} of {len(self._data)}")
        return self._data[start : self._at]

    def int16(self) -> int:
        """An i16."""
        return int(_SHORT.unpack(self.take(2))[0])

    def int32(self) -> int:
        """An i32."""
        return int(_INT.unpack(self.take(4))[0])

    def text(self) -> str | None:
        """A nullable string."""
        size = self.int16()
        return None if size < 0 else self.take(size).decode()

    def data(self) -> bytes:
        """Nullable bytes; empty for null."""
        size = self.int32()
        return b"" if size < 0 else self.take(size)

    def partitions(self) -> dict[str, tuple[int, ...]]:
        """[topic, [i32]]."""
        found: dict[str, tuple[int, ...]] = {}
        for _ in range(self.int32()):
            topic = self.text() or ""
            count = self.int32()
            data = self.take(4 * count) if count > 0 else b""
            found[topic] = Struct(f">{max(count, 0)}i").unpack(data)
        return found


def read_subscription(data: bytes) -> EmbeddedSubscription:
    """Read a subscription. Errors: ValueError."""
    reader = _Reader(data)
    version = min(reader.int16(), NEWEST)
    if version < 0:
        raise ValueError(f"version {version}")
    topics = frozenset(reader.text() or "" for _ in range(reader.int32()))
    reader.data()
    owned = reader.partitions() if version >= 1 else {}
    if version >= 2:
        reader.int32()
    return EmbeddedSubscription(version, topics, owned, reader.text() if version >= 3 else None)


def read_assignment(data: bytes) -> tuple[dict[str, tuple[int, ...]], bytes]:
    """Read an assignment: partitions by topic, and the user data. Errors: ValueError."""
    reader = _Reader(data)
    if reader.int16() < 0:
        raise ValueError("version below 0")
    partitions = reader.partitions()
    return partitions, reader.data()


def write_assignment(partitions: Mapping[str, tuple[int, ...]], version: int) -> bytes:
    """The bytes of an assignment, without user data."""
    parts = [_SHORT.pack(version), _INT.pack(len(partitions))]
    for topic, indexes in partitions.items():
        name = topic.encode()
        parts.append(_SHORT.pack(len(name)) + name + Struct(f">i{len(indexes)}i").pack(len(indexes), *indexes))
    parts.append(_INT.pack(-1))
    return b"".join(parts)
