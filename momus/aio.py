"""Twins to await: every call of a handle, run in a thread, so that the event loop of the test goes on.

    fault = await broker.aio.faults.hold("OffsetCommit", group="billing")
    await fault.wait_until_held()
    assert await fault.hits == 1
    async with await broker.aio.fork() as other: ...

A call that returns a handle (a fault, a cluster, a snapshot) returns the handle's twin. What is asked of the broker is
awaited, calls and properties alike; what is known here (`name`, `bootstrap_servers`) is there at once. The types stand
in aio.pyi, which tools/aio_stub.py makes from the handles themselves.
"""

from __future__ import annotations

import asyncio
from typing import Any

from momus.kit.asks import Returned
from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it

PLAIN = (str, bytes, int, float, bool, list, dict, tuple, type(None))
ASKS = frozenset(["calls", "hits", "held", "registry_url"])  # properties that ask the broker


class Twin:
    """`await Twin(broker).clock.advance(days=8)` is `broker.clock.advance(days=8)` in a thread.

    target   the handle itself, for what takes no twin.
    """

    def __init__(self, target: Any) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        target = self.target
        if name in ASKS and isinstance(getattr(type(target), name, None), property):
            return asyncio.to_thread(getattr, target, name)
        found = getattr(target, name)
        if isinstance(found, str):  # the name of a cluster can be called too, and asks nothing
            return found
        if callable(found):

            async def call(*arguments: Any, **words: Any) -> Any:
                given = [_target(each) for each in arguments], {key: _target(each) for key, each in words.items()}
                return _twin(await asyncio.to_thread(found, *given[0], **given[1]))

            return call
        if isinstance(found, Returned) or not isinstance(found, PLAIN):
            return Twin(found)
        return found

    async def __aenter__(self) -> Twin:
        await asyncio.to_thread(self.target.__enter__)
        return self

    async def __aexit__(self, *error: Any) -> None:
        await asyncio.to_thread(self.target.__exit__, *error)

    def __str__(self) -> str:
        return str(self.target)

    def __repr__(self) -> str:
        return f"<awaitable twin of {self.target!r}>"


def _target(value: Any) -> Any:
    return value.target if isinstance(value, Twin) else value


def _twin(value: Any) -> Any:
    if isinstance(value, list):
        return [_twin(each) for each in value]
    return Twin(value) if isinstance(value, Returned) else value


# The names of aio.pyi, for annotations that are evaluated.
AsyncHandle = AsyncBroker = AsyncCluster = AsyncFault = AsyncFaults = AsyncJournal = AsyncClock = AsyncSnapshot = Twin
AsyncUsers = AsyncAcls = AsyncCertificates = Twin
