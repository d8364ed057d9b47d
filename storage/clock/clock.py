"""The machine's clock, in the units that the core counts in."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Unix milliseconds by the wall clock, which may step: for times that are stored or sent."""

    def steady_ms(self) -> int:
        """Unix milliseconds when the process began, and what has passed since: for waits. It never steps."""

    def wait_ms(self) -> int:
        """As steady_ms, but it may go on while a clock stands that can be moved: for the waits of a Fetch."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; never goes back."""

    def monotonic_us(self) -> int:
        """The same in microseconds, to measure with."""


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        self._start_ms = self.now_ms() - self.monotonic_ms()

    def steady_ms(self) -> int:
        """Unix milliseconds when this object was made, and what has passed since."""
        return self._start_ms + time.monotonic_ns() // 1_000_000

    def wait_ms(self) -> int:
        """As steady_ms. Not `wait_ms = steady_ms`: mypyc makes a class that raises KeyError of it."""
        return self._start_ms + time.monotonic_ns() // 1_000_000

    def now_ms(self) -> int:
        """Unix milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; never goes back."""
        return time.monotonic_ns() // 1_000_000

    def monotonic_us(self) -> int:
        """The same in microseconds."""
        return time.monotonic_ns() // 1000
