"""Sans-IO frame reader: bytes in, in whatever pieces they come; whole frames out, without their four size bytes.

The size is checked as soon as its four bytes are there, before the rest is waited for. A frame that lies inside one
piece is handed out as a slice of that piece; only a frame cut by the network is put together.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.errors import MalformedError

FRAME_MAX_BYTES = 100 * 1024 * 1024  # Kafka's socket.request.max.bytes


class FrameReader:
    """Cuts one direction of one connection into frames."""

    __slots__ = ("_rest", "max_bytes")

    def __init__(self, max_bytes: int = FRAME_MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._rest = bytearray()  # the beginning of a frame that is not whole yet

    @property
    def waiting_bytes(self) -> int:
        """How much of an unfinished frame is held."""
        return len(self._rest)

    def feed(self, data: bytes) -> Iterator[memoryview]:
        """The frames that this piece completes. Consume them all before the next piece."""
        if self._rest:
            self._rest += data
            if len(self._rest) < 4 or len(self._rest) < 4 + self._size(self._rest, 0):
                return
            data = bytes(self._rest)
            self._rest = bytearray()
        view = memoryview(data)
        position, stop = 0, len(data)
        while stop - position >= 4:
            end = position + 4 + self._size(data, position)
            if end > stop:
                break
            yield view[position + 4 : end]
            position = end
        if position < stop:
            self._rest = bytearray(view[position:])

    def _size(self, data: bytes | bytearray, position: int) -> int:
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        if not 0 <= size <= self.max_bytes:
            raise MalformedError(f"a frame claims {size} bytes; the limit is {self.max_bytes}")
        return size
