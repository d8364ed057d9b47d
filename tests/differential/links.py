"""Connections to a broker: over a socket, or into a broker that runs in this process.

A link carries whole frames without their size. Time is the business of whoever waits: `take` never does.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from typing import Final, Protocol

from core_broker import Client, World

from differential.plain import Values, decode_response, encode_request

CLOSED: Final = b""
CALL_LIMIT_S: Final = 15.0
CLIENT_ID: Final = "differ"


class LinkError(Exception):
    """A broker closed the connection of a request that this machine needs, or left it unanswered."""


class Link(Protocol):
    """One connection."""

    correlation_id: int

    def send(self, frame: bytes) -> None:
        """Send a request."""

    def take(self) -> bytes | None:
        """The next whole response; None: none is here; CLOSED: none will come."""

    def fileno(self) -> int:
        """What select waits for; -1: there is nothing to wait for."""

    def close(self) -> None:
        """Close it."""

    @property
    def is_open(self) -> bool: ...


class SocketLink:
    """A connection to a broker in another process."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), CALL_LIMIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self.correlation_id = 0
        self.is_open = True

    def send(self, frame: bytes) -> None:
        try:
            self._socket.settimeout(CALL_LIMIT_S)
            self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        except OSError:
            self.is_open = False

    def take(self) -> bytes | None:
        self._receive()
        size = int.from_bytes(self._buffer[:4], "big")
        if len(self._buffer) >= 4 and len(self._buffer) >= 4 + size:
            frame = bytes(self._buffer[4 : 4 + size])
            del self._buffer[: 4 + size]
            return frame
        return None if self.is_open else CLOSED

    def _receive(self) -> None:
        if not self.is_open:
            return
        try:
            self._socket.settimeout(0.0)
            data = self._socket.recv(1 << 20)
            self._buffer += data
            self.is_open = bool(data)
        except BlockingIOError:
            pass
        except OSError:
            self.is_open = False

    def fileno(self) -> int:
        return self._socket.fileno() if self.is_open else -1

    def close(self) -> None:
        self.is_open = False
        self._socket.close()


class WorldLink:
    """A connection to a broker in this process. It answers within `send`, or when its clock is moved."""

    def __init__(self, world: World, node: int) -> None:
        self._world = world
        self._client = Client(world, node)
        self._read = 0
        self.correlation_id = 0

    @property
    def is_open(self) -> bool:
        return not self._client.closed

    def send(self, frame: bytes) -> None:
        self._client.send_bytes(len(frame).to_bytes(4, "big") + frame)
        self._world.run()

    def take(self) -> bytes | None:
        received = self._client.transport.received
        if len(received) >= self._read + 4:
            begin = self._read + 4
            self._read = begin + int.from_bytes(received[self._read : begin], "big")
            return bytes(received[begin : self._read])
        return None if self.is_open else CLOSED

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        if self.is_open:
            self._client.leave()
            self._world.run()
        if self._client in self._world.clients:
            self._world.clients.remove(self._client)


def wait_for_any(links: Sequence[Link], seconds: float) -> None:
    """Until one of them may have something, at most so long."""
    ready = [number for number in (link.fileno() for link in links) if number >= 0]
    if ready and seconds > 0:
        select.select(ready, [], [], seconds)


def call(link: Link, api: str, version: int, body: Values, limit_s: float = CALL_LIMIT_S) -> Values:
    """A request of this machine's own, and its answer. Errors: LinkError."""
    link.correlation_id += 1
    link.send(encode_request(api, version, link.correlation_id, CLIENT_ID, body))
    end = time.monotonic() + limit_s
    while True:
        data = link.take()
        if data == CLOSED:
            raise LinkError(f"{api} v{version}: the connection was closed")
        if data is not None:
            return decode_response(api, version, data)
        left = end - time.monotonic()
        if left <= 0 or link.fileno() < 0:
            raise LinkError(f"{api} v{version}: no answer within {limit_s} s")
        wait_for_any([link], left)
