"""Long lists in slices, so that clients are served in between, and the window on them that a page shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

from broker.shell.control.routes import Call, RefusedError

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

T = TypeVar("T")
SLICE: Final = 200
MOST_ROWS: Final = 200
QUERY: Final = {
    "filter": "only names that have this in them, in any case",
    "offset": "leave out so many of the first; 0",
    "limit": f"so many at most; {MOST_ROWS}, the most there can be",
}


async def slices(cluster: ClusterServer, items: Iterable[T], size: int = SLICE) -> AsyncIterator[T]:
    """The items, with a pause after each slice. Errors: RefusedError: the cluster was reset meanwhile."""
    broker = cluster.broker
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)
            if cluster.broker is not broker:
                raise RefusedError(409, "the cluster was reset")


def number(call: Call, name: str, default: int, most: int = 1 << 62, least: int = 0) -> int:
    """A parameter that is a whole number. Errors: RefusedError."""
    text = call.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19 and least <= int(text) <= most):
        raise RefusedError(400, f'"{name}" is a whole number from {least} to {most}, not {text:.40}')
    return int(text)


async def window(cluster: ClusterServer, call: Call, names: Iterable[str]) -> tuple[list[str], int, int]:
    """The names that are shown, in order; the place of the first; how many pass the filter. Errors: RefusedError."""
    offset, limit = number(call, "offset", 0), number(call, "limit", MOST_ROWS, MOST_ROWS, 1)
    wanted = call.query.get("filter", "").casefold()
    found = [name async for name in slices(cluster, names, 1000) if wanted in name.casefold()]
    found.sort()
    offset = min(offset, max(0, len(found) - 1))
    return found[offset : offset + limit], offset, len(found)
