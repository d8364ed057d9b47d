"""Looking for the next request before the loop sleeps: waking a process that sleeps takes longer than most requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LOOKS: Final = 20  # of the loop, 2 to 3 µs each, after a turn
MOST_TRUST: Final = 8
TURNS_A_TRIAL: Final = 16


class Spin:
    """Keeps the loop awake for a moment after a turn, as long as the next one mostly comes within it.

    Who waits for an answer before it asks again is answered sooner by some 50 µs; where nothing ever comes in time, be
    it that clients take longer or that they need the processor, this looks after one turn of sixteen only.
    """

    __slots__ = ("_call_soon", "_left", "_looking", "_trust", "_turns")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon  # in the next iteration of the loop
        self._left = 0
        self._looking = False
        self._trust = 0
        self._turns = 0

    def turn_ended(self) -> None:
        """Begin to look, or go on."""
        if self._looking and self._trust < MOST_TRUST:
            self._trust += 1  # it came while we looked
        self._turns += 1
        if self._looking:
            self._left = LOOKS
        elif self._trust or self._turns % TURNS_A_TRIAL == 0:
            self._looking = True
            self._left = LOOKS
            self._call_soon(self._look)

    def _look(self) -> None:
        self._left -= 1
        if self._left > 0:
            self._call_soon(self._look)
            return
        self._looking = False
        if self._trust:
            self._trust -= 1
