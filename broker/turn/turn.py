"""The turn: one reading of the clock for all requests of one loop iteration, and one flush at its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.turn.jobs import Jobs
from broker.turn.learned import Learned
from broker.turn.timers import Timers

if TYPE_CHECKING:
    from broker.turn.durability import Durability
    from broker.turn.flush_state import FlushState
    from broker.turn.metrics import Metrics
    from storage.files.env import Env
    from storage.log.log import Log

# Of a turn for large requests, before those that came meanwhile are served. The last of them may take longer: with 5 a
# commit beside 50 clients that open fetch sessions waits for three of them.
LARGE_MS: Final = 2
LARGE_BYTES: Final = 1 << 20  # of a turn's replies after which large requests wait for the next one


class Turn:
    """The turns of one broker.

    Connections call `begin`; the loop calls `end` once an iteration. The server calls `ring` at `timers.next_ms`,
    `sync_done` after the syncs that durability has started, and `jobs.step` between turns.

    Large requests, such as Metadata of all topics, share LARGE_MS of a turn. Those for which none is left are put off:
    they are served in later turns, in the order in which they came, and small requests that come meanwhile pass them.
    """

    __slots__ = (
        "_is_granted",
        "_is_open",
        "_large_until_ms",
        "_put_off",
        "_serves_put_off",
        "answered_bytes",
        "call_soon",
        "durability",
        "env",
        "fsync",
        "jobs",
        "learned",
        "metrics",
        "now_ms",
        "steady_ms",
        "timers",
        "waits",
    )

    def __init__(
        self, env: Env, durability: Durability, metrics: Metrics, call_soon: Callable[[Callable[[], None]], object]
    ) -> None:
        self.env = env
        self.durability = durability
        self.fsync = durability.fsync
        self.metrics = metrics
        self.call_soon = call_soon  # in the next turn of the loop
        self._is_open = False
        self.now_ms = env.clock.now_ms()  # Unix milliseconds by the wall clock, read once a turn
        self.steady_ms = env.clock.steady_ms()  # the same by the clock that does not step: for waits and timers
        self.answered_bytes = 0  # size of this turn's replies, on all connections but those with small ones
        self._large_until_ms = 0  # when this turn serves no more large requests; 0: it has served none
        self._put_off: deque[Callable[[], None]] = deque()  # what serves each request that was put off
        self._serves_put_off = False
        self._is_granted = False  # the request that was put off and is served now has its time
        self.timers = Timers()
        # of Fetches that wait, by Clock.wait_ms: a heap of its own where that is another time than steady_ms
        self.waits = self.timers
        self.jobs = Jobs()
        self.learned = Learned()

    def begin(self) -> int:
        """Open the turn unless it is open. Answers the time of the turn by the steady clock."""
        if not self._is_open:
            self._is_open = True
            self.answered_bytes = 0
            self._large_until_ms = 0
            clock = self.env.clock
            self.now_ms = clock.now_ms()  # as read_clock, without the call
            self.steady_ms = clock.steady_ms()
            self.call_soon(self.end)
            if self.metrics.turn_begins is not None:
                self.metrics.turn_begins()
        return self.steady_ms

    def read_clock(self) -> None:
        """The clock was moved, in this turn perhaps: the requests that follow wait from the new time."""
        self.now_ms = self.env.clock.now_ms()
        self.steady_ms = self.env.clock.steady_ms()

    def end(self) -> None:
        """Write what the turn appended and send its replies."""
        durability = self.durability
        while durability.end_turn():  # sent replies made room for waiting requests
            pass
        self._is_open = False
        if self._put_off:
            self.call_soon(self._serve_put_off)

    def is_full(self) -> bool:
        """Whether another large request has to wait for a later turn."""
        if self._put_off and not self._serves_put_off:
            return True  # others came before
        if self._is_granted:  # it has asked a moment ago; asking twice, it might find the time gone in each turn
            self._is_granted = False
            return False
        now_ms = self.env.clock.monotonic_ms()
        if not self._large_until_ms:
            self._large_until_ms = now_ms + LARGE_MS
        return now_ms >= self._large_until_ms or self.answered_bytes >= LARGE_BYTES

    def put_off(self, serve: Callable[[], None]) -> None:
        """Have a large request served in a later turn."""
        self._put_off.append(serve)

    def _serve_put_off(self) -> None:
        self.begin()
        self._serves_put_off = True
        try:
            while self._put_off and not self.is_full():
                self._is_granted = True
                self._put_off.popleft()()
                self._is_granted = False
        finally:
            self._serves_put_off = self._is_granted = False

    def touch(self, state: FlushState) -> None:
        """Have a log flushed at the end of the turn."""
        self.durability.touch(state)
        if not self._is_open:
            self.begin()

    def ring(self) -> None:
        """Make the timer calls that are due."""
        self.begin()
        self.timers.run_due(self.steady_ms)
        if self.waits is not self.timers:
            self.waits.run_due(self.env.clock.wait_ms())

    def sync_done(self, failed: dict[Log, Exception]) -> None:
        """The syncs that durability has started have ended; `failed` holds the logs whose sync failed."""
        self.begin()
        self.durability.sync_done(failed)
