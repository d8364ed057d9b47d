"""When jobs get their steps: a little after each turn of clients, and most of the time where there are no clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from broker.turn.turn import Turn

# While clients are served, jobs get one eleventh of the time. Each request that comes meanwhile waits for the steps of
# one turn, so they are short. Where turns are rare the steps of one are longer, up to BUSY_MOST_US.
BUSY_BREAKS: Final = 10
BUSY_LEAST_US, BUSY_MOST_US = 20, 300
BUSY_LOOK_S: Final = 0.003  # until it is looked whether clients are still served
IDLE_WORK_US, IDLE_BREAK_S = 2000, 0.001


class Steps:
    """Runs the steps of a turn's jobs. A step begins after the turn before it has written its records.

    served       how many requests have come
    call_soon    in the next iteration of the loop
    call_later   after so many seconds; like `call_soon` it answers a handle with `cancel`
    """

    __slots__ = (
        "_call_later",
        "_call_soon",
        "_is_busy",
        "_is_soon",
        "_paid_us",
        "_seen",
        "_served",
        "_turn",
        "_waiting",
    )

    def __init__(
        self,
        turn: Turn,
        served: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], Any],
        call_later: Callable[[float, Callable[[], None]], Any],
    ) -> None:
        self._turn = turn
        self._served = served
        self._call_soon = call_soon
        self._call_later = call_later
        self._waiting: Any = None  # the handle of the next call
        self._is_soon = False  # it comes in the next iteration
        self._seen = 0  # requests when it was last looked
        self._is_busy = False
        self._paid_us = 0  # up to this time the jobs have had their part

    def turn_ended(self) -> None:
        """Give the jobs their part of the time since the last step, or see to it that they get it later."""
        if not self._turn.jobs:
            return
        if self._is_busy:
            now_us = self._turn.env.clock.monotonic_us()
            due_us = min((now_us - self._paid_us) // BUSY_BREAKS, BUSY_MOST_US)
            if due_us >= BUSY_LEAST_US:
                took_us = self._run(now_us, due_us)
                self._paid_us = now_us + took_us + max(0, took_us - due_us) * BUSY_BREAKS
        if self._turn.jobs.is_hurried and not self._is_soon:
            self.cancel()
        if self._waiting is None:
            self._wait()

    def cancel(self) -> None:
        """Run no step any more."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
            self._is_soon = False

    def _wait(self) -> None:
        if self._turn.jobs.is_hurried:  # a client waits for it
            self._soon()
        elif self._turn.jobs:
            self._waiting = self._call_later(BUSY_LOOK_S if self._is_busy else IDLE_BREAK_S, self._soon)

    def _soon(self) -> None:
        """Timers are called before the turn's end: let that write its records and send its replies first."""
        self._is_soon = True
        self._waiting = self._call_soon(self._step)

    def _step(self) -> None:
        self._is_soon = False
        served = self._served()
        self._is_busy, self._seen = served != self._seen, served
        self._waiting = None
        if self._turn.jobs.is_hurried:
            self._run(self._turn.env.clock.monotonic_us(), 0)
        elif not self._is_busy:  # otherwise the turns of the clients do it
            self._run(self._turn.env.clock.monotonic_us(), IDLE_WORK_US)
        self._wait()

    def _run(self, now_us: int, work_us: int) -> int:
        """Run steps for so long, at least one. Returns how long it took."""
        self._turn.begin()
        jobs, monotonic_us = self._turn.jobs, self._turn.env.clock.monotonic_us
        while jobs.step() and monotonic_us() - now_us < work_us:
            pass
        return monotonic_us() - now_us
