"""HTTP/1.1 with JSON bodies, as much as the control plane needs. It knows no route.

Theory of operation. A connection serves one request after the other (keep-alive). Its head must arrive whole within
REQUEST_LIMIT_S and be at most HEAD_BYTES long, its body at most BODY_BYTES. A refused request closes the connection
where the rest of its bytes is unknown. At most MOST_CONNECTIONS are open; the one that has waited longest between two
requests makes room for a new one.

Who may ask: requests of web pages (Origin, Sec-Fetch-Site) are refused, but for those of our own page, which this very
port has served; so is a Host that is neither an address nor localhost, which is how a page reaches a local port by a
name of its own. With a token, `Authorization: Bearer TOKEN` is required instead, and any Host will do; the files of our
page can be had without it. It uses no framework: for a few routes that would take more of a start than all other
imports.

A server with other manners (the schema registry's) overrides `check`, `answer` and `explain`; `shortcut` answers a
request whose bytes it knows at once, without the connection's task.

A Stream has a connection of its own, which ends with it. Its next piece is made when the client has taken the one
before, so a client that does not read costs one piece of memory, and STUCK_LIMIT_S.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from broker.config.addresses import host_port
from broker.shell.control.http_door import Door
from broker.shell.control.http_requests import BODY_BYTES, Head, parse_body, read_body, read_head
from broker.shell.control.routes import RefusedError, Stream, Text
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from ssl import SSLContext

logger = logging.getLogger("momus.control")

MOST_CONNECTIONS: Final = 64
REQUEST_LIMIT_S: Final = 10.0  # for a request to arrive, once its first byte has
IDLE_LIMIT_S: Final = 600.0  # between two requests
STUCK_LIMIT_S: Final = 60.0  # for a client to take a piece of a stream
STREAM_BYTES: Final = 65_536  # of a stream that may wait for its client, beside the last piece
LINGER_S: Final = 5.0  # for reading the rest of a refused request
LOCAL_HOST: Final = re.compile(r"(localhost|[\d.]+|\[[0-9a-fA-F:.]+\])(:\d+)?")
REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    421: "Misdirected Request",
    422: "Unprocessable Entity",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}

Respond = Callable[[str, str, dict[str, Any]], Awaitable[Any]]


class HttpServer:
    """Listens, and answers each request by `respond(method, target, body)`.

    token       what requests must carry; None: nothing.
    is_public   whether a path may be read without the token, and by a link of another page.
    """

    def __init__(
        self, respond: Respond, token: str | None = None, is_public: Callable[[str], bool] = lambda target: False
    ) -> None:
        self._respond = respond
        self._token = token
        self._is_public = is_public
        self.body_bytes = BODY_BYTES  # at most
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._idle: dict[asyncio.Task[None], None] = {}  # between two requests, the longest first

    async def open(self, host: str, port: int, tls: SSLContext | None = None) -> str:
        """Listen. Returns HOST:PORT."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Door(self.shortcut, self._connected), host, port, backlog=64, ssl=tls
        )
        return host_port(host, self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and cancel open requests."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, door: Door) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            if len(self._open) > MOST_CONNECTIONS and not self._make_room():
                why = self.explain(503, f"more than {MOST_CONNECTIONS} requests at once")
                await self._send(writer, 503, why, False)
                await asyncio.wait_for(_discard(reader), LINGER_S)
            else:
                while await self._serve_one(task, reader, writer, door):
                    self._idle[task] = None
        except asyncio.CancelledError:  # by close(); to pass it on would make asyncio log it
            logger.debug("closed with a request under way")
        except TimeoutError:
            logger.info("client continued to send after its request was refused")
        except OSError as error:  # the connection is closed
            logger.info("cannot send a reply: %s", error)
        finally:
            self._idle.pop(task, None)
            del self._open[task]
            writer.close()

    def shortcut(self, door: Door, data: bytes) -> bytes | None:
        """The whole response to the bytes of a request, which waits for nothing; None: it goes the usual way."""
        return None

    def _passed(self, task: asyncio.Task[None]) -> None:
        """A connection that is idle has been served: it is the one that has waited least."""
        if task in self._idle:
            self._idle[task] = self._idle.pop(task)

    def _make_room(self) -> bool:
        """Close the connection that has waited longest between two requests."""
        for task in self._idle:
            del self._idle[task]
            self._open[task].transport.abort()
            return True
        return False

    async def _serve_one(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter, door: Door
    ) -> bool:
        """Serve one request. Returns whether another one may follow."""
        keeps_alive = False
        try:
            first = await self._first_byte(task, reader, door)
            if not first:
                return False
            async with asyncio.timeout(REQUEST_LIMIT_S):
                head = await read_head(first, reader)
                head.door, head.peer, head.abort = door, writer.get_extra_info, writer.transport.abort
                self.check(head)
                body = await read_body(reader, head, self.body_bytes)
            keeps_alive = head.keeps_alive  # its bytes are read: what is refused from here on is refused alone
            status, answer = await self.answer(head, body)
        except RefusedError as refusal:
            status, answer = refusal.status, self.explain(refusal.status, str(refusal))
        except TimeoutError:
            status, answer = 408, self.explain(408, f"no whole request within {REQUEST_LIMIT_S:.0f} s")
        except (KafkaError, OSError, StorageError) as error:
            status, answer = 500, self.explain(500, str(error) or type(error).__name__)
        except Exception as error:  # a mistake of ours: the one who asked is told as well
            logger.exception("%s %s failed", head.method, head.target)
            status, answer = 500, self.explain(500, f"{type(error).__name__}: {error}")
        if isinstance(answer, Stream):
            await _send_stream(task, reader, writer, answer)
            return False
        await self._send(writer, status, answer, keeps_alive)
        if not keeps_alive and status != 200:  # closing with unread bytes would reset the connection: lose the response
            await asyncio.wait_for(_discard(reader), LINGER_S)
        return keeps_alive

    async def _first_byte(self, task: asyncio.Task[None], reader: asyncio.StreamReader, door: Door) -> bytes:
        if task not in self._idle:  # the first request must follow the connection
            async with asyncio.timeout(REQUEST_LIMIT_S):
                first = await reader.read(1)
                if not first:
                    raise RefusedError(400, "the request is empty")
                return first
        door.passed = lambda: self._passed(task)
        try:
            while True:
                served = door.served
                try:
                    async with asyncio.timeout(IDLE_LIMIT_S):
                        door.is_idle = True
                        return await reader.read(1)
                except TimeoutError:
                    if door.served == served:
                        return b""
        finally:
            door.is_idle = False
            self._idle.pop(task, None)

    async def answer(self, head: Head, body: bytes) -> tuple[int, Any]:
        """Status and answer of a request that may be asked. Errors: RefusedError, and what `respond` raises."""
        return 200, await self._respond(head.method, head.target, parse_body(head, body))

    def explain(self, status: int, why: str) -> Any:
        """The answer to what is refused."""
        return {"error": why}

    def check(self, head: Head) -> None:
        """Refuse who may not ask. Errors: RefusedError."""
        is_public = head.method == "GET" and self._is_public(head.target)
        host = head.fields.get("host", "localhost")
        if not is_of_our_page(head, host, is_public):  # a page in a local browser, which can reach loopback too
            raise RefusedError(
                403, "requests of web pages are refused, but for those of the page that this port serves"
            )
        if self._token is not None:
            import hmac  # 2 ms: few endpoints have a token

            given = head.fields.get("authorization", "")
            if not is_public and not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                raise RefusedError(401, "a token is required: Authorization: Bearer TOKEN (--control-token)")
        elif not LOCAL_HOST.fullmatch(host):
            raise RefusedError(421, f"{host:.100} is not a local address: ask by localhost or an address")

    async def _send(self, writer: asyncio.StreamWriter, status: int, answer: Any, keeps_alive: bool) -> None:
        if not isinstance(answer, Text):
            answer = Text("application/json", json.dumps(answer).encode() + b"\n")
        writer.write(response(status, answer, keeps_alive))
        await writer.drain()


def response(status: int, answer: Text, keeps_alive: bool) -> bytes:
    """A response as it is sent."""
    body = answer.body
    head = f"HTTP/1.1 {status} {REASONS.get(status, '')}\r\nContent-Type: {answer.media}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in answer.fields.items())
    head += f"Content-Length: {len(body)}\r\nConnection: {'keep-alive' if keeps_alive else 'close'}\r\n\r\n"
    return head.encode() + body


def is_of_our_page(head: Head, host: str, is_public: bool) -> bool:
    """Whether no browser asks, or our own page does, or a link leads to it.

    A page cannot change these two fields. Origin is in each POST and in what another site reads; Sec-Fetch-Site is in
    all requests of today's browsers, those for images and scripts included.
    """
    origin, site = head.fields.get("origin"), head.fields.get("sec-fetch-site")
    if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
        return False
    if site in (None, "same-origin", "none"):
        return True
    return is_public and head.fields.get("sec-fetch-mode") == "navigate"


async def _send_stream(
    task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: Stream
) -> None:
    """Send a stream until it ends or the client hangs up. Errors: OSError."""
    writer.transport.set_write_buffer_limits(high=STREAM_BYTES)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {stream.media}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())

    def hung_up(done: asyncio.Task[None]) -> None:
        if not done.cancelled():
            done.exception()
            task.cancel()

    listening = asyncio.ensure_future(_discard(reader))
    listening.add_done_callback(hung_up)
    try:
        async for piece in stream.pieces:
            writer.write(piece)
            async with asyncio.timeout(STUCK_LIMIT_S):
                await writer.drain()
    except TimeoutError:
        writer.transport.abort()
        raise
    finally:
        listening.cancel()
        await stream.pieces.aclose()


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass
