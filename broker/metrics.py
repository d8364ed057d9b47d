"""What the broker counts about itself: plain numbers that the server adds to and a sink reads.

Counting is on the serving path, so it is adding to list elements and attributes; whatever takes work
(differences, names, sizes of logs and groups) is done by who reads.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

# One slot per API key; Kafka is at 92. Only keys of known APIs are counted, so a hostile key reaches no slot.
API_KEYS: Final = 128


class Metrics:
    """Running totals since start.

    A latency runs from the turn that read a request to the turn that sent its reply, summed per API:
    `seconds[api_key]` over `timed[api_key]` replies is the mean.
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections",
        "connections_accepted",
        "connections_refused",
        "counts",
        "errors",
        "seconds",
        "timed",
    )

    def __init__(self) -> None:
        self.counts = [0] * API_KEYS  # requests
        self.timed = [0] * API_KEYS
        self.seconds = [0.0] * API_KEYS
        self.errors: Counter[tuple[int, int]] = Counter()  # (api_key, error code) -> requests refused whole
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections = 0
        self.connections_accepted = 0
        self.connections_refused = 0

    def request(self, api_key: int, n: int, seconds_total: float) -> None:
        """Count the latency of `n` replies of one API, summed: one call per API and turn is enough."""
        self.timed[api_key] += n
        self.seconds[api_key] += seconds_total

    def error(self, api_key: int, error_code: int) -> None:
        """Count one request that was refused as a whole."""
        self.errors[api_key, error_code] += 1

    def snapshot(self) -> Metrics:
        """A copy that stands still, to take differences from."""
        copy = Metrics()
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(copy, name, value if isinstance(value, int) else value.copy())
        return copy
