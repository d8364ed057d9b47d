"""Paces handshakes, and bounds what they hold: one step of one handshake in an iteration of the loop, requests between.

A step costs up to 2 ms, most of it the signature of an RSA key. A thousand clients that connect at once would hold up
everybody else by two seconds if all were served in one iteration.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio

LIMIT_S: Final = 10.0  # for a whole handshake
MOST: Final = 1000  # at a time; above it the oldest is closed
MOST_BYTES: Final = 1 << 16  # that a client may send during its handshake
SWEEP_S: Final = 1.0


class Handshake(Protocol):
    """A connection during its handshake."""

    def step(self) -> None:
        """Take a step."""

    def give_up(self, why: str) -> None:
        """Close it."""


class Handshakes:
    """The handshakes of one process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: OrderedDict[Handshake, float] = OrderedDict()  # with the time when they began
        self._ready: deque[Handshake] = deque()  # those that have received something
        self._running = False
        self._sweeping: asyncio.Handle | None = None
        self.done = 0
        self.failed = 0

    def begin(self, protocol: Handshake) -> None:
        """A client has connected."""
        self._open[protocol] = self._loop.time()
        if len(self._open) > MOST:
            oldest = next(iter(self._open))
            oldest.give_up(f"more than {MOST} handshakes are under way")
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP_S, self._sweep)

    def end(self, protocol: Handshake, *, is_good: bool) -> None:
        """A handshake is complete, has failed, or its client is gone."""
        if self._open.pop(protocol, None) is not None:
            self.done += is_good
            self.failed += not is_good

    def ready(self, protocol: Handshake) -> None:
        """A handshake can take a step."""
        self._ready.append(protocol)
        if not self._running:
            self._running = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        protocol = self._ready.popleft()
        if self._ready:
            self._loop.call_soon(self._step)
        else:
            self._running = False
        if protocol in self._open:
            protocol.step()

    def _sweep(self) -> None:
        self._sweeping = None
        now_s = self._loop.time()
        for protocol, began_s in list(self._open.items()):
            if now_s - began_s <= LIMIT_S:
                break
            protocol.give_up(f"no TLS handshake within {LIMIT_S:.0f} s")
        if self._open:
            self._sweeping = self._loop.call_later(SWEEP_S, self._sweep)

    def close(self) -> None:
        """Forget everything."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._open.clear()
        self._ready.clear()
