"""What a connection without a socket writes to, and requests and replies as they go over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.wire.connection import Connection
from protocol.codegen import codec
from protocol.header import encode_request_header

if TYPE_CHECKING:
    from core_broker import World


def frame(request: Any, version: int, correlation_id: int = 1, client_id: str | None = "client") -> bytes:
    """A request as it goes over the wire, size field included."""
    data = encode_request_header(request.API_KEY, version, correlation_id, client_id)
    data += codec(type(request), version).encode(request)
    return len(data).to_bytes(4, "big") + data


def split_frames(data: bytes) -> list[bytes]:
    """Whole frames without their size fields; the rest must be empty."""
    frames, position = [], 0
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        assert position + 4 + size <= len(data), "a reply was cut short"
        frames.append(data[position + 4 : position + 4 + size])
        position += 4 + size
    return frames


class Transport:
    """What a connection writes to. The client reads at once, unless `stalled`: then bytes pile up here."""

    def __init__(self, world: World, connection: Connection) -> None:
        self._world = world
        self._connection = connection
        self.received = bytearray()  # what the client has got
        self.buffer = bytearray()  # what it has not read yet
        self.most_buffered = 0
        self.writes = 0
        # sizes of what was written and not read, as asyncio keeps it: whole to the last byte
        self.pieces: list[int] = []
        self.stalled = False
        self.reading = True
        self.closed = False
        self.paused = False
        self.high = 65536

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("127.0.0.1", 50000), "sockname": ("127.0.0.1", 9092)}.get(name)

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def get_write_buffer_size(self) -> int:
        return len(self.buffer)

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        assert isinstance(data, bytes)
        if self.closed:
            return
        self.writes += 1
        if not self.stalled:
            self.received += data
            return
        self.buffer += data
        self.pieces.append(len(data))
        self.most_buffered = max(self.most_buffered, len(self.buffer))
        if len(self.buffer) > self.high and not self.paused:
            self.paused = True
            self._connection.pause_writing()

    def read(self, n: int | None = None) -> None:
        """The client reads so many of the bytes that piled up (all of them)."""
        n = len(self.buffer) if n is None else n
        self.received += self.buffer[:n]
        del self.buffer[:n]
        while sum(self.pieces[1:]) >= len(self.buffer) and self.pieces:
            del self.pieces[0]
        if self.paused and len(self.buffer) <= self.high // 4:
            self.paused = False
            self._connection.resume_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True
        if not self.closed:
            self._world.ready.append(self._world.deliver)

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            self._world.ready.append(lambda: self._connection.connection_lost(None))

    close = abort
