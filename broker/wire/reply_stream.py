"""Sends replies with slices of segment files: these are read in chunks, as the client takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from broker.turn.metrics import Metrics
    from storage.log import FileSlice

# a reply: its bytes, or parts, some of them slices of segment files that are read when the client takes them
Reply: TypeAlias = "bytes | list[bytes | FileSlice] | None"

PARKED_BYTES: Final = 8192  # counted for a parked request
TURN_BYTES: Final = 2 << 20  # sent to one client from segment files before others are served


class ReplyStream:
    """The parts to send to one client, oldest first."""

    __slots__ = ("_metrics", "_parts", "_read")

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._parts: list[bytes | FileSlice] = []
        self._read = 0  # bytes already sent of the first slice

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, replies: Iterable[Reply]) -> None:
        """Queue replies."""
        for reply in replies:
            if isinstance(reply, list):
                self._parts += reply
            elif reply:
                self._parts.append(reply)

    def clear(self) -> None:
        """The connection is closed: send nothing more."""
        self._parts.clear()

    def write(self, transport: Any, chunk_bytes: int, is_stopped: Callable[[], bool]) -> bool:
        """Write until the transport is full. False: TURN_BYTES are sent, and more is left.

        Units:   `chunk_bytes`: read from a slice at once.
        Errors:  OSError, StorageError: a slice cannot be read; a part of its reply may be sent already.
        """
        parts = self._parts
        done = sent = 0
        try:
            while done < len(parts) and not is_stopped():
                if sent >= TURN_BYTES:
                    return False
                part = parts[done]
                if isinstance(part, bytes):
                    chunk = part
                    done += 1
                else:
                    chunk = part.pread(chunk_bytes, self._read)
                    self._read += len(chunk)
                    if self._read == len(part):
                        self._read = 0
                        done += 1
                sent += len(chunk)
                transport.write(chunk)
        finally:
            self._metrics.bytes_out += sent
            del parts[:done]
        return True


def size_of(reply: Reply) -> int:
    """Bytes of memory that a waiting reply takes; slices of files take none."""
    if reply is None:
        return PARKED_BYTES
    if isinstance(reply, bytes):
        return len(reply)
    return sum(len(part) for part in reply if isinstance(part, bytes))
