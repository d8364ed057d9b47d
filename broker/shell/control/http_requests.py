"""Reads HTTP requests by llhttp (httptools), and holds them to their limits while their bytes come. It knows no route.

llhttp says what is a request; it has no limit of size. What it refuses is refused here with 400: a length beside
chunks, a length given twice, a line that ends by LF alone, a header in two lines. Beyond that a request of HTTP/1.1
names its host once, and a body comes plain or in chunks, in no other coding.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import httptools

from broker.shell.control.routes import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.shell.control.large_json import LargeJson

HEAD_BYTES: Final = 8192
PIECE_BYTES: Final = (
    8192  # of a body, parsed at once: in chunks of one byte they take 0.1 ms, then others have their turn
)
HEAD_PIECE_BYTES: Final = 2048  # of heads, parsed at once: of the shortest requests that are a hundred
BODY_BYTES: Final = 4 << 20  # of records that a test produces
ONCE: Final = ("host", "authorization")
WITH_BODY: Final = ("POST", "PUT", "PATCH")


class Head:
    """A request; `body` has what has come of its body, all of it where `is_whole`."""

    __slots__ = (
        "abort",
        "body",
        "data",
        "door",
        "fields",
        "is_whole",
        "large",
        "method",
        "peer",
        "principal",
        "target",
        "version",
    )

    def __init__(self, method: str, target: str, version: str, fields: dict[str, str]) -> None:
        self.data = b""  # the request, where it came alone and at once
        self.door: Any = None  # its connection
        self.peer: Callable[[str], Any] = lambda name: None  # what its connection tells of the client
        self.abort: Callable[[], None] = lambda: None  # closes its connection at once
        self.large: LargeJson | None = None  # what its body was read by, where that took slices
        self.principal = ""  # who asks, once that was found out
        self.method = method
        self.target = target
        self.version = version  # "1.1" or "1.0"
        self.fields = fields
        self.body = bytearray()
        self.is_whole = False

    @property
    def keeps_alive(self) -> bool:
        wish = self.fields.get("connection", "").lower()
        return "keep-alive" in wish if self.version == "1.0" else "close" not in wish

    @property
    def length(self) -> int:
        """The length that the head says its body has; 0: none, or it comes in chunks."""
        return int(self.fields.get("content-length", "0"))

    @property
    def expects_word(self) -> bool:
        """Whether the client waits to hear that its body is wanted."""
        return self.version == "1.1" and self.fields.get("expect", "").lower() == "100-continue"


class RequestReader:
    """The requests of one connection, in their order.

    reader       its bytes.
    most_bytes   a body may have.
    """

    def __init__(self, reader: asyncio.StreamReader, most_bytes: int = BODY_BYTES) -> None:
        self._reader = reader
        self._most_bytes = most_bytes
        self._parser = httptools.HttpRequestParser(self)
        self._ready: deque[Head] = deque()  # whose heads are whole
        self._refusal: RefusedError | None = None  # of what follows those
        self._current: Head | None = None  # whose body comes
        self._is_begun = False  # a request has begun, and is not whole
        self._ended = 0  # requests so far
        self._size = 0  # bytes since the last one ended
        self._url = b""
        self._fields: dict[str, str] = {}
        self._fields_bytes = 0
        self._is_told_again = False  # the head, without the wish for another protocol

    @property
    def is_between(self) -> bool:
        """Whether nothing of a request has come that was not returned."""
        return not self._is_begun and not self._ready and self._refusal is None

    async def begin(self) -> bool:
        """Wait for the first byte of a request. Returns False where the connection ends instead."""
        while self.is_between:
            data = await self._reader.read(HEAD_PIECE_BYTES)
            if not data:
                return False
            self.feed(data)
        return True

    async def head(self) -> Head:
        """The next request, once its head is whole. Errors: RefusedError."""
        while not self._ready:
            await self._more()
        return self._ready.popleft()

    async def body(self, head: Head) -> bytearray:
        """The body of the request that `head` has returned, and no copy of it. Errors: RefusedError."""
        if head.length > self._most_bytes:
            raise RefusedError(413, f"the body is larger than {self._most_bytes} bytes")
        while not head.is_whole:
            await self._more()
        return head.body

    async def _more(self) -> None:
        if self._refusal is not None:
            raise self._refusal
        await asyncio.sleep(0)  # bytes that are there do not make `read` wait: others have their turn
        in_body = self._is_begun and self._current is not None
        data = await self._reader.read(PIECE_BYTES if in_body else HEAD_PIECE_BYTES)
        if not data:
            raise RefusedError(400, "the request is incomplete" if self._is_begun else "the request is empty")
        self.feed(data)

    def feed(self, data: bytes) -> None:
        """Parse the next bytes, PIECE_BYTES at most."""
        if self._refusal is not None:
            return
        ended, was_between = self._ended, self.is_between
        try:
            self._parse(data)
            self._size = 0 if self._ended != ended else self._size + len(data)
            self._check_size()
        except RefusedError as refusal:
            self._refusal = refusal
        if was_between and self._ended == ended + 1 and not self._is_begun and not self._ready[-1].body:
            self._ready[-1].data = data

    def _parse(self, data: bytes) -> None:
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as stopped:
                data = self._tell_again() + data[stopped.args[0] :]
            except httptools.HttpParserCallbackError as error:
                if isinstance(error.__context__, RefusedError):
                    raise error.__context__ from None
                raise
            except httptools.HttpParserError as error:
                if self._current is None and self._parser.get_http_version() not in ("0.0", "1.0", "1.1"):
                    raise RefusedError(505, "only HTTP/1.1 is supported") from None
                raise RefusedError(400, f"this is not an HTTP request: {error}") from None
            else:
                return

    def _tell_again(self) -> bytes:
        """The head for a parser of its own, without the wish for another protocol, which would end HTTP for llhttp.

        A server may pass over that wish (RFC 9110, 7.8), and the first request of Java's client has it, body or not.
        """
        assert self._current is not None
        self._parser = httptools.HttpRequestParser(self)
        self._is_told_again = True
        kept = (name for name in ("content-length", "transfer-encoding") if name in self._current.fields)
        return b"POST / HTTP/1.1\r\n%s\r\n" % b"".join(
            f"{name}: {self._current.fields[name]}\r\n".encode("latin-1") for name in kept
        )

    def _check_size(self) -> None:
        if self._current is None and max(self._size, self._fields_bytes) > HEAD_BYTES:
            raise RefusedError(431, f"the head of the request is larger than {HEAD_BYTES} bytes")
        # Chunks add to a body, their extensions and trailers without end: all of it is held to the limit.
        if self._size > self._most_bytes + HEAD_BYTES + PIECE_BYTES:
            raise RefusedError(413, f"the body is larger than {self._most_bytes} bytes, with what its chunks add")

    # What llhttp calls.

    def on_message_begin(self) -> None:
        """A request begins."""
        if not self._is_told_again:
            self._is_begun, self._current = True, None
            self._url, self._fields, self._fields_bytes = b"", {}, 0

    def on_url(self, url: bytes) -> None:
        """A part of its target."""
        if not self._is_told_again:
            self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of its head, or of its trailer. Errors: RefusedError."""
        if self._is_told_again:
            return
        self._fields_bytes += len(name) + len(value) + 4
        if self._fields_bytes > HEAD_BYTES:
            raise RefusedError(431, f"the head of the request is larger than {HEAD_BYTES} bytes")
        if self._current is not None:
            return  # nothing is read from a trailer
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        if key not in self._fields:
            self._fields[key] = text
        elif key in ONCE:
            raise RefusedError(400, f"{key.title()} is given twice")
        else:
            self._fields[key] += f", {text}"

    def on_headers_complete(self) -> None:
        """Its head is whole. Errors: RefusedError."""
        if self._is_told_again:
            self._is_told_again = False
            return
        version, fields = self._parser.get_http_version(), self._fields
        if version not in ("1.0", "1.1"):
            raise RefusedError(505, "only HTTP/1.1 is supported")
        if "host" not in fields and version == "1.1":
            raise RefusedError(400, "a request of HTTP/1.1 has to name its Host")
        if fields.get("transfer-encoding", "chunked").lower() != "chunked":
            raise RefusedError(501, "a body needs a Content-Length, or is chunked")
        if "transfer-encoding" in fields and version == "1.0":
            raise RefusedError(400, "HTTP/1.0 has no chunks")
        target = self._url.decode("latin-1")
        if target[:7].lower() == "http://" or target[:8].lower() == "https://":  # as to a proxy (RFC 9112, 3.2.2)
            fields["host"], _, path = target.partition("://")[2].partition("/")
            target = f"/{path}"
        if not target.startswith("/"):
            raise RefusedError(400, f"{target[:100]!r} is not a path")
        self._current = Head(self._parser.get_method().decode(), target, version, fields)
        self._ready.append(self._current)

    def on_body(self, data: bytes) -> None:
        """A part of its body. Errors: RefusedError."""
        assert self._current is not None
        self._current.body += data
        if len(self._current.body) > self._most_bytes:
            raise RefusedError(413, f"the body is larger than {self._most_bytes} bytes")

    def on_message_complete(self) -> None:
        """It is whole, where it is one that is not told again."""
        if self._parser.should_upgrade() or self._current is None:
            return
        self._current.is_whole, self._is_begun = True, False
        self._ended += 1


def parse_body(head: Head, body: bytes | bytearray) -> dict[str, Any]:
    """The JSON object of a body; an empty one for none. Errors: RefusedError."""
    if not body.strip() or head.method not in WITH_BODY:
        return {}
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the body is not JSON: {error}") from None
    return object_of(value)


def object_of(value: Any) -> dict[str, Any]:
    """A body that was read. Errors: RefusedError: it is no object."""
    if not isinstance(value, dict):
        raise RefusedError(400, "the body is not a JSON object")
    return value
