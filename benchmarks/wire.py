"""A connection of the load generator: raw frames kept in flight in a closed loop, with no client library between."""

from __future__ import annotations

import asyncio
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from protocol.api import ApiKey, response_class
from protocol.codegen import codec

CLIENT_ID = b"load"
HEAD = struct.Struct(">ihhih")
SIZE_AND_ID = struct.Struct(">ii")


def frame(request: Any, version: int, correlation_id: int = 0) -> bytes:
    """One request as it goes over the wire; its correlation id is at byte 8."""
    body = codec(type(request), version).encode(request)
    tags = b"\x00" if version >= type(request).FLEXIBLE_SINCE else b""
    size = HEAD.size - 4 + len(CLIENT_ID) + len(tags) + len(body)
    return HEAD.pack(size, request.API_KEY, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID + tags + body


def parse(api_key: int, version: int, payload: bytes | memoryview) -> Any:
    """The response in a frame, size and correlation id taken off."""
    response = response_class(api_key)
    at = 1 if version >= response.FLEXIBLE_SINCE and api_key != ApiKey.API_VERSIONS else 0
    return codec(response, version).decode(memoryview(payload), at)[0]


class Wire(asyncio.Protocol):
    """Keeps `inflight` requests on the wire: as many replies as came, so many requests follow in one write.

    make(n)     the next n frames, joined, or b"" at the end
    done(body)  looks at one reply, correlation id included; replies come in order
    """

    def __init__(self) -> None:
        self.transport: Any = None
        self.rest = b""
        self.make: Callable[[int], bytes] | None = None
        self.done: Callable[[memoryview], None] | None = None
        self.sent_at: deque[tuple[float, int]] = deque()
        self.latencies: list[tuple[float, int]] = []  # seconds, how many replies came together
        self.replies = 0
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.outstanding = 0
        self._answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        gone = ConnectionError(f"the broker closed the connection ({error})")
        for waiting in (self.finished if self.make else None, self._answer):
            if waiting is not None and not waiting.done():
                waiting.set_exception(gone)

    def data_received(self, data: bytes) -> None:
        if self.rest:
            data = self.rest + data
        view, position, end, count = memoryview(data), 0, len(data), 0
        while end - position >= 8:
            stop = position + 4 + SIZE_AND_ID.unpack_from(data, position)[0]
            if stop > end:
                break
            if self._answer is not None:
                answer, self._answer = self._answer, None
                answer.set_result(data[position + 8 : stop])
            elif self.done is not None:
                self.done(view[position + 4 : stop])
                count += 1
            position = stop
        self.rest = data[position:]
        if count:
            self._count(count)

    def _count(self, count: int) -> None:
        now = time.perf_counter()
        self.replies += count
        self.outstanding -= count
        left = count
        while left:
            at, n = self.sent_at[0]
            took = min(n, left)
            self.latencies.append((now - at, took))
            left -= took
            if took == n:
                self.sent_at.popleft()
            else:
                self.sent_at[0] = (at, n - took)
        self._send(count)

    def _send(self, count: int) -> None:
        assert self.make is not None
        frames = self.make(count)
        if frames:
            self.outstanding += count
            self.sent_at.append((time.perf_counter(), count))
            self.transport.write(frames)
        elif not self.outstanding and not self.finished.done():
            self.finished.set_result(None)

    async def run(self, inflight: int, make: Callable[[int], bytes], done: Callable[[memoryview], None]) -> None:
        """Drive the loop until `make` has no more."""
        self.make, self.done = make, done
        self.latencies.clear()
        self.replies = 0
        self.finished = asyncio.get_running_loop().create_future()
        self._send(inflight)
        await self.finished
        self.make = self.done = None

    async def ask(self, request: Any, version: int) -> Any:
        """One request and its response."""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(frame(request, version))
        return parse(request.API_KEY, version, await self._answer)


async def connect(address: str) -> Wire:
    """A connection to HOST:PORT."""
    host, _, port = address.rpartition(":")
    _, wire = await asyncio.get_running_loop().create_connection(Wire, host, int(port))
    return wire


def quantile(latencies: list[tuple[float, int]], share: float) -> float:
    """Microseconds below which this share of replies came."""
    ordered = sorted(latencies)
    rank = share * sum(n for _, n in ordered)
    for seconds, n in ordered:
        rank -= n
        if rank <= 0:
            return seconds * 1e6
    return 0.0
