"""Server-sent events: what a GET answers, sent again whenever it has changed. Source: the HTML standard's event stream.

    event: answer    data: the answer as JSON, first of all and after each change
    event: refused   data: {"error": ..., "status": ...} in place of an answer
    event: behind    data: {"missed": n}: the client read too slowly, and n looks were left out
    a comment        every QUIET_S where nothing has changed

A look is made only once the client has taken the event before: nothing is collected for one that does not read. An
answer with the field `next`, as a tail has, names the path of the next look.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final

from broker.shell.control.routes import RefusedError, Stream, Text
from protocol.errors import KafkaError
from storage.files.errors import StorageError

LEAST_MS: Final = 200
MOST_MS: Final = 60_000
QUIET_S: Final = 15.0


def check_every(text: str) -> int:
    """Milliseconds between two looks. Errors: RefusedError."""
    if not (text.isascii() and text.isdigit() and LEAST_MS <= int(text[:9]) <= MOST_MS):
        raise RefusedError(400, f'"every_ms" is {LEAST_MS} to {MOST_MS}, not {text:.20}')
    return int(text)


async def watch(ask: Callable[[str], Awaitable[Any]], path: str, every_ms: int) -> AsyncGenerator[bytes, None]:
    """The events of a path. `ask` raises RefusedError, or answers."""
    loop, last, every_s = asyncio.get_running_loop(), b"", every_ms / 1000
    due_s = said_s = loop.time()
    while True:
        event, path = await _look(ask, path)
        if event != last:
            last, said_s = event, loop.time()
            yield event
        elif loop.time() - said_s > QUIET_S:
            said_s = loop.time()
            yield b":\n\n"
        due_s += every_s
        missed = int((loop.time() - due_s) / every_s)
        if missed > 0:
            due_s += missed * every_s
            yield _event("behind", {"missed": missed})
        await asyncio.sleep(max(0.0, due_s - loop.time()))


async def _look(ask: Callable[[str], Awaitable[Any]], path: str) -> tuple[bytes, str]:
    """One event, and where to look next."""
    try:
        answer = await ask(path)
        if isinstance(answer, (Text, Stream)):
            raise RefusedError(400, f"{path:.100} does not answer JSON")
    except RefusedError as refusal:
        return _event("refused", {"error": str(refusal), "status": refusal.status}), path
    except (KafkaError, OSError, StorageError) as error:
        return _event("refused", {"error": str(error) or type(error).__name__, "status": 500}), path
    if isinstance(answer, dict) and "next" in answer:
        path = answer["next"]
    return _event("answer", answer), path


def _event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()  # in JSON a line break is written as \n
