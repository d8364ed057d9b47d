"""Unsigned varints in bytes that may end before them."""

from __future__ import annotations

from typing import Final

from protocol.errors import MalformedError

MOST_BITS: Final = 35
CUT: Final = -1


def varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """The varint at a place, and the place after it; CUT: it is not all there. Errors: MalformedError."""
    value = shift = 0
    while at < stop:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift == MOST_BITS:
            raise MalformedError("a varint of more than 35 bits")
    return 0, CUT


def after_tags(data: bytes, at: int, stop: int, count: int) -> int:
    """Where so many tagged fields end; CUT: not all of them are there. Errors: MalformedError."""
    for _ in range(count):
        _, at = varint(data, at, stop)
        if at == CUT:
            return CUT
        size, at = varint(data, at, stop)
        if at == CUT:
            return CUT
        at += size
        if at > stop:
            return CUT
    return at
