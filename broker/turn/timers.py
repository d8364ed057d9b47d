"""Calls that are due at a time, on one heap."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable

from protocol.errors import KafkaError
from storage.errors import StorageError

logger = logging.getLogger("momus.timers")


class Timers:
    """A heap of calls. Times are Unix milliseconds of the broker's clock.

    `moved` is set when the earliest time has changed; the server clears it when it sets its alarm.
    """

    __slots__ = ("_heap", "_number", "moved")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Callable[[int, int], None]]] = []
        self._number = 0
        self.moved = False

    def at(self, due_ms: int, call: Callable[[int, int], None]) -> None:
        """Call `call(due_ms, now_ms)` at that time or soon after."""
        self._number += 1
        heapq.heappush(self._heap, (due_ms, self._number, call))
        self.moved = self._heap[0][0] == due_ms or self.moved

    @property
    def next_ms(self) -> int | None:
        """The earliest time on the heap; None: there is none."""
        return self._heap[0][0] if self._heap else None

    def run_due(self, now_ms: int) -> None:
        """Make the calls that are due. Calls that these add wait for the next run, so that this one ends."""
        newest = self._number
        while self._heap and self._heap[0][0] <= now_ms and self._heap[0][1] <= newest:
            due_ms, _, call = heapq.heappop(self._heap)
            try:
                call(due_ms, now_ms)
            except (KafkaError, OSError, StorageError) as error:  # the other calls are still made
                logger.error("timer due at %d failed: %s", due_ms, error)
