"""Requests that HTTP servers do not agree on are answered as nginx or h11 do, whole or byte by byte."""

from __future__ import annotations

import asyncio

import h11
import pytest
from http_corpus import CORPUS, OURS, statuses

from broker.shell.control import http
from broker.shell.control.http import HttpServer
from broker.shell.control.http_requests import RequestReader
from broker.shell.control.routes import RefusedError, Text


def h11_says(request):
    """The statuses of h11, which is made to answer 200."""
    connection, found = h11.Connection(h11.SERVER), []
    connection.receive_data(request)
    has_ended = False
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA and not has_ended:
                connection.receive_data(b"")
                has_ended = True
            elif isinstance(event, h11.EndOfMessage):
                found.append("200")
                connection.send(h11.Response(status_code=404, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is h11.MUST_CLOSE:
                    break
                connection.start_next_cycle()
            elif event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                break
    except h11.RemoteProtocolError as error:
        found.append(str(error.error_status_hint))
    return " ".join(found)


class Server(HttpServer):
    async def answer(self, head, body):
        return 200, Text("text/plain", b"")


async def never(method, target, body):
    raise AssertionError


@pytest.mark.parametrize("name", CORPUS)
def test_request_is_answered_as_nginx_or_h11_do(name, monkeypatch):
    monkeypatch.setattr(http, "LINGER_S", 60.0)  # for the rest of what was refused
    request, nginx = CORPUS[name]

    async def asked():
        server = Server(never)
        host, _, port = (await server.open("127.0.0.1", 0)).rpartition(":")
        try:
            return await asyncio.to_thread(statuses, (host, int(port)), request)
        finally:
            await server.close()

    ours = asyncio.run(asyncio.wait_for(asked(), 120))
    others = {nginx, h11_says(request)}
    if name in OURS:
        assert ours == OURS[name][0]
        assert ours not in others, "it needs no reason any more"
    else:
        assert ours in others


def read(request, size):
    """What a reader makes of a request that comes in pieces of so many bytes: each request, and the refusal."""

    async def played():
        stream = asyncio.StreamReader()
        reader, found = RequestReader(stream), []
        pieces = [request[start : start + size] for start in range(0, len(request), size)]

        async def send():
            for piece in pieces:
                stream.feed_data(piece)
                while stream._buffer and stream._exception is None and not reading.done():
                    await asyncio.sleep(0)
            stream.feed_eof()

        async def receive():
            try:
                while await reader.begin():
                    head = await reader.head()
                    found.append((head.method, head.target, head.fields, await reader.body(head)))
            except RefusedError as refusal:
                found.append(refusal.status)

        reading = asyncio.ensure_future(receive())
        await send()
        await reading
        return found

    return asyncio.run(asyncio.wait_for(played(), 120))


@pytest.mark.parametrize("name", [name for name, (request, _) in CORPUS.items() if len(request) < 10_000])
def test_request_that_comes_byte_by_byte_is_the_same_request(name):
    request = CORPUS[name][0]
    assert read(request, 1) == read(request, 8192)
    assert read(request, 7) == read(request, 8192)
