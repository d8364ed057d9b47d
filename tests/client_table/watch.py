"""Did the machine stand still? A client that is not given the processor for seconds meets its own time limits: what it
then does says nothing of it, and the run is made again."""

from __future__ import annotations

import threading
import time

from momus import Broker, ControlError

EVERY_S = 0.25
MOST_S = 2.0  # that the broker may take to answer a trifle, the sleep before it included


class Watch:
    """Asks the broker for a trifle all the time, until `stop`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._stalls: list[float] = []  # when they ended
        self._last = time.monotonic()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ends.wait(EVERY_S):
            begun = self._last
            try:
                self._broker.control.ask("GET", "/_admin/clock")
            except ControlError:
                return  # it has ended
            self._last = time.monotonic()
            if self._last - begun > MOST_S + EVERY_S:
                self._stalls.append(self._last)

    def stood_still(self, since: float) -> bool:
        """Whether it did since then, or does."""
        is_still = time.monotonic() - self._last > MOST_S + EVERY_S
        return is_still or any(at > since for at in self._stalls[-20:])

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()
