"""The deadlines of a shard by name. Many move with each request, so not every change sets a new alarm."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.turn.turn import Turn


class Deadlines:
    """Calls `due` with a name once its deadline has passed."""

    __slots__ = ("_alarms", "_due", "_turn", "by_name")

    def __init__(self, turn: Turn, due: Callable[[Hashable], None]) -> None:
        self._turn = turn
        self._due = due
        self.by_name: dict[Hashable, int] = {}  # by the steady clock
        self._alarms: dict[Hashable, int] = {}

    def clear(self) -> None:
        """Forget all."""
        self.by_name.clear()
        self._alarms.clear()

    def set(self, name: Hashable, deadline_ms: int | None) -> None:
        """Set, move or cancel (None) one. A later deadline is only stored: the old alarm sets the next one.

        `deadline_ms` is by the turn's wall clock; what counts is how far it lies ahead.
        """
        if deadline_ms is None:
            self.by_name.pop(name, None)
            return
        turn = self._turn
        self.by_name[name] = steady_ms = deadline_ms - turn.now_ms + turn.steady_ms
        alarm_ms = self._alarms.get(name)
        if alarm_ms is None or steady_ms < alarm_ms:
            self._set_alarm(name, steady_ms)

    def _set_alarm(self, name: Hashable, deadline_ms: int) -> None:
        """`deadline_ms`: by the steady clock, as in `by_name`."""
        self._alarms[name] = deadline_ms
        is_round = isinstance(name, tuple) and len(name) == 1  # of upkeep, as ("expiry",): no client waits for it
        self._turn.timers.at(deadline_ms, partial(self._ring, name), is_deadline=not is_round)

    def _ring(self, name: Hashable, alarm_ms: int, now_ms: int) -> None:
        """An alarm rings. Its deadline may have moved or been cancelled since."""
        if self._alarms.get(name) != alarm_ms:
            return
        del self._alarms[name]
        deadline_ms = self.by_name.get(name)
        if deadline_ms is None:
            return
        if deadline_ms > now_ms:
            self._set_alarm(name, deadline_ms)
            return
        del self.by_name[name]
        self._due(name)
