"""What the broker counts about itself: plain numbers that the server adds to and a sink reads.

Counting is on the serving path, so it is adding to list elements, once per API and turn of the event loop and
not once per request; whatever takes work (differences, names, sizes of logs and groups) is done by who reads.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

# One slot per API key; Kafka is at 92. Callers count known keys only, so that a hostile key cannot reach
# another's slot.
API_KEYS: Final = 128


class Metrics:
    """Running totals since start; latencies are seconds from a request's last byte to its reply being handed
    to the socket."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connections",
        "connections_accepted",
        "connections_refused",
        "errors",
        "requests",
        "seconds",
    )

    def __init__(self) -> None:
        self.requests = [0] * API_KEYS
        self.seconds = [0.0] * API_KEYS
        self.errors: Counter[tuple[int, int]] = Counter()  # (api_key, error code) -> requests refused whole
        self.bytes_received = 0
        self.bytes_sent = 0
        self.connections = 0
        self.connections_accepted = 0
        self.connections_refused = 0

    def request(self, api_key: int, n: int, seconds_total: float) -> None:
        """Count `n` requests of one API that were answered in a turn, and the time they took together."""
        self.requests[api_key] += n
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
