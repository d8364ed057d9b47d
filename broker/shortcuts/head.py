"""Reads the head of a request field by field; every shortcut does this when it learns a request.

Also the head of their replies. The fixed part of a frame (size, API, version, correlation id) is 12 bytes; the client
id follows.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from broker.wire.route import REPLY_HEAD

BODY: Final = 12  # where the client id begins in a frame
PRODUCER: Final = Struct(">qh")  # id and epoch
MOST_KEPT: Final = 1_000  # entries learnt on a connection, for each API
INT32: Final = Struct(">i")

__all__ = [
    "BODY",
    "INT32",
    "MOST_KEPT",
    "PRODUCER",
    "REPLY_HEAD",
    "Cutter",
    "HeadReader",
    "keep",
    "transactional_id_end",
]


class HeadReader:
    """A cursor over a frame. Every method raises ValueError when the frame does not have the expected shape: the
    general handler then serves the request."""

    __slots__ = ("_data", "_stop", "at")

    def __init__(self, data: bytes, at: int, stop: int) -> None:
        self._data = data
        self._stop = stop
        self.at = at

    def take(self, struct: Struct) -> tuple[Any, ...]:
        """The fields of a struct."""
        if self.at + struct.size > self._stop:
            raise ValueError("too short")
        fields = struct.unpack_from(self._data, self.at)
        self.at += struct.size
        return fields

    def piece(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size < 0 or self.at + size > self._stop:
            raise ValueError("too short")
        self.at += size
        return self._data[self.at - size : self.at]

    def expect_zero(self) -> None:
        """Skip an empty tagged-fields section."""
        if self.piece(1) != b"\0":
            raise ValueError("tagged fields")

    def client_id(self) -> str:
        """The header's client id. In every version it is a nullable string with a length of two bytes."""
        size = int.from_bytes(self.piece(2), "big", signed=True)
        return self.piece(max(0, size)).decode()

    def uvarint(self) -> int:
        """An unsigned varint of at most three bytes."""
        value = shift = 0
        while True:
            byte = self.piece(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 14:
                raise ValueError("varint of more than three bytes")

    def text(self) -> str | None:
        """A nullable compact string."""
        size = self.uvarint() - 1
        return None if size < 0 else self.piece(size).decode()

    def name(self) -> str:
        """A compact string that is not null."""
        size = self.uvarint() - 1
        if size < 0:
            raise ValueError("null")
        return self.piece(size).decode()

    def count(self, most: int, *, flexible: bool = True) -> int:
        """The length of an array that is not null."""
        count = self.uvarint() - 1 if flexible else int(self.take(INT32)[0])
        if not 0 <= count <= most:
            raise ValueError("null array, or a large one")
        return count


class Cutter(HeadReader):
    """A reader that remembers where to cut the frame into pieces that stay the same and fields that differ."""

    __slots__ = ("_format", "_start", "_statics")

    def __init__(self, data: bytes, position: int, stop: int) -> None:
        super().__init__(data, position + BODY, stop)
        self._start = self.at
        self._format: list[str] = []
        self._statics: list[bytes] = []

    def cut(self, size: int, *, before: int) -> None:
        """The field of this size that ends at `before` differs from one request to the next."""
        self._statics.append(self._data[self._start : before - size])
        self._format.append(f"{before - size - self._start}s{'i' if size == 4 else 'q'}")
        self._start = before

    def done(self) -> tuple[tuple[bytes, ...], Struct]:
        """The pieces that stay the same, and a Struct of the frame: these pieces alternate with the other fields."""
        self._statics.append(self._data[self._start : self._stop])
        self._format.append(f"{self._stop - self._start}s")
        return tuple(self._statics), Struct(">" + "".join(self._format))


def transactional_id_end(data: bytes, position: int) -> int:
    """Where the transactional id ends in a flexible frame whose body begins with it.

    The result is wrong where the header has tagged fields or the id has two length bytes. That is safe: what is learnt
    is keyed by the bytes up to there, and such frames are never learnt.
    """
    at = position + BODY
    at += 3 + max(int.from_bytes(data[at : at + 2], "big", signed=True), 0)  # client id, no tagged fields
    return at + max(data[at], 1)


def keep(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Remember what was learnt. A full table is cleared first."""
    if len(table) >= MOST_KEPT:
        table.clear()
    table[key] = value
