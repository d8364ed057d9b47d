"""A clock that may be moved: what a test does to see sessions, offsets and transactions expire."""

from __future__ import annotations

from storage.clock.clock import Clock


class MovableClock:
    """Follows another clock until it is moved: ahead, or to a moment at which it then stands; never back.

    The wall clock and the steady clock move together. What is measured by `monotonic_ms` goes on as it did.

    waits_pass   whether `wait_ms` goes on while the clock stands.
    """

    def __init__(self, clock: Clock, at_ms: int | None = None, ahead_ms: int = 0, *, waits_pass: bool = True) -> None:
        self._clock = clock
        self._ahead_ms = ahead_ms
        self._steady_ahead_ms = ahead_ms
        self.stands_at_ms = at_ms  # None: it runs
        self._steady_stands_at_ms = at_ms or 0
        self._waits_pass = waits_pass
        self._waited_ms = 0  # what wait_ms is ahead of steady_ms, without the present stand
        self._stands_since_ms = 0 if at_ms is None else clock.steady_ms()

    @property
    def ahead_ms(self) -> int:
        """How far a clock that runs is ahead of the other one."""
        return self._ahead_ms

    def now_ms(self) -> int:
        """Unix milliseconds, as moved."""
        return self._clock.now_ms() + self._ahead_ms if self.stands_at_ms is None else self.stands_at_ms

    def steady_ms(self) -> int:
        """Milliseconds for waits, as moved."""
        if self.stands_at_ms is None:
            return self._clock.steady_ms() + self._steady_ahead_ms
        return self._steady_stands_at_ms

    def wait_ms(self) -> int:
        """Milliseconds for the waits of a Fetch: as moved, and on while the clock stands, if waits pass then."""
        waited_ms = self._waited_ms
        if self.stands_at_ms is not None and self._waits_pass:
            waited_ms += self._clock.steady_ms() - self._stands_since_ms
        return self.steady_ms() + waited_ms

    def pass_waits(self, ms: int) -> None:
        """Move wait_ms alone on: a replay does so where the waits have passed in real time."""
        assert ms >= 0, "time does not run backwards"
        self._waited_ms += ms

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; not moved."""
        return self._clock.monotonic_ms()

    def monotonic_us(self) -> int:
        """The same in microseconds."""
        return self._clock.monotonic_us()

    def advance(self, ms: int) -> None:
        """Move on; a clock that stands goes on standing."""
        assert ms >= 0, "time does not run backwards"
        if self.stands_at_ms is None:
            self._ahead_ms += ms
            self._steady_ahead_ms += ms
        else:
            self.stands_at_ms += ms
            self._steady_stands_at_ms += ms

    def stand(self, at_ms: int = 0) -> None:
        """Go to a moment, or stay where it has passed, and stand there. A running clock is read once."""
        now_ms = self.now_ms()
        moved_ms = max(0, at_ms - now_ms)
        if self.stands_at_ms is None:
            self._stands_since_ms = self._clock.steady_ms()
            self._steady_stands_at_ms = self._stands_since_ms + self._steady_ahead_ms
        self._steady_stands_at_ms += moved_ms
        self.stands_at_ms = now_ms + moved_ms

    def resume(self) -> None:
        """Run on from here."""
        if self.stands_at_ms is not None:
            if self._waits_pass:
                self._waited_ms += self._clock.steady_ms() - self._stands_since_ms
            self._ahead_ms = self.stands_at_ms - self._clock.now_ms()
            self._steady_ahead_ms = self._steady_stands_at_ms - self._clock.steady_ms()
            self.stands_at_ms = None
