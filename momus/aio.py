"""Twins to await: every call of an object, run in a thread, so that the event loop of the test goes on."""

from __future__ import annotations

import asyncio
from typing import Any

from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it

PLAIN = (str, bytes, int, float, bool, list, dict, tuple, type(None))


class Twin:
    """`await Twin(broker).clock.advance(days=8)` is `broker.clock.advance(days=8)` in a thread.

    What a call answers is as it is; `Twin(answer)` makes a twin of it.
    """

    def __init__(self, target: object) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if callable(found):

            async def call(*arguments: Any, **words: Any) -> Any:
                return await asyncio.to_thread(found, *arguments, **words)

            return call
        return found if isinstance(found, PLAIN) else Twin(found)

    def __repr__(self) -> str:
        return f"<awaitable twin of {self._target!r}>"
