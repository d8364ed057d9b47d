"""The broker's counters: plain numbers that the serving path adds to and a sink reads.

Counting only adds to list elements and attributes. The reader does the work: differences, names, sizes of logs and
groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

# One slot per API key; Kafka is at 92. Only keys of known APIs are counted, so a hostile key reaches no slot.
API_KEYS: Final = 128
STRIDE: Final = 16


class Metrics:
    """Running totals since start.

    A latency runs from the turn that read a request to the turn that sent its reply, summed per API:
    `seconds[api_key]` over `timed[api_key]` replies is the mean.
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections_accepted",
        "connections_refused",
        "counts",
        "errors",
        "seconds",
        "timed",
        "timer",
    )

    def __init__(self) -> None:
        self.counts = [0] * API_KEYS  # requests
        self.timed = [0] * API_KEYS
        self.seconds = [0.0] * API_KEYS
        self.errors: Counter[tuple[int, int]] = Counter()  # (api_key, error code) -> how often it was answered
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections_accepted = 0
        self.connections_refused = 0
        self.timer: TurnTimer | None = None  # set by a sink that wants latencies

    def request(self, api_key: int, n: int, seconds_total: float) -> None:
        """Count the latency of `n` replies of one API, summed: one call per API and turn is enough."""
        self.timed[api_key] += n
        self.seconds[api_key] += seconds_total

    def error(self, api_key: int, error_code: int) -> None:
        """Count one error that is answered: of a request, or of a partition, topic, group or member in it."""
        self.errors[api_key, error_code] += 1

    def snapshot(self) -> Metrics:
        """A copy, to take differences from."""
        copy = Metrics()
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(copy, name, value.copy() if isinstance(value, list | Counter) else value)
        return copy


class TurnTimer:
    """Times requests by the turn that serves them; called only while a sink wants latencies.

    A request's latency is the length of its turn: from the first byte read to the last log written and reply handed
    over. The waiting time of a parked request and a sync in a thread are not included.
    """

    __slots__ = ("_before", "_began_s", "_clock_s", "_metrics")

    def __init__(self, metrics: Metrics, clock_s: Callable[[], float]) -> None:
        self._metrics = metrics
        self._clock_s = clock_s
        self._before = metrics.counts.copy()
        self._began_s = clock_s()

    def begin(self) -> None:
        """A turn begins."""
        self._before = self._metrics.counts.copy()
        self._began_s = self._clock_s()

    def end(self) -> None:
        """The turn has ended: everything counted since it began took this long."""
        counts = self._metrics.counts
        if counts == self._before:
            return
        seconds = self._clock_s() - self._began_s
        before = self._before
        for start in range(0, API_KEYS, STRIDE):  # most turns hold one API: 4x faster than key by key
            stop = start + STRIDE
            if counts[start:stop] != before[start:stop]:
                for api_key in range(start, stop):
                    n = counts[api_key] - before[api_key]
                    if n:
                        self._metrics.request(api_key, n, n * seconds)
