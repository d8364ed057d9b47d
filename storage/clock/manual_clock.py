"""A clock that a test moves by hand."""

from __future__ import annotations


class ManualClock:
    """Time moves only when told."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = self._start_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        """Unix milliseconds."""
        return self._now_ms

    def monotonic_ms(self) -> int:
        """Milliseconds since the clock was made."""
        return self._monotonic_ms

    def monotonic_us(self) -> int:
        """The same in microseconds."""
        return self._monotonic_ms * 1000

    def steady_ms(self) -> int:
        """As now_ms, without the steps."""
        return self._start_ms + self._monotonic_ms

    wait_ms = steady_ms

    def advance(self, ms: int) -> None:
        """Let time pass."""
        self._now_ms += ms
        self._monotonic_ms += ms

    def step(self, ms: int) -> None:
        """Set the wall clock forward, or back; no time passes."""
        self._now_ms += ms
