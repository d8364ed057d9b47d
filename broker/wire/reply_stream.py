"""Sends replies with slices of segment files as the client takes them: from the page cache, or read in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.turn.metrics import Metrics
    from storage.log.log import FileSlice

# a reply: its bytes, or parts, some of them slices of segment files that are read when the client takes them
Reply: TypeAlias = "bytes | list[bytes | FileSlice] | None"

CHUNK_BYTES: Final = 1 << 20  # read from a segment at once, for a slow or large fetch
PRESSED_BYTES: Final = 1 << 16  # the same, and the limit of one turn's replies, while slow clients hold much memory
PARKED_BYTES: Final = 4096  # counted for a parked request, which takes 2 to 3 kB; one alone is SMALL_BYTES, not more
SLICE_BYTES: Final = 400  # counted for a slice of a file and its place in a reply
TURN_BYTES: Final = 2 << 20  # sent to one client from segment files before others are served


# The kernel sends a slice of this size or more from the page cache. Below, its calls cost what the copy did.
STRAIGHT_BYTES: Final = 1 << 17
# Slices up to this size are read and written together with what is around them.
JOINED_BYTES: Final = 1 << 15
# Given to the transport where the socket is full: more than it may hold back, so that it says when the socket has room,
# and not much more, since it keeps all of it until the last byte is sent, but counts only what is left.
FULL_BYTES: Final = 1 << 16


class Straight(Protocol):
    """The way to a socket past its transport; broker/shell/sockets/straight.py."""

    def is_free(self) -> bool:
        """Whether the transport holds nothing back."""

    def hold(self, is_on: bool) -> None:
        """Let bytes wait for those that follow them, or not any more."""

    def send(self, data: bytes | memoryview) -> int:
        """Bytes that the socket took."""

    def send_file(self, part: FileSlice, most_bytes: int, at: int) -> int:
        """Bytes from byte `at` of a slice that the socket took; 0: the slice must be read."""

    def close(self) -> None:
        """The connection is closed."""


class ReplyStream:
    """The parts to send to one client, oldest first."""

    __slots__ = ("_metrics", "_parts", "_read", "_straight", "find_straight", "held_bytes")

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._parts: list[bytes | FileSlice] = []
        self._read = 0  # bytes already sent of the first part, where it is large
        self.held_bytes = 0  # memory of the parts
        self.find_straight: Callable[[Any], Straight | None] | None = None  # where the transport sends what it is given
        self._straight: Straight | None = None

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, replies: Iterable[Reply]) -> None:
        """Queue replies."""
        for reply in replies:
            self.held_bytes += size_of(reply)
            if isinstance(reply, list):
                self._parts += reply
            elif reply:
                self._parts.append(reply)

    def clear(self) -> None:
        """The connection is closed: send nothing more."""
        self._parts.clear()
        self.held_bytes = 0
        self.find_straight = None
        if self._straight is not None:
            self._straight.close()
            self._straight = None

    def pump(self, connection: Any) -> None:
        """Write until the transport of a Connection is full.

        A client that reads as fast as the broker writes gets TURN_BYTES, and the rest after other connections.
        """

        def is_stopped() -> bool:
            return bool(connection.write_paused or connection.closed or connection.transport.is_closing())

        chunk_bytes = PRESSED_BYTES if connection.service.backlog.is_pressed else CHUNK_BYTES
        try:
            if not self.write(connection.transport, chunk_bytes, is_stopped):
                connection.halt()
                connection.resume_soon()
        except (OSError, StorageError) as error:  # part of the reply may be sent: only closing is left
            connection.refuse(f"cannot read the requested records: {error}")

    def write(self, transport: Any, chunk_bytes: int, is_stopped: Callable[[], bool]) -> bool:
        """Write until the transport is full. False: TURN_BYTES are sent, and more is left.

        Units:   `chunk_bytes`: sent of a slice at once.
        Errors:  OSError, StorageError: a slice cannot be read; a part of its reply may be sent already.
        """
        parts = self._parts
        if self.find_straight is not None and self._straight is None:
            self._straight = self.find_straight(transport)
        straight = self._straight
        done = sent = 0
        is_held = False
        try:
            while done < len(parts) and not is_stopped():
                if sent >= TURN_BYTES:
                    return False
                part = parts[done]
                is_free = straight is not None and straight.is_free()
                took = 0
                if len(part) <= JOINED_BYTES:
                    data, count = self._joined(done)
                    done += count
                    if straight is not None and is_free and data:
                        if done < len(parts) and not is_held:
                            straight.hold(is_held := True)
                        took = straight.send(data)
                    if took < len(data):
                        transport.write(data[took:])
                    sent += len(data)
                    continue
                if is_free and straight is not None:
                    took = self._send_straight(straight, part, chunk_bytes)
                if not took:
                    is_full = isinstance(part, bytes) or (straight is not None and len(part) >= STRAIGHT_BYTES)
                    chunk = self._piece(part, FULL_BYTES if is_full else chunk_bytes)
                    took = len(chunk)
                    transport.write(chunk)
                sent += took
                self._read += took
                if self._read == len(part):
                    self._read = 0
                    done += 1
        finally:
            if straight is not None and is_held:
                straight.hold(False)
            self._metrics.bytes_out += sent
            self.held_bytes -= size_of(parts[:done])
            del parts[:done]
        return True

    def _send_straight(self, straight: Straight, part: bytes | FileSlice, most_bytes: int) -> int:
        """Bytes of a large part that the socket took."""
        if isinstance(part, bytes):
            return straight.send(memoryview(part)[self._read :])
        return straight.send_file(part, most_bytes, self._read) if len(part) >= STRAIGHT_BYTES else 0

    def _piece(self, part: bytes | FileSlice, most_bytes: int) -> bytes:
        """What comes next of a large part, for the transport."""
        if isinstance(part, bytes):
            return part[self._read : self._read + most_bytes]
        return part.pread(most_bytes, self._read)

    def _joined(self, first: int) -> tuple[bytes, int]:
        """Small parts from this one on as one piece, and how many they are: a call for each took longer than a copy."""
        pieces: list[bytes] = []
        size = 0
        for at in range(first, len(self._parts)):
            part = self._parts[at]
            if len(part) > JOINED_BYTES:
                break
            if not isinstance(part, bytes):
                part = part.pread(len(part), 0)
            pieces.append(part)
            size += len(part)
            if size > JOINED_BYTES:
                break
        return b"".join(pieces), len(pieces)


def size_of(reply: Reply) -> int:
    """Bytes of memory that a waiting reply takes; of slices of files only what names them."""
    if reply is None:
        return PARKED_BYTES
    if isinstance(reply, bytes):
        return len(reply)
    return sum(len(part) if isinstance(part, bytes) else SLICE_BYTES for part in reply)
