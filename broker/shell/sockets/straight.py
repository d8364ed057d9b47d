"""Sends on the socket of a plain connection past its transport: bytes, and parts of files straight from the page cache.

Only while the transport holds nothing back, so that bytes leave in order. The transport stays the owner of the socket:
it closes it, and it waits until the socket takes more.
"""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.log.log import FileSlice

IS_KNOWN = sys.platform == "linux"  # elsewhere sendfile answers otherwise, or is not there


class Straight:
    """The socket of one connection."""

    __slots__ = ("_descriptor", "_is_tcp", "_socket", "_waiting")

    def __init__(self, transport: Any) -> None:
        found = transport.get_extra_info("socket")
        self._descriptor: int = found.fileno()
        self._socket = _Borrowed(found.family, found.type, found.proto, self._descriptor)
        self._is_tcp = found.family != socket.AF_UNIX
        self._waiting = transport.get_write_buffer_size

    def is_free(self) -> bool:
        """Whether the transport holds nothing back."""
        return not self._waiting()

    def hold(self, is_on: bool) -> None:
        """Let bytes that do not fill a packet wait for what follows them: each packet wakes the client."""
        if self._is_tcp:
            with suppress(OSError):  # closed by the client
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, is_on)

    def send(self, data: bytes | memoryview) -> int:
        """Bytes that the socket took."""
        try:
            return self._socket.send(data)
        except OSError:  # full, or closed by the client: the transport finds out which
            return 0

    def send_file(self, part: FileSlice, most_bytes: int, at: int) -> int:
        """Bytes from byte `at` of a slice that the socket took; 0 also where the file must be read instead."""
        try:
            return part.send(self._descriptor, most_bytes, at)
        except OSError:
            return 0

    def close(self) -> None:
        """The transport is about to close the socket, whose number is then another's."""
        self._descriptor = -1
        self._socket.detach()


class _Borrowed(socket.socket):
    """A socket that does not close its descriptor."""

    def __del__(self) -> None:
        self.detach()


def straight(transport: Any) -> Straight | None:
    """The way past a transport of this loop; None where there is none."""
    return Straight(transport) if IS_KNOWN else None
