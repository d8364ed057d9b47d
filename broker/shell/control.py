"""The control endpoint: HTTP and JSON on loopback, for tests to stop virtual brokers and move the clock.

    GET  /healthz                       200 while the process runs
    GET  /readyz                        200 when all groups are loaded, 503 before
    GET  /_admin/clock                  the time of the broker's clock
    POST /_admin/clock                  {"advance_ms": N}, {"set": UNIX_MS} (stops the clock), or {"resume": true}
    GET  /_admin/brokers                the virtual brokers and their addresses
    POST /_admin/brokers/ID/stop        close its listeners and connections; the others lead its partitions
    POST /_admin/brokers/ID/start       listen again, and lead its partitions again

One request a connection. An error is {"error": "..."} with an HTTP status. Moving the clock is answered when all due
work is done: members have timed out, offsets have expired, transactions are aborted. It uses no framework: for seven
routes that would take more of a start than all other imports of the broker.

Beyond Kafka: a control endpoint (`--control HOST:PORT`, HTTP and JSON on loopback) moves the clock and stops and starts
              virtual brokers. A partition whose only replica is stopped goes to another node and comes back; Kafka
              would leave it without a leader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.cluster.virtual_nodes import VirtualNodes
from broker.coordinator.runtime import LOADING, UNLOADED
from protocol.errors import KafkaError
from storage.errors import StorageError
from storage.movable_clock import MovableClock

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.cluster.listeners import Node

logger = logging.getLogger("momus.control")

HEAD_BYTES: Final = 8192
BODY_BYTES: Final = 65_536
MOST_CONNECTIONS: Final = 32
REQUEST_LIMIT_S: Final = 10.0  # for a request to arrive
LINGER_S: Final = 5.0  # for reading the rest of a refused request
SETTLE_LIMIT_S: Final = 25.0  # for the work that a moved clock made due: clients wait 30 s for the response
FOLLOW_UPS: Final = 4  # a timer, its job, the markers of a transaction, what they complete
LAST_MS: Final = 253_402_300_799_999  # the end of the year 9999
REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


class Shell(Protocol):
    """What the endpoint needs of the server around it."""

    @property
    def broker(self) -> Broker: ...
    @property
    def clock(self) -> MovableClock: ...
    async def listen(self, node: Node) -> None: ...
    def close_node(self, node: Node) -> None: ...
    def clock_moved(self) -> None: ...


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Control:
    """The endpoint of one server."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._broker = shell.broker
        self._nodes = VirtualNodes(shell.broker.nodes, shell.broker.metadata_shard, shell.broker.turn)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changing = asyncio.Lock()  # brokers stop and start one after the other
        self._routes: dict[tuple[str, ...], dict[str, Callable[..., Awaitable[Any]]]] = {
            ("healthz",): {"GET": self._health},
            ("readyz",): {"GET": self._ready},
            ("_admin", "clock"): {"GET": self._clock, "POST": self._move_clock},
            ("_admin", "brokers"): {"GET": self._brokers},
            ("_admin", "brokers", "*", "stop"): {"POST": self._stop},
            ("_admin", "brokers", "*", "start"): {"POST": self._start},
        }

    async def open(self, host: str, port: int) -> str:
        """Listen. Answers HOST:PORT."""
        self._server = await asyncio.start_server(self._connected, host, port, limit=HEAD_BYTES, backlog=16)
        return f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Stop listening and cancel open requests."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- HTTP

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if len(self._tasks) > MOST_CONNECTIONS:
                status, answer = 503, {"error": f"more than {MOST_CONNECTIONS} requests at once"}
            else:
                status, answer = await self._answer(reader)
            await self._send(writer, status, answer)
            if status != 200:  # closing with unread bytes would reset the connection and lose the response
                await asyncio.wait_for(_discard(reader), LINGER_S)
        except TimeoutError:
            logger.info("client continued to send after its request was refused")
        except OSError as error:  # the connection is closed
            logger.info("cannot send a reply: %s", error)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, Any]:
        try:
            method, path, body = await asyncio.wait_for(_read_request(reader), REQUEST_LIMIT_S)
            handler, words = self._route(method, path)
            return 200, await handler(*words, **({"body": body} if method == "POST" else {}))
        except RefusedError as refusal:
            return refusal.status, {"error": str(refusal)}
        except TimeoutError:
            return 408, {"error": f"no whole request within {REQUEST_LIMIT_S:.0f} s"}
        except (KafkaError, OSError, StorageError) as error:
            return 500, {"error": str(error) or type(error).__name__}

    def _route(self, method: str, path: str) -> tuple[Callable[..., Awaitable[Any]], list[str]]:
        words = tuple(path.partition("?")[0].strip("/").split("/"))
        for pattern, methods in self._routes.items():
            if len(pattern) == len(words) and all(p in ("*", word) for p, word in zip(pattern, words, strict=True)):
                if method not in methods:
                    raise RefusedError(405, f"{path} takes {' and '.join(methods)}")
                return methods[method], [word for p, word in zip(pattern, words, strict=True) if p == "*"]
        raise RefusedError(404, f"no such path: {path}")

    async def _send(self, writer: asyncio.StreamWriter, status: int, answer: Any) -> None:
        import json  # 2 ms: few brokers need it

        body = json.dumps(answer).encode() + b"\n"
        head = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()

    # -- routes

    async def _health(self) -> dict[str, Any]:
        return {"status": "ok"}

    async def _ready(self) -> dict[str, Any]:
        broker = self._broker
        waiting = [
            shard.name
            for index, shard in enumerate(broker.groups.shards)
            if shard.state is LOADING or (shard.state is UNLOADED and broker.directory.exists(OFFSETS_TOPIC, index))
        ]
        if waiting:
            raise RefusedError(503, f"{len(waiting)} shards are still loading, {waiting[0]} among them")
        return {"status": "ready"}

    async def _clock(self) -> dict[str, Any]:
        clock = self._shell.clock
        return {"now_ms": clock.now_ms(), "stands": clock.stands_at_ms is not None}

    async def _move_clock(self, body: dict[str, Any]) -> dict[str, Any]:
        clock = self._shell.clock
        if len(body) != 1 or not body.keys() <= {"advance_ms", "set", "resume"}:
            raise RefusedError(400, 'give one of "advance_ms", "set" and "resume"')
        ((word, value),) = body.items()
        if word == "resume":
            if value is not True:
                raise RefusedError(400, '"resume" takes true')
            clock.resume()
        elif type(value) is not int:
            raise RefusedError(400, f'"{word}" takes a whole number of milliseconds')
        else:
            until_ms = value if word == "set" else clock.now_ms() + value
            if not clock.now_ms() <= until_ms <= LAST_MS:
                raise RefusedError(
                    400, f"the clock is at {clock.now_ms()} and moves only forward, to {LAST_MS} at most"
                )
            if word == "set":
                clock.stand(value)
            else:
                clock.advance(value)
        self._shell.clock_moved()
        return {**await self._clock(), "settled": await self._settle()}

    async def _settle(self) -> bool:
        """Wait until what is due by now is done, and what comes of it: a timer begins a job, which appends records.

        Under traffic there is always other work, which does not count: what is waited for is noted once for each of
        FOLLOW_UPS rounds. False: it was not done within SETTLE_LIMIT_S.
        """
        turn, loop = self._broker.turn, asyncio.get_running_loop()
        give_up_s, until_ms = loop.time() + SETTLE_LIMIT_S, self._shell.clock.steady_ms()
        durability = turn.durability
        for _ in range(FOLLOW_UPS):
            jobs, syncs = turn.jobs.waiting, durability.syncs_done
            while True:
                if loop.time() >= give_up_s:
                    return False
                await asyncio.sleep(0.001)
                due_ms = turn.timers.next_ms
                if due_ms is not None and due_ms <= until_ms:
                    continue
                if not turn.jobs and durability.idle:
                    return True
                # The first sync that ends may have begun before the records were appended.
                is_durable = durability.idle or durability.syncs_done >= syncs + 2
                if is_durable and not turn.jobs.has_any(jobs):
                    break
        return True

    async def _brokers(self) -> list[dict[str, Any]]:
        return [self._describe(node) for node in self._nodes.all]

    def _describe(self, node: Node) -> dict[str, Any]:
        listeners = {name: f"{listener.host}:{listener.port}" for name, listener in node.listeners.items()}
        return {"id": node.node_id, "up": self._nodes.is_up(node), "listeners": listeners}

    async def _stop(self, word: str, body: dict[str, Any]) -> dict[str, Any]:
        _check_empty(body)
        async with self._changing:
            node = self._find(word)
            if self._nodes.is_up(node):
                if len(self._broker.nodes) == 1:
                    raise RefusedError(409, f"broker {node.node_id} is the last running one")
                await self._change(self._nodes.stop, node)
                self._shell.close_node(node)
            return self._describe(node)

    async def _start(self, word: str, body: dict[str, Any]) -> dict[str, Any]:
        _check_empty(body)
        async with self._changing:
            node = self._find(word)
            if not self._nodes.is_up(node):
                await self._shell.listen(node)
                try:
                    await self._change(self._nodes.start, node)
                except BaseException:
                    self._shell.close_node(node)
                    raise
            return self._describe(node)

    async def _change(self, change: Callable[[Node, Callable[[bool], None]], None], node: Node) -> None:
        """Stop or start a node, and wait until that is durable."""
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        change(node, lambda durable: None if written.done() else written.set_result(durable))
        if not await written:
            raise RefusedError(500, "the metadata log could not be written")

    def _find(self, word: str) -> Node:
        node = self._nodes.find(int(word)) if word.isascii() and word.isdigit() and len(word) < 10 else None
        if node is None:
            known = ", ".join(str(node.node_id) for node in self._nodes.all)
            raise RefusedError(404, f"no such broker: {word:.20}; there are {known}")
        return node


def _check_empty(body: dict[str, Any]) -> None:
    if body:
        raise RefusedError(400, f"no fields are expected here, but got {', '.join(body):.100}")


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(BODY_BYTES):
        pass


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, Any]]:
    """Method, path and the JSON object of the body. Errors: RefusedError."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise RefusedError(431, f"the head of the request is larger than {HEAD_BYTES} bytes") from None
    except asyncio.IncompleteReadError:
        raise RefusedError(400, "the head of the request is incomplete") from None
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[1].startswith("/"):
        raise RefusedError(400, f"{first[:100]!r} is not an HTTP request")
    if not words[2].startswith("HTTP/1."):
        raise RefusedError(505, "only HTTP/1.1 is supported")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise RefusedError(400, f"{line[:100]!r} is not a header")
        if name.lower() == "content-length" and name.lower() in fields:
            raise RefusedError(400, "Content-Length is given twice")
        fields[name.lower()] = value.strip()
    if "origin" in fields:  # a web page in a local browser, which can reach loopback too
        raise RefusedError(403, "requests of web pages are refused")
    return words[0], words[1], await _read_body(reader, words[0], fields)


async def _read_body(reader: asyncio.StreamReader, method: str, fields: dict[str, str]) -> dict[str, Any]:
    if "transfer-encoding" in fields:
        raise RefusedError(501, "a body needs a Content-Length")
    length = fields.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise RefusedError(400, "Content-Length is not a number")
    if len(length) > 9 or int(length) > BODY_BYTES:
        raise RefusedError(413, f"the body is larger than {BODY_BYTES} bytes")
    try:
        body = await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        raise RefusedError(400, "the body is incomplete") from None
    if not body.strip() or method != "POST":
        return {}
    import json  # 2 ms: few brokers need it

    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RefusedError(400, "the body is not a JSON object")
    return value
