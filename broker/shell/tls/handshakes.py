"""Paces handshakes, and bounds what they hold: one step of one handshake in an iteration of the loop, requests between.

A step costs 0.5 ms with an ECDSA key and 2 ms with one of RSA, most of it the signature. A thousand clients that
connect at once would hold up everybody else by seconds if all were served in one iteration. Nothing here is done for
all of them in one iteration: they are given up, and reported in the log, a few at a time.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger("momus.security")

LIMIT_S: Final = 10.0  # for a whole handshake
MOST: Final = 1000  # at a time; above it the oldest is closed
MOST_BYTES: Final = 1 << 16  # that a client may send during its handshake
SWEEP_S: Final = 1.0
SWEPT: Final = 50  # closed in an iteration
MOST_LINES: Final = 20  # in the log, of handshakes that fail in SWEEP_S


class Handshake(Protocol):
    """A connection during its handshake."""

    def step(self) -> None:
        """Take a step."""

    def give_up(self, why: str) -> None:
        """Close it."""

    def drop(self) -> None:
        """Close it, and say nothing."""


class Steps:
    """The steps that wait, of all clusters of the process: they share a loop, so they share its iterations."""

    def __init__(self) -> None:
        self._ready: deque[tuple[Handshakes, Handshake]] = deque()
        self._running = False

    def add(self, handshakes: Handshakes, protocol: Handshake) -> None:
        """A handshake can take a step."""
        self._ready.append((handshakes, protocol))
        if not self._running:
            self._running = True
            handshakes.loop.call_soon(self._step)

    def _step(self) -> None:
        handshakes, protocol = self._ready.popleft()
        if self._ready:
            handshakes.loop.call_soon(self._step)
        else:
            self._running = False
        if handshakes.is_open(protocol):
            protocol.step()


class Handshakes:
    """The handshakes of one cluster."""

    def __init__(self, loop: asyncio.AbstractEventLoop, steps: Steps) -> None:
        self.loop = loop
        self._steps = steps
        self._open: OrderedDict[Handshake, float] = OrderedDict()  # with the time when they began
        self._sweeping: asyncio.Handle | None = None
        self._lines = self._unlogged = 0  # since the last sweep
        self.done = 0
        self.failed = 0

    def begin(self, protocol: Handshake) -> None:
        """A client has connected."""
        self._open[protocol] = self.loop.time()
        if len(self._open) > MOST:
            oldest = next(iter(self._open))
            oldest.give_up(f"more than {MOST} handshakes are under way")
        self._sweep_later()

    def is_open(self, protocol: Handshake) -> bool:
        """Whether it is still under way."""
        return protocol in self._open

    def end(self, protocol: Handshake, *, is_good: bool) -> None:
        """A handshake is complete, has failed, or its client is gone."""
        if self._open.pop(protocol, None) is not None:
            self.done += is_good
            self.failed += not is_good

    def ready(self, protocol: Handshake) -> None:
        """A handshake can take a step."""
        self._steps.add(self, protocol)

    def tell(self, line: str) -> None:
        """Log why a handshake has failed, if there are not too many such lines."""
        if self._lines < MOST_LINES:
            self._lines += 1
            logger.warning("%s", line)
        else:
            self._unlogged += 1
            self._sweep_later()

    def _sweep_later(self) -> None:
        if self._sweeping is None:
            self._sweeping = self.loop.call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        unlogged, self._lines, self._unlogged = self._unlogged, 0, 0
        if unlogged:
            logger.warning("%d more TLS handshakes have failed in the last second", unlogged)
        self._close_late()
        if self._open:
            self._sweep_later()

    def _close_late(self) -> None:
        now_s = self.loop.time()
        for _ in range(SWEPT):
            protocol, began_s = next(iter(self._open.items()), (None, now_s))
            if protocol is None or now_s - began_s <= LIMIT_S:
                return
            protocol.give_up(f"no TLS handshake within {LIMIT_S:.0f} s")
        self.loop.call_soon(self._close_late)

    def close(self) -> None:
        """The cluster has ended: close what is under way."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        while self._open:
            self._open.popitem()[0].drop()
