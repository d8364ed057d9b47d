"""Runs disk work on one background thread, so that callers wait neither for the disk nor for the start of a thread.

One thread for all work. With a thread for each piece of it the loop waited until that thread ran: `Thread.start` does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Final, TypeAlias

Work: TypeAlias = "Callable[[], object]"

MOST_WAITING: Final = 64  # descriptors that are to be closed, and pieces of work


class DiskThread:
    """Does pieces of work in the order in which they were given. The thread begins with the first of them."""

    __slots__ = ("_queue", "_thread")

    def __init__(self) -> None:
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread now, so that later calls need not wait for it."""
        if self._thread is None:
            self._thread = threading.Thread(target=_run, args=(self._queue,), name="momus-disk", daemon=True)
            self._thread.start()

    def start(self, work: Work) -> Callable[[], bool]:
        """Queue a piece of work. The function returned says whether it is done, and raises what that raised."""
        outcome: list[Exception | None] = []

        def run() -> None:
            try:
                work()
            except Exception as error:  # any error: who asks must learn of it, and the thread must go on
                outcome.append(error)
            else:
                outcome.append(None)

        def is_done() -> bool:
            if outcome and outcome[0] is not None:
                raise outcome[0]
            return bool(outcome)

        self.begin()
        self._queue.put(run)
        return is_done

    def close(self, fd: int) -> None:
        """Close a descriptor. The last one of a removed file frees its bytes, 60 ms a GB. `begin` comes first.

        May be called by a finalizer, at any moment: it takes no lock. Where many wait already, as when topics are
        deleted faster than the disk frees them, it is closed at once: others need descriptors.
        """
        if self._queue.qsize() < MOST_WAITING:
            self._queue.put(partial(_close, fd))
        else:
            _close(fd)

    def __del__(self) -> None:
        self._queue.put(None)


def _run(queue: SimpleQueue[Work | None]) -> None:
    while (work := queue.get()) is not None:
        work()


def _close(fd: int) -> None:
    with suppress(OSError):  # of what was written long ago; `sync` would have told
        os.close(fd)
