"""Busy-polls for the next request: waking a sleeping process takes longer than most requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LOOKS: Final = 20  # iterations of the loop after a turn, 2 to 3 µs each
MOST_TRUST: Final = 8
TURNS_A_TRIAL: Final = 16
LONGEST_MS: Final = 1  # if all looks take longer, other processes need the processor


class Spin:
    """Keeps the loop awake for some 60 µs after a turn, while the next request mostly comes within that time.

    For the steps of a transaction, each of which waits for the reply to the one before. Where requests do not come in
    time, because clients take longer or need the processor, it polls after one turn of sixteen only.
    """

    __slots__ = ("_began_ms", "_call_soon", "_left", "_looking", "_monotonic_ms", "_trust", "_turns")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], monotonic_ms: Callable[[], int]) -> None:
        self._call_soon = call_soon  # in the next iteration of the loop
        self._monotonic_ms = monotonic_ms
        self._began_ms = 0
        self._left = 0
        self._looking = False
        self._trust = 0
        self._turns = 0

    def turn_ended(self) -> None:
        """Begin to poll, or continue."""
        self._turns += 1
        if self._looking:
            self._judge(came=True)
        elif self._trust or self._turns % TURNS_A_TRIAL == 0:
            self._looking = True
            self._call_soon(self._look)
        else:
            return
        self._left = LOOKS
        self._began_ms = self._monotonic_ms()

    def _look(self) -> None:
        self._left -= 1
        if self._left > 0:
            self._call_soon(self._look)
            return
        self._looking = False
        self._judge(came=False)

    def _judge(self, *, came: bool) -> None:
        if self._monotonic_ms() - self._began_ms > LONGEST_MS:
            self._trust = 0
        elif came:
            self._trust = min(self._trust + 1, MOST_TRUST)
        else:
            self._trust = max(self._trust - 1, 0)
