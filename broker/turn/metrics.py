"""The broker's counters: plain numbers that the serving path adds to and a sink reads.

Counting only adds to list elements and attributes. The reader does the work: differences, names, sizes of logs and
groups.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Final, Self

# One slot per API key; Kafka is at 92. Only keys of known APIs are counted, so a hostile key reaches no slot.
API_KEYS: Final = 128


PARTS: Final = ("queue", "work", "durability", "parked", "total")
QUEUE, WORK, DURABILITY, PARKED, TOTAL = range(len(PARTS))
# Upper bounds in seconds, as the histograms of most exporters have them, with finer steps below a millisecond.
_TEN_THOUSANDTHS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500)
BOUNDS_S: Final = (*(n / 10_000 for n in _TEN_THOUSANDTHS), 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Histogram:
    """How many values lie in each bucket, the last one without a bound, and their sum in seconds."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        self.seconds = 0.0

    @property
    def count(self) -> int:
        """How many values."""
        return sum(self.buckets)

    def add(self, seconds: float, n: int = 1) -> None:
        """Count a value, n times."""
        self.buckets[bisect_left(BOUNDS_S, seconds)] += n
        self.seconds += seconds * n

    def copy(self) -> Self:
        """A copy that stands still."""
        copy = type(self)()
        copy.buckets = self.buckets.copy()
        copy.seconds = self.seconds
        return copy


class Latencies(dict[tuple[int, int], Histogram]):
    """(API key, part) -> Histogram, of requests that are answered."""

    def add(self, api_key: int, part: int, seconds: float) -> None:
        """Count one request."""
        histogram = self.get((api_key, part))
        if histogram is None:
            histogram = self[api_key, part] = Histogram()
        histogram.add(seconds if seconds > 0 else 0.0)

    def copy(self) -> Self:
        """A copy that stands still."""
        return type(self)((key, histogram.copy()) for key, histogram in self.items())


class Metrics:
    """Running totals since start."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections_accepted",
        "connections_refused",
        "counts",
        "errors",
        "latencies",
        "spans",
        "turn_begins",
    )

    def __init__(self) -> None:
        self.counts = [0] * API_KEYS  # requests
        self.errors: Counter[tuple[int, int]] = Counter()  # (api_key, error code) -> how often it was answered
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections_accepted = 0
        self.connections_refused = 0
        self.latencies = Latencies()
        self.spans: dict[str, int] = {}  # of --otel, by what became of them; empty: there are no traces
        self.turn_begins: Callable[[], None] | None = None  # set by what measures latencies

    def error(self, api_key: int, error_code: int) -> None:
        """Count one error that is answered: of a request, or of a partition, topic, group or member in it."""
        self.errors[api_key, error_code] += 1

    def snapshot(self) -> Metrics:
        """A copy, to take differences from."""
        copy = Metrics()  # field by field: a class that mypyc has compiled cannot name its slots
        copy.bytes_in = self.bytes_in
        copy.bytes_out = self.bytes_out
        copy.connections_accepted = self.connections_accepted
        copy.connections_refused = self.connections_refused
        copy.counts = self.counts.copy()
        copy.errors = self.errors.copy()
        copy.latencies = self.latencies.copy()
        copy.spans = self.spans.copy()
        copy.turn_begins = self.turn_begins
        return copy
