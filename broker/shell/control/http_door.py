"""A connection of an HTTP server: it reads for the connection's task, and lets known requests take a shortcut."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from broker.shell.control.http_requests import HEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Shortcut = Callable[["Door", bytes], bytes | None]
    Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter, "Door"], Awaitable[None]]


class Door(asyncio.StreamReaderProtocol):
    """A connection. While its task waits for the next request, one that comes whole may take the shortcut.

    is_idle    whether the task waits, and nothing has come that it is to read.
    served     how many requests have taken the shortcut; `passed` is called for each.
    transport  of asyncio or uvloop.
    who        for whoever takes the shortcut: what this connection says of its client, once that was asked.
    """

    def __init__(self, shortcut: Shortcut, connected: Connected) -> None:
        self.is_idle = False
        self.served = 0
        self.passed: Callable[[], None] = lambda: None
        self.transport: Any = None
        self.who: object = None
        self._shortcut = shortcut
        super().__init__(asyncio.StreamReader(HEAD_BYTES), lambda reader, writer: connected(reader, writer, self))

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        self.transport = transport
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self.is_idle and not self.transport.get_write_buffer_size():
            answer = self._shortcut(self, data)
            if answer is not None:
                self.served += 1
                self.passed()
                self.transport.write(answer)
                return
            self.is_idle = False
        super().data_received(data)
