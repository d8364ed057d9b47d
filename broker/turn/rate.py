"""Rates as Kafka measures them: over the last windows of a second, and credits that come back with time.

Source: Kafka's Rate, SampledStat, QuotaUtils.throttleTime and TokenBucket.
"""

from __future__ import annotations

from collections import deque
from typing import Final

LONGEST_MS: Final = (1 << 31) - 1  # that an answer can tell


class Rate:
    """How much a second, over the last `samples` windows.

    Units: times are milliseconds of a steady clock.
    """

    def __init__(self, samples: int, window_ms: int) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._sums: deque[list[float]] = deque()  # [beginning of the window, sum]

    def record(self, value: float, now_ms: int) -> None:
        """Something has happened."""
        if not self._sums or now_ms - self._sums[-1][0] >= self._window_ms:
            self._sums.append([now_ms, 0.0])
        self._sums[-1][1] += value
        self._drop(now_ms)

    def _drop(self, now_ms: int) -> None:
        while self._sums and now_ms - self._sums[0][0] >= self._samples * self._window_ms:
            self._sums.popleft()

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """How long to wait until the rate is within the bound, LONGEST_MS at most; 0: it is."""
        self._drop(now_ms)
        if not self._sums:
            return 0
        elapsed_ms = now_ms - self._sums[0][0]
        missing = self._samples - 1 - elapsed_ms // self._window_ms
        size_ms = elapsed_ms + max(0, missing) * self._window_ms  # a young rate counts as over all windows but one
        value = sum(part for _, part in self._sums) * 1000 / max(size_ms, 1)
        return round(min((value - bound) / bound * size_ms, LONGEST_MS)) if value > bound else 0


class Credits:
    """Credits that come back at a rate, up to those of all windows; they may be overdrawn once."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._span_s = samples * window_ms / 1000
        self._credits = -1.0
        self._at_ms = -1
        self._rate = 0.0

    def refill(self, rate: float, now_ms: int) -> None:
        """Bring the credits up to now. `rate`: credits a second."""
        most = rate * self._span_s
        earned = rate * (now_ms - self._at_ms) / 1000
        self._credits = most if self._at_ms < 0 else min(most, self._credits + earned)
        self._at_ms, self._rate = now_ms, rate

    @property
    def is_overdrawn(self) -> bool:
        """Whether more credits were used than there were."""
        return self._credits < 0

    def take(self, n: float) -> None:
        """Use credits."""
        self._credits -= n

    def throttle_ms(self) -> int:
        """How long until they are no longer overdrawn."""
        return round(-self._credits / self._rate * 1000) if self._credits < 0 else 0
