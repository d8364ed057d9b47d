"""A connection of an HTTP server, and how many there are: who is let in, and who makes room where all doors are taken.

A connection is half where it has not sent a whole request, TLS included; busy while its request is served; idle between
two requests. Where MOST_CONNECTIONS are open and another one comes, the one that has been half for longest makes room,
once it has had GRACE_S; then the one that has been idle for longest. Where all are busy, it waits, and those after it
wait where the system keeps connections that are not accepted yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from typing import TYPE_CHECKING, Any, Final

from broker.config.addresses import host_port
from broker.shell.control.http_requests import HEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from ssl import SSLContext

    Shortcut = Callable[["Door", bytes], bytes | None]
    Serve = Callable[["Door"], Coroutine[Any, Any, None]]

logger = logging.getLogger("momus.control")

MOST_CONNECTIONS: Final = 64
BACKLOG: Final = 1024  # that wait to be accepted
GRACE_S: Final = 1.0  # for a request to arrive while others wait for room
ROOM_LIMIT_S: Final = 10.0  # for a place among MOST_CONNECTIONS
ACCEPT_AGAIN_S: Final = 0.1  # after a failed accept: there are no descriptors left
HANDSHAKE_LIMIT_S: Final = 10.0


class Door(asyncio.StreamReaderProtocol):
    """A connection. While its task waits for the next request, one that comes whole may take the shortcut.

    is_idle    whether the task waits, and nothing has come that it is to read.
    served     how many requests have taken the shortcut; `passed` is called for each.
    transport  of asyncio or uvloop.
    who        for whoever takes the shortcut: what this connection says of its client, once that was asked.
    reader     what the client sends, for the connection's task.
    is_let_go  whether it has made room for another one, and there was none for it.
    """

    def __init__(self, shortcut: Shortcut) -> None:
        self.is_idle = False
        self.is_let_go = False
        self.served = 0
        self.passed: Callable[[], None] = lambda: None
        self.transport: Any = None
        self.who: object = None
        self._shortcut = shortcut
        self.reader = asyncio.StreamReader(HEAD_BYTES)
        super().__init__(self.reader)

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        self.transport = transport
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        super().connection_lost(exc)
        if exc is not None:
            # No task awaits the end of a connection. The parent marks its exception as seen in __del__, too late
            # where the collector ends a cycle with both: the future may go first, and then logs a traceback.
            waiter = self._get_close_waiter(None)  # type: ignore[attr-defined]  # typeshed leaves it out
            waiter.exception()

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


class Connections:
    """The connections of one server.

    serve   serves one until it ends; for one that `is_let_go`, says that there is no room.
    """

    def __init__(self, shortcut: Shortcut, serve: Serve) -> None:
        self._shortcut = shortcut
        self._serve = serve
        self._listening: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._open: dict[Door, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()  # closed, to make room
        self._half: dict[Door, float] = {}  # since when, the longest first
        self._idle: dict[Door, None] = {}  # the longest first
        self._changed = asyncio.Event()

    async def open(self, host: str, port: int, tls: SSLContext | None) -> str:
        """Listen. Returns HOST:PORT. Errors: OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, *_, place in dict.fromkeys(found):
                self._listening.append(_listening(family, (place[0], port, *place[2:])))
                port = self._listening[-1].getsockname()[1]
        except OSError:
            self._close_sockets()
            raise
        self._accepting = [loop.create_task(self._accept(each, tls)) for each in self._listening]
        return host_port(host, port)

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        tasks = [*self._accepting, *self._open.values(), *self._leaving]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._close_sockets()

    def is_half(self, door: Door) -> None:
        """A request has begun."""
        if door in self._open:
            self._idle.pop(door, None)
            self._half[door] = asyncio.get_running_loop().time()
            self._changed.set()

    def is_busy(self, door: Door) -> None:
        """Its request is whole."""
        self._half.pop(door, None)

    def is_idle(self, door: Door) -> None:
        """It waits for the next request, and has waited least of all."""
        if door in self._open:
            self._half.pop(door, None)
            self._idle.pop(door, None)
            self._idle[door] = None
            self._changed.set()

    async def _accept(self, listening: socket.socket, tls: SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                wire, _ = await loop.sock_accept(listening)
            except OSError as error:
                logger.warning("cannot accept a connection: %s", error)
                await asyncio.sleep(ACCEPT_AGAIN_S)
                continue
            door = Door(self._shortcut)
            try:
                async with asyncio.timeout(ROOM_LIMIT_S):
                    await self._room()
            except TimeoutError:
                door.is_let_go = True
            except BaseException:
                wire.close()
                raise
            task = loop.create_task(self._run(door, wire, tls))
            if door.is_let_go:
                self._leave(task)
            else:
                self._open[door] = task
                self.is_half(door)

    async def _run(self, door: Door, wire: socket.socket, tls: SSLContext | None) -> None:
        limit_s = None if tls is None else HANDSHAKE_LIMIT_S
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: door, wire, ssl=tls, ssl_handshake_timeout=limit_s
            )
            await self._serve(door)
        except OSError as error:  # TLS that is none among them
            logger.info("a connection has failed: %s", error)
        finally:
            self._forget(door)
            wire.close() if door.transport is None else door.transport.close()

    async def _room(self) -> None:
        """Wait until another connection may be let in."""
        loop = asyncio.get_running_loop()
        while len(self._open) >= MOST_CONNECTIONS:
            ripe_s = next(iter(self._half.values()), None)
            if ripe_s is not None and ripe_s + GRACE_S <= loop.time():
                self._let_go(next(iter(self._half)))
            elif self._idle:
                self._let_go(next(iter(self._idle)))
            else:
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(None if ripe_s is None else ripe_s + GRACE_S):
                        await self._changed.wait()

    def _let_go(self, door: Door) -> None:
        door.is_let_go = door in self._half
        task = self._open[door]
        self._forget(door)
        self._leave(task)
        task.cancel()

    def _leave(self, task: asyncio.Task[None]) -> None:
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def _forget(self, door: Door) -> None:
        self._half.pop(door, None)
        self._idle.pop(door, None)
        if self._open.pop(door, None) is not None:
            self._changed.set()

    def _close_sockets(self) -> None:
        for each in self._listening:
            each.close()
        self._listening.clear()


def _listening(family: int, place: tuple[Any, ...]) -> socket.socket:
    """A socket that listens. Errors: OSError."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let another program take the port
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(place)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise OSError(error.errno, f"{host_port(str(place[0]), place[1])}: {error.strerror}") from None
    made.setblocking(False)
    return made
