"""The control endpoint of a process: its routes and its HTTP server.

Beyond Kafka: a control endpoint (`--control HOST:PORT`, HTTP and JSON on loopback) moves the clock and stops and starts
              virtual brokers. A partition whose only replica is stopped goes to another node and comes back; Kafka
              would leave it without a leader.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import AsyncGenerator, Iterator
from types import ModuleType
from typing import Any, Final

from broker.shell.control import of_cluster, of_process
from broker.shell.control.http import HttpServer
from broker.shell.control.openapi import describe
from broker.shell.control.routes import Call, Process, RefusedError, Route, Routes, Stream
from broker.shell.page import PAGE

LOAD_BYTES: Final = 32 << 20  # of files that fill a cluster, in one body
MOST_STREAMS: Final = 16  # of events: other requests must find room


class Control:
    """The endpoint of one process."""

    def __init__(self, process: Process, token: str | None = None) -> None:
        self._process = process
        self.routes = Routes()
        own = (
            Route("GET", "/", self._index, "This list."),
            Route("GET", "/openapi.json", self._openapi, "The OpenAPI description."),
            Route(
                "GET",
                "/events",
                self._watch,
                "What a GET answers, as server-sent events: now, and again whenever it has changed.",
                query={"path": "the path of the GET, with its parameters", "every_ms": "how often to look; 1000"},
                media="text/event-stream",
                name="events",
            ),
        )
        for route in own:
            route.tag = "page" if route.path == "/events" else "description"
        self.routes.add_of_process(own)
        self.routes.add_of_process(_routes_in(of_process))
        self.routes.add_of_cluster(_routes_in(of_cluster))
        self._http = HttpServer(self._respond, token, lambda target: f"{target}/".startswith(f"{PAGE}/"))
        self._http.body_bytes = LOAD_BYTES
        self._streams = 0

    async def open(self, host: str, port: int) -> str:
        """Listen. Returns HOST:PORT."""
        return await self._http.open(host, port)

    async def close(self) -> None:
        """Stop listening and cancel open requests."""
        await self._http.close()

    async def _respond(self, method: str, target: str, body: dict[str, Any]) -> Any:
        return await self.routes.serve(self._process, method, target, body)

    async def _index(self, process: Process, call: Call) -> dict[str, dict[str, str]]:
        return {
            path: {method: route.about for method, route in place.methods.items()}
            for path, place in self.routes.places.items()
        }

    async def _openapi(self, process: Process, call: Call) -> dict[str, object]:
        return describe(self.routes)

    async def _watch(self, process: Process, call: Call) -> Stream:
        from broker.shell.control.watching import check_every, watch  # 1 ms: most endpoints have no page open

        path, every_ms = call.query.get("path", "/healthz"), check_every(call.query.get("every_ms", "1000"))
        if path.startswith("/events"):
            raise RefusedError(400, "events cannot be watched themselves")
        if self._streams >= MOST_STREAMS:
            raise RefusedError(503, f"there are {MOST_STREAMS} streams of events already")

        async def pieces() -> AsyncGenerator[bytes, None]:
            self._streams += 1
            try:
                async for piece in watch(lambda at: self.routes.serve(process, "GET", at, {}), path, every_ms):
                    yield piece
            finally:
                self._streams -= 1

        return Stream("text/event-stream", pieces())


def _routes_in(folder: ModuleType) -> Iterator[Route]:
    """What the files of a folder list as ROUTES, each tagged by its file: those of page_*.py with "page"."""
    for module in pkgutil.iter_modules(folder.__path__):
        for route in importlib.import_module(f"{folder.__name__}.{module.name}").ROUTES:
            route.tag = module.name.partition("_")[0]
            yield route
