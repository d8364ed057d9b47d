"""Turns SIGTERM and SIGINT into a flag that a running job checks between two steps."""

from __future__ import annotations

import os
import select
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class StopSignal:
    """Whether the job was asked to stop.

    A signal's handler may run between any two steps of the main thread, so it takes no lock: it sets a flag and writes
    a byte into a pipe, which a waiting job sleeps on.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)

    def set(self, *_: Any) -> None:
        """Ask the job to stop. Takes and ignores the arguments of a signal handler."""
        self.is_set = True
        with suppress(BlockingIOError):  # the pipe is full of such bytes
            os.write(self._woken, b"\0")

    def wait(self, seconds: float) -> bool:
        """Sleep until the time is over or the signal comes; returns whether it came."""
        if not self.is_set:
            select.select([self._wake], [], [], seconds)
        return self.is_set

    def close(self) -> None:
        """Close the pipe: no handler may call `set` any more."""
        os.close(self._wake)
        os.close(self._woken)


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
        stop.close()
