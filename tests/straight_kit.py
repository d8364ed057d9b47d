"""A client on a real pair of sockets: its connection's transport waits as uvloop's does, and files can go past it."""

from __future__ import annotations

import socket
from typing import Any

from core_broker import Client, World

from broker.shell.sockets.straight import Straight
from broker.wire.connection import WRITE_BUFFER_BYTES

ROOM = 1 << 15  # asked of the kernel for the socket: it fills up soon


class SocketTransport:
    """What a connection writes to: what the socket does not take waits here until the client has read."""

    def __init__(self, client: SocketClient, ours: socket.socket) -> None:
        self._client = client
        self.socket = ours
        self.received = bytearray()
        self.buffer = bytearray()
        self.written = 0  # bytes that came by `write`
        self.reading = True
        self.closed = False
        self.paused = False
        self.high = WRITE_BUFFER_BYTES

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 9092), "socket": self.socket}.get(name)

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def get_write_buffer_size(self) -> int:
        return len(self.buffer)

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        if self.closed:
            return
        self.written += len(data)
        self.buffer += data
        if len(self.buffer) > self.high and not self.paused:  # less is sent by the loop
            self.flush()
            if len(self.buffer) > self.high:
                self.paused = True
                self._client.connection.pause_writing()

    def flush(self) -> None:
        try:
            while self.buffer:
                del self.buffer[: self.socket.send(self.buffer)]
        except BlockingIOError:
            pass
        except OSError:
            self.abort()

    def flush_and_resume(self) -> None:
        self.flush()
        if self.paused and len(self.buffer) <= self.high // 4 and not self.closed:
            self.paused = False
            self._client.connection.resume_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True
        if not self.closed:
            self._client.world.ready.append(self._client.world.deliver)

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            self._client.world.ready.append(self._end)

    def _end(self) -> None:
        self._client.connection.connection_lost(None)
        self.socket.close()

    close = abort


class SocketClient(Client):
    """A client of a World that reads from a socket, as much as it is told to."""

    def __init__(self, world: World) -> None:
        ours, self.theirs = socket.socketpair()
        for each in (ours, self.theirs):
            each.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)
        self.made = SocketTransport(self, ours)
        self.ways: list[Counted] = []
        super().__init__(world)
        self.transport = self.made  # type: ignore[assignment]  # as much of a transport as the other
        self.connection.transport = self.made
        self.connection.stream.find_straight = self._find

    def _find(self, transport: Any) -> Straight:
        self.ways.append(Counted(transport))
        return self.ways[-1]

    def read(self, n: int = 1 << 30) -> int:
        """Take up to so many bytes. How many there were."""
        got = 0
        while got < n:
            self.made.flush()
            try:
                data = self.theirs.recv(min(n - got, 1 << 16))
            except BlockingIOError:
                break
            if not data:
                break
            got += len(data)
            self.made.received += data
        if not self.made.closed:
            self.made.flush_and_resume()
        return got

    def read_all(self) -> None:
        """Read and run the broker until nothing more comes."""
        self.world.run()
        while self.read(50_000):
            self.world.run()

    def end(self) -> None:
        """Close both ends, at the end of a test."""
        self.theirs.close()
        self.made.abort()
        self.world.run()

    @property
    def straight_bytes(self) -> int:
        return sum(way.file_bytes for way in self.ways)


class Counted(Straight):
    """Counts what goes past the transport."""

    __slots__ = ("file_bytes",)

    def __init__(self, transport: Any) -> None:
        super().__init__(transport)
        self.file_bytes = 0

    def send_file(self, part: Any, most_bytes: int, at: int) -> int:
        took = super().send_file(part, most_bytes, at)
        self.file_bytes += took
        return took


def end_all(world: World) -> None:
    """Close all sockets of a world."""
    for client in world.clients:
        if isinstance(client, SocketClient):
            client.end()
