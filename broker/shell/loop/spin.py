"""Busy-polls for the next request: waking a sleeping process takes longer than most requests."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

LOOK_US: Final = 100  # the loop stays awake for so long after a turn
LONGEST_US: Final = 1000  # if that takes longer, other processes need the processor
MOST_TRUST: Final = 8
TURNS_A_TRIAL: Final = 16


def usable_processors() -> int:
    """How many processors this process may use, as far as the system says."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Spin:
    """Keeps the loop awake for 100 µs after a turn, while the next request mostly comes within that time.

    For clients that send a request when they have the reply to the one before. Where requests do not come in time,
    because clients take longer or need the processor, it polls after one turn of sixteen only. With one processor it
    never does: the client could not run meanwhile.
    """

    __slots__ = ("_began_us", "_call_soon", "_looking", "_monotonic_us", "_processors", "_trust", "_turns")

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], object], monotonic_us: Callable[[], int], processors: int
    ) -> None:
        self._processors = processors  # that this process may use
        self._call_soon = call_soon  # in the next iteration of the loop
        self._monotonic_us = monotonic_us
        self._began_us = 0
        self._looking = False
        self._trust = 0
        self._turns = 0

    def turn_ended(self) -> None:
        """Begin to poll, or continue."""
        if self._processors < 2:
            return
        self._turns += 1
        if self._looking:
            self._judge(came=True)
        elif self._trust or self._turns % TURNS_A_TRIAL == 0:
            self._looking = True
            self._call_soon(self._look)
        else:
            return
        self._began_us = self._monotonic_us()

    def _look(self) -> None:
        if self._monotonic_us() - self._began_us < LOOK_US:
            self._call_soon(self._look)
            return
        self._looking = False
        self._judge(came=False)

    def _judge(self, *, came: bool) -> None:
        if self._monotonic_us() - self._began_us > LONGEST_US:
            self._trust = 0
        elif came:
            self._trust = min(self._trust + 1, MOST_TRUST)
        else:
            self._trust = max(self._trust - 1, 0)
