"""Ports of 127.0.0.1 for programs that are told where to listen, kept from all others until they have ended."""

from __future__ import annotations

import socket
from typing import Self


class HeldPorts:
    """So many ports, bound here and not listened on.

    A free port that is only looked up may be gone when a JVM listens there seconds later: each outgoing connection
    and each server on port 0 draws from the same numbers. The kernel draws none that is bound, and lets a program that
    sets SO_REUSEADDR, as the JVM and asyncio do, listen where a socket with that option is bound.
    """

    def __init__(self, count: int) -> None:
        self._sockets = [socket.socket() for _ in range(count)]
        for each in self._sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("127.0.0.1", 0))
        self.numbers: list[int] = [each.getsockname()[1] for each in self._sockets]

    def close(self) -> None:
        """Give the ports back, once no program listens there any more."""
        for each in self._sockets:
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
