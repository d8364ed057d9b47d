"""HTTP/1.1 with JSON bodies, as much as the control plane needs. It knows no route.

Theory of operation. A connection serves one request after the other (keep-alive). A request must arrive whole within
REQUEST_LIMIT_S; its head is at most HEAD_BYTES long, its body at most BODY_BYTES. http_requests.py reads it;
http_door.py says how many connections there are and who makes room. A refused request closes the connection where the
rest of its bytes is unknown.

Who may ask is found out once the head has come, before the body is read: requests of web pages (Origin,
Sec-Fetch-Site) are refused, but for those of our own page, which this very port has served; so is a Host that is
neither an address nor localhost, which is how a page reaches a local port by a name of its own. With a token,
`Authorization: Bearer TOKEN` is required instead, and any Host will do; the files of our page can be had without it. It
uses no framework: for a few routes that would take more of a start than all other imports.

A large body is read in slices, one at a time (large_json.py), and given up in slices once it was answered.

A server with other manners (the schema registry's) overrides `check`, `admit`, `answer`, `explain` and `fields`;
`shortcut` answers a request whose bytes it knows at once, without the connection's task.

A Stream has a connection of its own, which ends with it. Its next piece is made when the client has taken the one
before, so a client that does not read costs one piece of memory, and STUCK_LIMIT_S.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.shell.control.http_door import MOST_CONNECTIONS, Connections, Door
from broker.shell.control.http_requests import BODY_BYTES, WITH_BODY, Head, RequestReader, object_of, parse_body
from broker.shell.control.routes import RefusedError, Stream, Text
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

logger = logging.getLogger("momus.control")

REQUEST_LIMIT_S: Final = 10.0  # for a request to arrive, once its first byte has
IDLE_LIMIT_S: Final = 600.0  # between two requests
STUCK_LIMIT_S: Final = 60.0  # for a client to take a piece of a stream
STREAM_BYTES: Final = 65_536  # of a stream that may wait for its client, beside the last piece
SHORT: Final = 32_768  # bytes of a body that is parsed within a millisecond, whatever it holds
LINGER_S: Final = 5.0  # for reading the rest of a refused request
LOCAL_HOST: Final = re.compile(r"(localhost|[\d.]+|\[[0-9a-fA-F:.]+\])(:\d+)?")
REASONS: Final = {
    200: "OK",
    204: "No Content",
    207: "Multi-Status",
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

T = TypeVar("T")
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
        self._reading = asyncio.Lock()  # of large bodies: many at once would have a slice each in every turn
        self._connections = Connections(lambda door, data: self.shortcut(door, data), self._connected)

    async def open(self, host: str, port: int, tls: SSLContext | None = None) -> str:
        """Listen. Returns HOST:PORT. Errors: OSError."""
        return await self._connections.open(host, port, tls)

    async def close(self) -> None:
        """Stop listening and cancel open requests."""
        await self._connections.close()

    async def _connected(self, door: Door) -> None:
        writer = asyncio.StreamWriter(door.transport, door, door.reader, asyncio.get_running_loop())
        requests = RequestReader(door.reader, self.body_bytes)
        try:
            if door.is_let_go:
                await self._tell_full(door, writer)
            else:
                is_first = True
                while await self._serve_one(door, requests, writer, is_first):
                    is_first = False
        except asyncio.CancelledError:  # by close(), or for another connection; to pass it on would make asyncio log it
            logger.debug("closed with a request under way")
            if door.is_let_go:
                await self._tell_full(door, writer)
        except TimeoutError:
            logger.info("client continued to send after its request was refused")
        except OSError as error:  # the connection is closed
            logger.info("cannot send a reply: %s", error)
        finally:
            writer.close()

    async def _tell_full(self, door: Door, writer: asyncio.StreamWriter) -> None:
        why = f"more than {MOST_CONNECTIONS} requests at once"
        with contextlib.suppress(OSError, TimeoutError):  # it is gone, or it continues to send
            await self._send(writer, 503, self.explain(503, why), False, None)
            await asyncio.wait_for(_discard(door.reader), LINGER_S)

    def shortcut(self, door: Door, data: bytes) -> bytes | None:
        """The whole response to the bytes of a request, which waits for nothing; None: it goes the usual way."""
        return None

    async def _serve_one(
        self, door: Door, requests: RequestReader, writer: asyncio.StreamWriter, is_first: bool
    ) -> bool:
        """Serve one request. Returns whether another one may follow."""
        head: Head | None = None
        try:
            if not is_first and not await self._begun(door, requests):
                return False
            async with asyncio.timeout(REQUEST_LIMIT_S):
                head = await requests.head()
                head.door, head.peer, head.abort = door, writer.get_extra_info, writer.transport.abort
                self.check(head)
                await self.admit(head)
                if head.expects_word and not head.is_whole:
                    _write(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await requests.body(head)
            self._connections.is_busy(door)
            status, answer = await self.answer(head, body)
        except RefusedError as refusal:
            status, answer = refusal.status, self.explain(refusal.status, str(refusal))
            if refusal.seen:
                answer = {**refusal.seen, **answer}
        except TimeoutError:
            status, answer = 408, self.explain(408, f"no whole request within {REQUEST_LIMIT_S:.0f} s")
        except (KafkaError, OSError, StorageError) as error:
            status, answer = 500, self.explain(500, str(error) or type(error).__name__)
        except Exception as error:  # a mistake of ours: the one who asked is told as well
            logger.exception("%s failed", "a request" if head is None else f"{head.method} {head.target}")
            status, answer = 500, self.explain(500, f"{type(error).__name__}: {error}")
        if isinstance(answer, Stream):
            await _send_stream(door.reader, writer, answer)
            return False
        if head is not None and head.large is not None:
            await in_slices(head.large.freeing())
        keeps_alive = head is not None and head.is_whole and head.keeps_alive
        await self._send(writer, status, answer, keeps_alive, head)
        if not keeps_alive and status != 200:  # closing with unread bytes would reset the connection: lose the response
            await asyncio.wait_for(_discard(door.reader), LINGER_S)
        return keeps_alive

    async def _begun(self, door: Door, requests: RequestReader) -> bool:
        """Wait for the next request. Returns False where the connection has ended, or was idle for too long."""
        if not requests.is_between:
            self._connections.is_half(door)
            await asyncio.sleep(0)  # of a hundred that came together each lets others have their turn
            return True
        self._connections.is_idle(door)
        door.passed = lambda: self._connections.is_idle(door)
        try:
            while True:
                served = door.served
                try:
                    async with asyncio.timeout(IDLE_LIMIT_S):
                        door.is_idle = True
                        has_begun = await requests.begin()
                except TimeoutError:
                    if door.served == served:
                        return False
                else:
                    self._connections.is_half(door)
                    return has_begun
        finally:
            door.is_idle = False

    async def answer(self, head: Head, body: bytes | bytearray) -> tuple[int, Any]:
        """Status and answer of a request that may be asked. Errors: RefusedError, and what `respond` raises."""
        return 200, await self._respond(head.method, head.target, await self._parsed(head, body))

    async def _parsed(self, head: Head, body: bytes | bytearray) -> dict[str, Any]:
        """The JSON object of a body. Errors: RefusedError."""
        if len(body) <= SHORT or head.method not in WITH_BODY:
            return parse_body(head, body)
        from broker.shell.control.large_json import LargeJson  # 2 ms: few endpoints are sent much

        async with self._reading:
            head.large = LargeJson(body)
            try:
                return object_of(await in_slices(head.large.reading()))
            except ValueError as error:
                raise RefusedError(400, f"the body is not JSON that is read here: {error}") from None

    def fields(self, head: Head | None) -> Mapping[str, str]:
        """Further fields of the response to a request; None: what came was no whole one."""
        return {}

    async def admit(self, head: Head) -> None:
        """Refuse who may not ask, where it takes time to find out, before the body is read. Errors: RefusedError."""

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

    async def _send(
        self, writer: asyncio.StreamWriter, status: int, answer: Any, keeps_alive: bool, head: Head | None
    ) -> None:
        if not isinstance(answer, Text):
            answer = Text("application/json", json.dumps(answer).encode() + b"\n")
        data = response(status, answer, keeps_alive, self.fields(head))
        if head is not None and head.method == "HEAD":  # the length is that of the body, which is not sent
            data = data[: len(data) - len(answer.body)]
        _write(writer, data)
        await writer.drain()


def response(status: int, answer: Text, keeps_alive: bool, fields: Mapping[str, str]) -> bytes:
    """A response as it is sent, with further fields of its head."""
    body = answer.body
    head = f"HTTP/1.1 {status} {REASONS.get(status, '')}\r\n"
    head += f"Content-Type: {answer.media}\r\n" if answer.media else ""
    head += "".join(f"{name}: {value}\r\n" for name, value in {**fields, **answer.fields}.items())
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


async def _send_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: Stream) -> None:
    """Send a stream until it ends or the client hangs up. Errors: OSError."""
    writer.transport.set_write_buffer_limits(high=STREAM_BYTES)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {stream.media}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    _write(writer, head.encode())

    task = asyncio.current_task()
    assert task is not None

    def hung_up(done: asyncio.Task[None]) -> None:
        if not done.cancelled():
            done.exception()
            task.cancel()

    listening = asyncio.ensure_future(_discard(reader))
    listening.add_done_callback(hung_up)
    try:
        async for piece in stream.pieces:
            _write(writer, piece)
            async with asyncio.timeout(STUCK_LIMIT_S):
                await writer.drain()
    except TimeoutError:
        writer.transport.abort()
        raise
    finally:
        listening.cancel()
        await stream.pieces.aclose()


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Errors: ConnectionResetError, where uvloop raises RuntimeError: the client has reset its connection."""
    if writer.is_closing():
        raise ConnectionResetError("the client is gone")
    writer.write(data)


async def in_slices(slices: Generator[None, None, T]) -> T:
    """What slices of work return, with a turn for others after each. Errors: theirs."""
    try:
        while True:
            next(slices)
            await asyncio.sleep(0)
    except StopIteration as end:
        value: T = end.value
        return value


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass
