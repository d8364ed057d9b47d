"""Requests that an HTTP server answers by their bytes: only while a connection is idle, whole, and in their order."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

from broker.shell.control import http, http_door
from broker.shell.control.http import HttpServer, response
from broker.shell.control.http_door import Door
from broker.shell.control.routes import Text


def request(path):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


class Server(HttpServer):
    """Answers /slow once `free` is set; /known may take the shortcut."""

    def __init__(self):
        super().__init__(self.none)
        self.usual = []
        self.free = asyncio.Event()

    async def none(self, method, target, body):
        raise AssertionError

    def shortcut(self, door, data):
        return response(200, Text("text/plain", b"short"), True, {}) if data == request("/known") else None

    async def answer(self, head, body):
        self.usual.append(head.target)
        if head.target == "/slow":
            await self.free.wait()
        return 200, Text("text/plain", head.target.encode())


class Client:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def body(self):
        head = await self.reader.readuntil(b"\r\n\r\n")
        return await self.reader.readexactly(int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]))

    async def ask(self, path):
        self.writer.write(request(path))
        return await self.body()


def run(play):
    """Run a play with a server, and with a function that connects to it."""

    async def played():
        server = Server()
        host, _, port = (await server.open("127.0.0.1", 0)).rpartition(":")
        clients = []

        async def connect():
            clients.append(Client(*await asyncio.open_connection(host, int(port))))
            return clients[-1]

        try:
            await play(server, connect)
        finally:
            for client in clients:
                client.writer.close()
            await server.close()

    asyncio.run(asyncio.wait_for(played(), 120))


def test_known_request_takes_the_shortcut_after_the_first_of_its_connection():
    async def play(server, connect):
        client = await connect()
        assert [await client.ask("/known") for _ in range(3)] == [b"/known", b"short", b"short"]
        assert await client.ask("/other") == b"/other"
        assert await client.ask("/known") == b"short"
        assert server.usual == ["/known", "/other"]

    run(play)


def test_known_request_after_one_that_waits_is_answered_after_it():
    async def play(server, connect):
        client = await connect()
        await client.ask("/first")
        client.writer.write(request("/slow"))
        while server.usual[-1] != "/slow":
            await asyncio.sleep(0)
        client.writer.write(request("/known"))
        other = await connect()  # once this one is answered, the bytes have come
        await other.ask("/first")
        server.free.set()
        assert [await client.body(), await client.body()] == [b"/slow", b"/known"]

    run(play)


def test_known_request_in_pieces_or_beside_another_goes_the_usual_way():
    async def play(server, connect):
        client = await connect()
        await client.ask("/first")
        whole = request("/known")
        client.writer.write(whole[:9])
        other = await connect()
        await other.ask("/first")  # the piece has come
        client.writer.write(whole[9:])
        assert await client.body() == b"/known"
        client.writer.write(whole + whole)
        assert [await client.body(), await client.body()] == [b"/known", b"/known"]
        assert await client.ask("/known") == b"short"

    run(play)


def test_connection_that_took_the_shortcut_has_waited_least(monkeypatch):
    monkeypatch.setattr(http_door, "MOST_CONNECTIONS", 2)

    async def play(server, connect):
        first, second = await connect(), await connect()
        await first.ask("/first")
        await second.ask("/first")
        assert await first.ask("/known") == b"short"
        third = await connect()
        assert await third.ask("/first") == b"/first"
        assert await second.reader.read() == b""
        assert await first.ask("/known") == b"short"

    run(play)


@pytest.mark.parametrize(("path", "is_closed"), [("/known", False), ("", True)])
def test_idle_connection_is_closed_unless_it_took_the_shortcut_meanwhile(monkeypatch, path, is_closed):
    limits = []

    class Limit:
        """An idle limit that is over when the test says so."""

        def __init__(self, seconds):
            self.seconds = seconds

        async def __aenter__(self):
            self.task = asyncio.current_task()
            if self.seconds == http.IDLE_LIMIT_S:
                limits.append(self)

        async def __aexit__(self, kind, error, trace):
            if kind is asyncio.CancelledError and self.seconds is None:
                self.task.uncancel()
                raise TimeoutError

        def end(self):
            self.seconds = None
            self.task.cancel()

    monkeypatch.setattr(http.asyncio, "timeout", Limit)

    async def play(server, connect):
        client = await connect()
        await client.ask("/first")
        while not limits:
            await asyncio.sleep(0)
        if path:
            assert await client.ask(path) == b"short"
        limits[0].end()
        if is_closed:
            assert await client.reader.read() == b""
        else:
            assert await client.ask("/known") == b"short"

    run(play)


def test_known_request_in_the_same_turn_as_another_waits_for_it():
    class Transport:
        written: ClassVar[list[bytes]] = []

        def get_write_buffer_size(self):
            return 0

        def is_closing(self):
            return True

        def get_extra_info(self, name):
            return None

        def write(self, data):
            self.written.append(data)

    async def played():
        door = Door(lambda door, data: b"short" if data == b"known" else None)
        door.connection_made(Transport())
        door.is_idle = True
        door.data_received(b"known")
        door.data_received(b"other")
        door.data_received(b"known")
        door.eof_received()
        assert (Transport.written, await door.reader.read()) == ([b"short"], b"otherknown")

    asyncio.run(played())
