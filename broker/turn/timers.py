"""Calls that are due at a time, on one heap."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from typing import Final

from protocol.errors import KafkaError
from storage.files.errors import StorageError

logger: Final = logging.getLogger("momus.timers")
MOST_A_RUN: Final = 100  # a session that ends costs 0.1 ms: so clients are served between thousands that end at once
CANCELLED_KEPT: Final = 256  # entries of cancelled calls that may stay on the heap beside as many as there are calls


class Timers:
    """A heap of calls. Times are those of Clock.steady_ms, so that a wall clock that steps moves none of them.

    `moved` is set when the earliest time has changed; the server clears it when it sets its alarm.
    """

    __slots__ = ("_calls", "_deadlines", "_heap", "_number", "moved")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []  # time, number of the call
        self._calls: dict[int, Callable[[int, int], None]] = {}  # those that are neither made nor cancelled
        self._deadlines: list[tuple[int, int]] = []  # a heap of those entries that are deadlines
        self._number = 0
        self.moved = False

    def __len__(self) -> int:
        return len(self._calls)

    def at(self, due_ms: int, call: Callable[[int, int], None], *, is_deadline: bool = False) -> int:
        """Call `call(due_ms, now_ms)` at that time or soon after. Returns the number that cancels it.

        is_deadline   a session, a rebalance, a transaction or a lock ends: a clock that is moved stops there.
        """
        self._number += 1
        if is_deadline:
            heapq.heappush(self._deadlines, (due_ms, self._number))
        self._calls[self._number] = call
        heapq.heappush(self._heap, (due_ms, self._number))
        self.moved = self._heap[0][0] == due_ms or self.moved
        return self._number

    def cancel(self, number: int) -> None:
        """Drop a call and what it refers to. Nothing happens if it has been made."""
        self._calls.pop(number, None)
        if len(self._heap) > 2 * len(self._calls) + CANCELLED_KEPT:
            self._heap = [entry for entry in self._heap if entry[1] in self._calls]
            heapq.heapify(self._heap)
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._calls]
            heapq.heapify(self._deadlines)

    @property
    def next_ms(self) -> int | None:
        """The earliest time on the heap, that of a cancelled call perhaps; None: there is none."""
        return self._heap[0][0] if self._heap else None

    @property
    def next_deadline_ms(self) -> int | None:
        """The earliest deadline; None: there is none."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._calls:
            heapq.heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def run_due(self, now_ms: int) -> None:
        """Make the calls that are due, MOST_A_RUN at most: the rest stays due, and the caller runs them soon.

        Calls that these add wait for the next run, so that this one ends.
        """
        newest, left = self._number, MOST_A_RUN
        while left and self._heap and self._heap[0][0] <= now_ms and self._heap[0][1] <= newest:
            due_ms, number = heapq.heappop(self._heap)
            call = self._calls.pop(number, None)
            if call is None:
                continue
            left -= 1
            try:
                call(due_ms, now_ms)
            except (KafkaError, OSError, StorageError) as error:  # the other calls are still made
                logger.error("timer due at %d failed: %s", due_ms, error)
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._calls:
            heapq.heappop(deadlines)
