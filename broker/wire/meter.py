"""How long requests take: a histogram for each API and each part of a request's life. Only while somebody asks.

part        from                                   to
queue       whole in the broker's memory           its turn begins (0 unless an earlier frame or a quota held it up)
work        its turn begins                        the handler is through with all that was read with it
durability  the handler is through                 the reply is written: the end of the turn's writes and syncs
parked      the same, for a request that waits     the same: records, members, or a transaction have come
total       whole in the broker's memory           the reply is written

Theory of operation. A meter watches connections as the journal does: what they took, and what they have sent. It reads
the clock twice for all frames that were read together, so that it costs little, and nothing once nobody asks.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.turn.metrics import DURABILITY, PARKED, QUEUE, TOTAL, WORK
from protocol.api import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.turn.metrics import Latencies
    from broker.turn.turn import Turn
    from broker.wire.clients import Clients
    from broker.wire.connection import Connection

FETCHES: Final = (ApiKey.FETCH, ApiKey.SHARE_FETCH)  # which wait in a way of their own
HEAD: Final = Struct(">ih")  # size, api key


class Meter:
    """Measures the requests of all connections. `clock_s`: seconds by a clock that never goes back."""

    def __init__(self, latencies: Latencies, clock_s: Callable[[], float]) -> None:
        self._latencies = latencies
        self._clock_s = clock_s
        self._began_s = clock_s()
        self._waiting: dict[Connection, float] = {}  # since when whole frames wait to be served
        # slot, API key, parked?, whole at, the handler was through at: of requests that are not answered yet
        self._open: dict[Connection, deque[tuple[int, int, bool, float, float]]] = {}

    def begin(self) -> None:
        """A turn begins."""
        self._began_s = self._clock_s()

    def took(self, connection: Connection, data: bytes, stop: int) -> None:
        """The frames in data[:stop] were served, or wait for their answer in the slots before the next one."""
        now_s, began_s = self._clock_s(), self._began_s
        since_s = self._waiting.pop(connection, began_s)
        keys, position = [], 0
        while position < stop:
            size, api_key = HEAD.unpack_from(data, position)
            keys.append(api_key)
            position += 4 + size
        if len(data) - stop >= 4 and len(data) - stop >= 4 + HEAD.unpack_from(data.ljust(stop + 6, b"\0"), stop)[0]:
            self._waiting[connection] = now_s
        slots = self._open.setdefault(connection, deque())
        for slot, api_key in enumerate(keys, connection.next_slot - len(keys)):
            if slot < connection.base:  # answered already: the connection is closing
                continue
            self._latencies.add(api_key, QUEUE, began_s - since_s)
            self._latencies.add(api_key, WORK, now_s - began_s)
            is_parked = slot in connection.parked or (
                api_key in FETCHES and connection.out[slot - connection.base] is None
            )
            slots.append((slot, api_key, is_parked, since_s, now_s))

    def sent(self, connection: Connection, data: Any) -> None:
        """Replies were written: of the slots below the connection's base."""
        slots = self._open.get(connection)
        now_s = self._clock_s()
        while slots and slots[0][0] < connection.base:
            _, api_key, is_parked, whole_s, done_s = slots.popleft()
            self._latencies.add(api_key, PARKED if is_parked else DURABILITY, now_s - done_s)
            self._latencies.add(api_key, TOTAL, now_s - whole_s)

    sent_in_parts = sent

    def disconnected(self, connection: Connection) -> None:
        """Forget what its requests are waiting for."""
        self._waiting.pop(connection, None)
        self._open.pop(connection, None)


def measure(turn: Turn, clients: Clients) -> None:
    """Measure how long requests take from now on."""
    meter = Meter(turn.metrics.latencies, lambda: turn.env.clock.monotonic_us() / 1_000_000)
    turn.metrics.turn_begins = meter.begin
    clients.watch(meter)
