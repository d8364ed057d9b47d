"""Turns SIGTERM and SIGINT into a flag that a running job checks between two steps."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class StopSignal:
    """Whether the job was asked to stop."""

    def __init__(self) -> None:
        self.is_set = False
        # Not a threading.Event: a signal handler that runs inside `Event.wait` would deadlock on the event's lock.
        self._wake: SimpleQueue[None] = SimpleQueue()

    def set(self, *_: Any) -> None:
        """Ask the job to stop. Takes and ignores the arguments of a signal handler."""
        self.is_set = True
        self._wake.put(None)

    def wait(self, seconds: float) -> bool:
        """Sleep until the time is over or the signal comes; returns whether it came."""
        if not self.is_set:
            with suppress(Empty):
                self._wake.get(timeout=seconds)
        return self.is_set


@contextmanager
def stop_on_signals() -> Iterator[StopSignal]:
    """Within the block, SIGTERM and SIGINT set the StopSignal instead of ending the process."""
    stop = StopSignal()
    before = {number: signal.signal(number, stop.set) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
