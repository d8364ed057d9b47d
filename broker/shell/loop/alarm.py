"""One timer of the event loop for all timers of a turn: it rings when the first of them is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from broker.turn.turn import Turn


class Alarm:
    """The alarm of one life of a cluster."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turn: Turn) -> None:
        self._loop = loop
        self._turn = turn
        self._handle: asyncio.Handle | None = None

    def turn_ended(self) -> None:
        """Set it again if another timer is the first one now."""
        turn = self._turn
        if turn.timers.moved or turn.waits.moved:
            turn.timers.moved = turn.waits.moved = False
            self._set()

    def ring_soon(self) -> None:
        """The clock was moved: run what is due in the next iteration of the loop."""
        self.cancel()
        self._handle = self._loop.call_soon(self._ring)

    def cancel(self) -> None:
        """Ring no more, until a turn ends."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _set(self) -> None:
        self.cancel()
        turn = self._turn
        due_ms, wait_ms = turn.timers.next_ms, turn.waits.next_ms if turn.waits is not turn.timers else None
        clock = turn.env.clock
        left = [] if due_ms is None else [due_ms - clock.steady_ms()]
        left += [] if wait_ms is None else [wait_ms - clock.wait_ms()]
        if left:
            self._handle = self._loop.call_later(max(0.0, min(left) / 1000), self._ring)

    def _ring(self) -> None:
        self._handle = None
        self._turn.ring()
        self._set()
