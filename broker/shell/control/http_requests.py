"""Reads HTTP requests: the head, and a body of a known length or in chunks. It knows no route."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from broker.shell.control.routes import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD_BYTES: Final = 8192
BODY_BYTES: Final = 4 << 20  # of records that a test produces


class Head:
    """A request without its body."""

    __slots__ = ("abort", "data", "door", "fields", "method", "peer", "target", "version")

    def __init__(self, method: str, target: str, version: str, fields: dict[str, str], data: bytes = b"") -> None:
        self.data = data  # as it came
        self.door: Any = None  # its connection
        self.peer: Callable[[str], Any] = lambda name: None  # what its connection tells of the client
        self.abort: Callable[[], None] = lambda: None  # closes its connection at once
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields

    @property
    def keeps_alive(self) -> bool:
        wish = self.fields.get("connection", "").lower()
        return "keep-alive" in wish if self.version == "HTTP/1.0" else "close" not in wish


async def read_head(first: bytes, reader: asyncio.StreamReader) -> Head:
    """Errors: RefusedError."""
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise RefusedError(431, f"the head of the request is larger than {HEAD_BYTES} bytes") from None
    except asyncio.IncompleteReadError:
        raise RefusedError(400, "the head of the request is incomplete") from None
    start, *lines = head[:-4].decode("latin-1").split("\r\n")
    words = start.split(" ")
    if len(words) != 3 or not words[1].startswith("/"):
        raise RefusedError(400, f"{start[:100]!r} is not an HTTP request")
    if not words[2].startswith("HTTP/1."):
        raise RefusedError(505, "only HTTP/1.1 is supported")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise RefusedError(400, f"{line[:100]!r} is not a header")
        name = name.lower()
        if name in ("content-length", "host", "authorization") and name in fields:
            raise RefusedError(400, f"{name.title()} is given twice")
        fields[name] = value.strip()
    return Head(words[0], words[1], words[2], fields, head)


async def read_body(reader: asyncio.StreamReader, head: Head, most_bytes: int = BODY_BYTES) -> bytes:
    """The body, `most_bytes` at most. Errors: RefusedError."""
    if head.fields.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader, most_bytes)
    if "transfer-encoding" in head.fields:
        raise RefusedError(501, "a body needs a Content-Length, or is chunked")
    length = head.fields.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise RefusedError(400, "Content-Length is not a number")
    if len(length) > 9 or int(length) > most_bytes:
        raise RefusedError(413, f"the body is larger than {most_bytes} bytes")
    try:
        return await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        raise RefusedError(400, "the body is incomplete") from None


async def _read_chunks(reader: asyncio.StreamReader, most_bytes: int) -> bytes:
    """A body in chunks (RFC 9112, 7.1); trailers are passed over. Errors: RefusedError."""
    body = b""
    try:
        while True:
            line = (await reader.readuntil(b"\r\n")).partition(b";")[0].strip()
            size = int(line, 16)
            if size < 0 or len(body) + size > most_bytes:
                raise RefusedError(413, f"the body is larger than {most_bytes} bytes")
            if size == 0:
                break
            body += await reader.readexactly(size)
            if await reader.readexactly(2) != b"\r\n":
                raise ValueError
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
    except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise RefusedError(400, "the chunks of the body are not whole") from None
    return body


def parse_body(head: Head, body: bytes) -> dict[str, Any]:
    """The JSON object of a body; an empty one for none. Errors: RefusedError."""
    if not body.strip() or head.method not in ("POST", "PUT", "PATCH"):
        return {}
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RefusedError(400, "the body is not a JSON object")
    return value
