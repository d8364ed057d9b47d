"""A clock that may be moved: what a test does to see sessions, offsets and transactions expire."""

from __future__ import annotations

from storage.env import Clock


class MovableClock:
    """Another clock until somebody moves it: ahead, or to a moment at which it then stands; never back.

    Only the time of day moves: what is measured by `monotonic_ms` goes on as it did.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = 0
        self.stands_at_ms: int | None = None

    def now_ms(self) -> int:
        """Unix milliseconds, as moved."""
        return self._clock.now_ms() + self._ahead_ms if self.stands_at_ms is None else self.stands_at_ms

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; not moved."""
        return self._clock.monotonic_ms()

    def advance(self, ms: int) -> None:
        """Move on; a clock that stands goes on standing."""
        assert ms >= 0, "time does not run backwards"
        if self.stands_at_ms is None:
            self._ahead_ms += ms
        else:
            self.stands_at_ms += ms

    def stand(self, at_ms: int) -> None:
        """Go to a moment that has not passed, and stand there."""
        assert at_ms >= self.now_ms(), "time does not run backwards"
        self.stands_at_ms = at_ms

    def resume(self) -> None:
        """Run on from here."""
        if self.stands_at_ms is not None:
            self._ahead_ms = self.stands_at_ms - self._clock.now_ms()
            self.stands_at_ms = None
