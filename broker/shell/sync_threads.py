"""Threads that sync logs, and one that looks at passwords, shared by all clusters of the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.log.log import Log

SYNC_THREADS = 4


class SyncThreads:
    """A pool that is made with its first work."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool: ThreadPoolExecutor | None = None
        self._lone: ThreadPoolExecutor | None = None

    def beside(self, work: Callable[[], object], done: Callable[[], None]) -> None:
        """Do something in a thread, after what was given before; then call `done` in the loop."""
        if self._lone is None:
            self._lone = ThreadPoolExecutor(1, "beside")

        def do() -> None:
            try:
                work()
            finally:
                self._loop.call_soon_threadsafe(done)

        self._lone.submit(do)

    def run(self, work: Callable[[], None]) -> None:
        """Do something in a thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(SYNC_THREADS, "sync")
        self._pool.submit(work)

    def sync(self, logs: list[Log], done: Callable[[dict[Log, Exception]], None]) -> None:
        """Sync logs; then call `done`, in the loop, with those whose sync failed."""
        if not logs:
            self._loop.call_soon(done, {})
            return
        pending = len(logs)
        failed: dict[Log, Exception] = {}

        def ended(log: Log, error: Exception | None) -> None:
            nonlocal pending
            pending -= 1
            if error is not None:
                failed[log] = error
            if not pending:
                done(failed)

        def sync_one(log: Log) -> None:
            error: Exception | None = None
            try:
                log.sync()
            except Exception as caught:  # any error: the replies that wait must be answered
                error = caught
            self._loop.call_soon_threadsafe(ended, log, error)

        for log in logs:
            self.run(lambda log=log: sync_one(log))  # type: ignore[misc]  # mypy cannot infer a lambda with a default

    def close(self) -> None:
        """Wait for what has begun."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        if self._lone is not None:
            self._lone.shutdown(wait=True, cancel_futures=True)
