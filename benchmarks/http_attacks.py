"""What `benchmarks.hostile --only http` does to an HTTP door: ten clients of each kind, for ever.

Bodies are as large as the door takes: 4 MB at the schema registry, 32 MB at the control endpoint.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

CLIENTS: Final = 10
SMALL: Final = b"1\r\nx\r\n"


class Door(NamedTuple):
    """What is asked of a door. head: of a request with a body, but for its length; field: one that such a body has."""

    head: bytes
    get: bytes
    field: bytes
    body_bytes: int

    def of(self, body: bytes) -> bytes:
        """A request with this body."""
        return self.head + b"Content-Length: %d\r\n\r\n" % len(body) + body

    @property
    def chunked(self) -> bytes:
        """The head of a request whose body comes in chunks."""
        return self.head + b"Transfer-Encoding: chunked\r\n\r\n"


DOORS: Final = {
    "registry": Door(
        b"POST /subjects/s/versions HTTP/1.1\r\nHost: localhost\r\n", b"/subjects", b"schema", (4 << 20) - 1000
    ),
    "control": Door(
        b"POST /_admin/load HTTP/1.1\r\nHost: localhost\r\n", b"/_admin/topics", b"document", (32 << 20) - 1000
    ),
}


def chunks(door: Door) -> Iterator[bytes]:
    """A body in chunks of one byte after a large one."""
    yield (
        door.chunked
        + b"%x\r\n" % (door.body_bytes - 500_000)
        + b" " * (door.body_bytes - 500_000)
        + b"\r\n"
        + SMALL * 80_000
    )


def slow_bytes(door: Door) -> Iterator[bytes]:
    """A request that comes byte by byte."""
    for byte in door.chunked + SMALL * 100:
        yield bytes((byte,))
        time.sleep(0.05)


def heads(door: Door) -> Iterator[bytes]:
    """A head without end."""
    yield door.head + b"X: y\r\n" * 100_000


def extensions(door: Door) -> Iterator[bytes]:
    """Chunks with extensions without end."""
    yield door.chunked + (b"1;" + b"a" * 500 + b"\r\nx\r\n") * 10_000


def pipelined(door: Door) -> Iterator[bytes]:
    """Requests that follow each other, and answers that are not read."""
    yield b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % door.get * 10_000


def halves(door: Door) -> Iterator[bytes]:
    """Half requests, again and again."""
    yield door.head
    time.sleep(0.5)


def comings(_door: Door) -> Iterator[bytes]:
    """Connections that are opened and closed."""
    yield b""


def nested(door: Door) -> Iterator[bytes]:
    """JSON that is nested as deep as a body is long."""
    yield door.of(b'{"%s":' % door.field + b"[" * (door.body_bytes - 100))


def lists(door: Door) -> Iterator[bytes]:
    """JSON of many small values."""
    yield door.of(b'{"%s":[' % door.field + b"[]," * (door.body_bytes // 3 - 100) + b"1]}")


def names(door: Door) -> Iterator[bytes]:
    """JSON of many names."""
    yield door.of(b'{"a":1,' + b",".join(b'"%x":1' % number for number in range(door.body_bytes // 12)) + b"}")


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


def clients_of(kind: str, door: str) -> Callable[..., None]:
    """CLIENTS of a kind, in threads of one process."""

    def run(host: str, port: int, n: int, answers: Any) -> None:
        make = HTTP[kind]
        known = DOORS[door]
        pieces = (lambda: make(known)) if make in (slow_bytes, halves) else list(make(known))
        for _ in range(CLIENTS):
            threading.Thread(target=_client, args=((host, port), pieces, answers), daemon=True).start()
        time.sleep(3600)

    return run
