"""Limits of an HTTP server: what a request may add to its body, who is let in, what is read of a stranger."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct

import pytest

from broker.shell.control import http, http_door
from broker.shell.control.http import HttpServer
from broker.shell.control.http_door import Door
from broker.shell.control.http_requests import HEAD_BYTES, RequestReader
from broker.shell.control.routes import RefusedError, Text

HEAD = b"POST /p HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
MOST = 20_000
ENDLESS = {
    "chunks of one byte": (CHUNKED, b"1\r\nx\r\n", 413),
    "an extension": (CHUNKED + b"1;", b"a" * 50, 413),
    "extensions": (CHUNKED, b"1;" + b"a" * 50 + b"\r\nx\r\n", 413),
    "one chunk": (CHUNKED + b"ffffff\r\n", b"x" * 50, 413),
    "trailers": (CHUNKED + b"0\r\n", b"T: x\r\n", 431),
    "a trailer": (CHUNKED + b"0\r\nT: ", b"x" * 50, 413),
    "a target": (b"GET /", b"x" * 50, 431),
    "a name": (HEAD, b"x" * 50, 431),
    "a value": (HEAD + b"X: ", b"x" * 50, 431),
    "fields": (HEAD, b"X: y\r\n", 431),
    "empty lines": (b"", b"\r\n" * 25, 431),
    "zeros of a size": (CHUNKED, b"0" * 50, 413),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_request_without_end_is_refused_soon_after_its_limit(what):
    begin, more, status = ENDLESS[what]

    async def played():
        reader, sent = RequestReader(asyncio.StreamReader(), MOST), len(begin)
        reader.feed(begin)
        while reader._refusal is None:
            assert sent <= MOST + 3 * HEAD_BYTES
            reader.feed(more)
            sent += len(more)
        with pytest.raises(RefusedError) as refused:
            await reader.body(await reader.head())
        assert refused.value.status == status

    asyncio.run(played())


@pytest.mark.parametrize("over", [0, 1])
def test_limits_are_reached_and_not_passed(over):
    async def played():
        for data in (
            HEAD + b"Content-Length: %d\r\n\r\n" % (MOST + over) + b"x" * (MOST + over),
            CHUNKED + b"%x\r\n" % (MOST + over) + b"x" * (MOST + over) + b"\r\n0\r\n\r\n",
        ):
            stream = asyncio.StreamReader()
            stream.feed_data(data)
            stream.feed_eof()
            reader = RequestReader(stream, MOST)
            head = await reader.head()
            if over:
                with pytest.raises(RefusedError, match="larger than 20000 bytes"):
                    await reader.body(head)
            else:
                assert await reader.body(head) == b"x" * MOST

    asyncio.run(played())


class Server(HttpServer):
    """Answers what it is asked for: /wait once it is free."""

    def __init__(self, token=None):
        super().__init__(self.none, token)
        self.free = asyncio.Event()
        self.waiting = 0
        self.admitted = []

    async def none(self, method, target, body):
        raise AssertionError

    async def admit(self, head):
        self.admitted.append(bytes(head.body))

    async def answer(self, head, body):
        if head.target == "/wait":
            self.waiting += 1
            await self.free.wait()
        return 200, Text("text/plain", body)


def run(play, token=None):
    async def played():
        server = Server(token)
        host, _, port = (await server.open("127.0.0.1", 0)).rpartition(":")
        opened = []

        async def connect(data=b""):
            reader, writer = await asyncio.open_connection(host, int(port))
            opened.append(writer)
            writer.write(data)
            return reader, writer

        try:
            await play(server, connect)
        finally:
            for writer in opened:
                writer.close()
            await server.close()

    asyncio.run(asyncio.wait_for(played(), 120))


def get(path, close=True):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{'Connection: close' if close else 'X: y'}\r\n\r\n".encode()


HALF = {"nothing": b"", "half a head": b"GET / HT", "half a body": HEAD + b"Content-Length: 9\r\n\r\nab"}


@pytest.mark.parametrize("what", HALF)
def test_half_requests_at_all_doors_make_room_for_whole_ones(what, monkeypatch):
    monkeypatch.setattr(http_door, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(http_door, "GRACE_S", 0.0)

    async def play(server, connect):
        half = [await connect(HALF[what]) for _ in range(4)]
        for _ in range(6):
            reader, _ = await connect(get("/"))
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
        reader, _ = half[0]  # the first that came is the first that goes
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 503")

    run(play)


def test_half_request_makes_room_before_a_connection_that_is_idle(monkeypatch):
    monkeypatch.setattr(http_door, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(http_door, "GRACE_S", 0.0)

    async def play(server, connect):
        idle, asks = await connect(get("/", close=False))
        await idle.readuntil(b"\r\n\r\n")
        half, _ = await connect(b"GET")
        reader, _ = await connect(get("/"))
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        assert (await half.readuntil(b"}")).startswith(b"HTTP/1.1 503")
        asks.write(get("/"))
        assert (await idle.read()).startswith(b"HTTP/1.1 200")

    run(play)


def test_burst_of_requests_waits_until_there_is_room(monkeypatch):
    monkeypatch.setattr(http_door, "MOST_CONNECTIONS", 4)

    async def play(server, connect):
        readers = [(await connect(get("/wait")))[0] for _ in range(40)]
        while server.waiting < 4:
            await asyncio.sleep(0)
        assert server.waiting == 4
        server.free.set()
        for reader in readers:
            assert (await reader.read()).startswith(b"HTTP/1.1 200")

    run(play)


def test_request_that_finds_no_room_in_time_is_told_so(monkeypatch):
    monkeypatch.setattr(http_door, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(http_door, "ROOM_LIMIT_S", 0.0)

    async def play(server, connect):
        first, _ = await connect(get("/wait"))
        while not server.waiting:
            await asyncio.sleep(0)
        second, _ = await connect(get("/"))
        assert b"more than 64 requests at once" in await second.readuntil(b"}")
        server.free.set()
        assert (await first.read()).startswith(b"HTTP/1.1 200")

    run(play)


def test_who_asks_is_found_out_before_the_body_is_read():
    async def play(server, connect):
        refused, _ = await connect(HEAD + b"Content-Length: 1000000\r\n\r\n")
        assert (await refused.readuntil(b"}")).startswith(b"HTTP/1.1 401")
        assert server.admitted == []
        reader, writer = await connect(HEAD + b"Authorization: Bearer x\r\nContent-Length: 2\r\n\r\n")
        while server.admitted != [b""]:
            await asyncio.sleep(0)
        writer.write(b"ab")
        assert (await reader.readuntil(b"ab")).startswith(b"HTTP/1.1 200")

    run(play, token="x")


def test_client_that_expects_a_word_gets_it_where_its_body_is_wanted():
    async def play(server, connect):
        head = HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n"
        refused, _ = await connect(head + b"\r\n")
        assert (await refused.readuntil(b"\r\n")) == b"HTTP/1.1 401 Unauthorized\r\n"
        reader, writer = await connect(head + b"Authorization: Bearer x\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"ab")
        assert (await reader.readuntil(b"ab")).startswith(b"HTTP/1.1 200")

    run(play, token="x")


def test_request_that_is_refused_whole_leaves_its_connection_open():
    async def play(server, connect):
        reader, writer = await connect(get("/", close=False))
        assert (await reader.readuntil(b"}\n")).startswith(b"HTTP/1.1 401")
        writer.write(get("/", close=False).replace(b"X: y", b"Authorization: Bearer x"))
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")

    run(play, token="x")


def test_request_that_takes_too_long_to_arrive_is_refused(monkeypatch):
    monkeypatch.setattr(http, "REQUEST_LIMIT_S", 0.01)

    async def play(server, connect):
        reader, _ = await connect(b"GET / HT")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 408")

    run(play)


def test_client_that_resets_its_connection_leaves_no_word_in_the_log(monkeypatch):
    # As where the collector ends a cycle in the other order: the future of the end goes before the connection.
    monkeypatch.setattr(Door, "__del__", lambda door: None, raising=False)
    told = []

    async def play(server, connect):
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["message"]))
        _, writer = await connect(b"GET / HT")
        while not server._connections._open:
            await asyncio.sleep(0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        while server._connections._open:
            await asyncio.sleep(0)

    run(play)
    gc.collect()
    assert told == []
