"""How fast addresses may connect: `connection_creation_rate` of an address, or of all that have no quota of their own.

A connection that comes too soon is not served; it is closed when the time by which it was too soon is over, at most
after a window. It does not count for the rate.

Source: KIP-612; Kafka's ConnectionQuotas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.config.addresses import short_address
from broker.quotas.client_quotas import MOST_MEASURES
from broker.turn.rate import Rate

if TYPE_CHECKING:
    from broker.cluster.client_records import Entity

KEY: Final = "connection_creation_rate"
IP: Final = "ip"
_LOOPBACK: Final = "127.0.0.1"


class AddressQuotas:
    """The quotas of addresses of one cluster.

    window  how many windows a rate is over, and the milliseconds of one.
    """

    def __init__(self, quotas: Callable[[], dict[Entity, dict[str, float]]], window: tuple[int, int]) -> None:
        self._quotas = quotas
        self._window = window
        self._rates: dict[str, Rate] = {}

    def throttle_ms(self, address: str, now_ms: int) -> int:
        """How long the address must wait that connects now; 0: it may connect, and that is counted."""
        limit = self._limit(address)
        if limit is None:
            return 0
        rate = self._rates.get(address)
        if rate is None:
            if len(self._rates) >= MOST_MEASURES:
                self._rates.clear()
            rate = self._rates[address] = Rate(*self._window)
        rate.record(1, now_ms)
        throttle_ms = rate.throttle_ms(limit, now_ms)
        if throttle_ms > 0:
            rate.record(-1, now_ms)
        return min(throttle_ms, self._window[1])

    def _limit(self, address: str) -> float | None:
        quotas = self._quotas()
        for name in (address, "localhost" if address == _LOOPBACK else short_address(address), None):
            limit = quotas.get(((IP, name),), {}).get(KEY)
            if limit is not None:
                return limit
        return None
