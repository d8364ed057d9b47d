"""Reading the head of a request byte by byte, and what replies begin with: what the shortcuts have in common."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

REPLY_HEAD: Final = Struct(">ii")  # size, correlation id
PRODUCER: Final = Struct(">qh")  # id and epoch
MOST_KEPT: Final = 10_000  # of whatever is remembered of requests
SHORT_TEXT: Final = 0x80  # a length below it takes one byte


def header_end(data: bytes, at: int) -> int:
    """Where a request's body begins, its header being a client id and no tags; -1: there are some."""
    size = int.from_bytes(data[at : at + 2], "big", signed=True)
    at += 2 + max(size, 0)
    return at + 1 if at < len(data) and data[at] == 0 else -1


def transactional_id_end(data: bytes, position: int) -> int:
    """Behind the transactional id of a frame whose body begins with it; anywhere, if the header has tags."""
    at = position + 12
    at += 3 + max(int.from_bytes(data[at : at + 2], "big", signed=True), 0)  # client id, no tags
    return at + max(data[at], 1)


def short_text(data: bytes, at: int) -> tuple[str | None, int]:
    """A short compact string and where it ends; None is null, too long, or no text."""
    if not 0 <= at < len(data) or not 0 < data[at] < SHORT_TEXT:
        return None, at + 1
    end = at + data[at]
    try:
        return data[at + 1 : end].decode(), end
    except UnicodeDecodeError:
        return None, end


def keep(table: dict[bytes, Any], key: bytes, value: Any) -> None:
    """Remember something, and forget all when it has become too much."""
    if len(table) >= MOST_KEPT:
        table.clear()
    table[key] = value
