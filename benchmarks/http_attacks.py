"""What `benchmarks.hostile --only http` does to the schema registry's HTTP: ten clients of each kind, for ever."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

CLIENTS: Final = 10
HEAD: Final = b"POST /subjects/s/versions HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED: Final = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BODY: Final = (4 << 20) - 1000
SMALL: Final = b"1\r\nx\r\n"


def _of(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunks() -> Iterator[bytes]:
    """A body in chunks of one byte after a large one."""
    yield CHUNKED + b"%x\r\n" % (BODY - 500_000) + b" " * (BODY - 500_000) + b"\r\n" + SMALL * 80_000


def slow_bytes() -> Iterator[bytes]:
    """A request that comes byte by byte."""
    for byte in CHUNKED + SMALL * 100:
        yield bytes((byte,))
        time.sleep(0.05)


def heads() -> Iterator[bytes]:
    """A head without end."""
    yield HEAD + b"X: y\r\n" * 100_000


def extensions() -> Iterator[bytes]:
    """Chunks with extensions without end."""
    yield CHUNKED + (b"1;" + b"a" * 500 + b"\r\nx\r\n") * 10_000


def pipelined() -> Iterator[bytes]:
    """Requests that follow each other, and answers that are not read."""
    yield b"GET /subjects HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10_000


def halves() -> Iterator[bytes]:
    """Half requests, again and again."""
    yield HEAD
    time.sleep(0.5)


def comings() -> Iterator[bytes]:
    """Connections that are opened and closed."""
    yield b""


def nested() -> Iterator[bytes]:
    """JSON that is nested as deep as a body is long."""
    yield _of(b'{"schema":' + b"[" * (BODY - 100))


def lists() -> Iterator[bytes]:
    """JSON of many small values."""
    yield _of(b'{"schema":[' + b"[]," * (BODY // 3 - 100) + b"1]}")


def names() -> Iterator[bytes]:
    """JSON of many names."""
    yield _of(b'{"a":1,' + b",".join(b'"%x":1' % number for number in range(BODY // 12)) + b"}")


HTTP: Final[dict[str, Callable[[], Iterator[bytes]]]] = {
    "chunks of one byte": chunks,
    "slow bytes": slow_bytes,
    "heads without end": heads,
    "extensions without end": extensions,
    "answers that are not read": pipelined,
    "half requests": halves,
    "connections that go at once": comings,
    "deep JSON": nested,
    "lists of JSON": lists,
    "names of JSON": names,
}


def _client(place: tuple[str, int], pieces: list[bytes] | Callable[[], Iterator[bytes]], answers: Any) -> None:
    while True:
        with contextlib.suppress(OSError), socket.create_connection(place, timeout=10) as wire:
            for piece in pieces() if callable(pieces) else pieces:
                wire.sendall(piece)
            if wire.recv(65_536):
                answers.value += 1


def clients_of(kind: str) -> Callable[..., None]:
    """CLIENTS of a kind, in threads of one process."""

    def run(host: str, port: int, n: int, answers: Any) -> None:
        make = HTTP[kind]
        pieces = make if make in (slow_bytes, halves) else list(make())
        for _ in range(CLIENTS):
            threading.Thread(target=_client, args=((host, port), pieces, answers), daemon=True).start()
        time.sleep(3600)

    return run
