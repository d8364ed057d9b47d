"""Runs `momus serve` and writes down the longest steps of its loop: `python -m benchmarks.stepped FILE serve ...`.

A step is one call that the event loop makes: bytes of a client, the end of a turn, a timer, a slice of upkeep. Counted
is the processor time of the thread, because another process must not make a step long. Each step above SHORTEST_MS is a
line of FILE: milliseconds, and which call it was.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Generator
from typing import Any, TextIO

SHORTEST_MS = 4.0


def _name(call: Any, args: tuple[Any, ...]) -> str:
    """What a call is, and what it is given to call."""
    names = []
    for each in (call, *args):
        each = each.func if isinstance(each, functools.partial) else each
        if callable(each) or isinstance(each, Generator):
            names.append(getattr(each, "__qualname__", type(each).__name__))
    return " ".join(names)


def timed(call: Callable[..., Any], out: TextIO) -> Callable[..., Any]:
    """The same call, which writes a line when it was long."""

    @functools.wraps(call, assigned=("__name__", "__qualname__"), updated=())
    def measured(*args: Any) -> Any:
        begin_s = time.thread_time()
        try:
            return call(*args)
        finally:
            took_ms = (time.thread_time() - begin_s) * 1000
            if took_ms >= SHORTEST_MS:
                out.write(f"{took_ms:.1f} {_name(call, args)}\n")
                out.flush()

    return measured


def main() -> None:
    """Replace the loop, and run the command line."""
    out = open(sys.argv[1], "a", encoding="utf-8")  # noqa: SIM115  # until the process ends
    sys.argv[:2] = ["momus"]
    import uvloop

    from momus.launch import use_packages

    use_packages()
    from broker.turn.jobs import Jobs
    from broker.wire.connection import Connection
    from momus import cli

    class Stepped(uvloop.Loop):  # type: ignore[misc]  # it has no types
        """A loop that times what it calls."""

        def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
            return super().call_soon(timed(callback, out), *args, context=context)

        def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
            return super().call_later(delay, timed(callback, out), *args, context=context)

        def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
            return super().call_at(when, timed(callback, out), *args, context=context)

    uvloop.run = functools.partial(uvloop.run, loop_factory=Stepped)
    step = Jobs.step
    Jobs.step = lambda jobs: timed(lambda *_: step(jobs), out)(*jobs.waiting[:1])  # type: ignore[method-assign]  # named
    for name in ("data_received", "connection_made", "connection_lost", "resume_writing"):
        setattr(Connection, name, timed(getattr(Connection, name), out))
    cli.main()


if __name__ == "__main__":
    main()
