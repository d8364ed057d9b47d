"""Runs `momus serve` and writes down the longest steps of its loop: `python -m benchmarks.stepped FILE serve ...`.

A step is one call that the event loop makes: bytes of a client, the end of a turn, a timer, a slice of upkeep. Counted
is the processor time of the thread, because another process must not make a step long. Each step above SHORTEST_MS is a
line of FILE: milliseconds, and which call it was; "gc 2: 60.1" after it says that so many of these were a collection
of garbage, of which age.
"""

from __future__ import annotations

import functools
import gc
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


class Collections:
    """The longest collection of garbage since it was asked last."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._longest = (0.0, 0)
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began_s = time.thread_time()
        else:
            self._longest = max(self._longest, ((time.thread_time() - self._began_s) * 1000, info["generation"]))

    def take(self) -> str:
        """What it was, if it took a millisecond."""
        (ms, generation), self._longest = self._longest, (0.0, 0)
        return f" gc {generation}: {ms:.1f}" if ms >= 1 else ""


def timed(call: Callable[..., Any], out: TextIO, collections: Collections) -> Callable[..., Any]:
    """The same call, which writes a line when it was long."""

    @functools.wraps(call, assigned=("__name__", "__qualname__"), updated=())
    def measured(*args: Any) -> Any:
        begin_s = time.thread_time()
        collections.take()
        try:
            return call(*args)
        finally:
            took_ms = (time.thread_time() - begin_s) * 1000
            if took_ms >= SHORTEST_MS:
                out.write(f"{took_ms:.1f} {_name(call, args)}{collections.take()}\n")
                out.flush()

    return measured


def main() -> None:
    """Replace the loop, and run the command line."""
    out = open(sys.argv[1], "a", encoding="utf-8")  # noqa: SIM115  # until the process ends
    sys.argv[:2] = ["momus"]
    collections = Collections()
    import uvloop

    from momus.launch import use_packages

    use_packages()
    from broker.turn.jobs import Jobs
    from broker.wire.connection import Connection
    from momus.cli import main as cli

    class Stepped(uvloop.Loop):  # type: ignore[misc]  # it has no types
        """A loop that times what it calls."""

        def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
            return super().call_soon(timed(callback, out, collections), *args, context=context)

        def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
            return super().call_later(delay, timed(callback, out, collections), *args, context=context)

        def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
            return super().call_at(when, timed(callback, out, collections), *args, context=context)

    uvloop.run = functools.partial(uvloop.run, loop_factory=Stepped)
    step = Jobs.step
    Jobs.step = lambda jobs: timed(lambda *_: step(jobs), out, collections)(*jobs.waiting[:1])  # type: ignore[method-assign]  # named
    for name in ("data_received", "connection_made", "connection_lost", "resume_writing"):
        setattr(Connection, name, timed(getattr(Connection, name), out, collections))
    cli.main()


if __name__ == "__main__":
    main()
