"""A kept run that is open: played up to a place, where it stays, and forward from there by request."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from momus.cli.replay.bundle import TOOK, Bundle, Event, frames
from momus.cli.replay.player import Player
from momus.cli.replay.targets import Momus


class Opened:
    """One run, in a cluster of its own."""

    def __init__(self, bundle: Bundle, target: Momus) -> None:
        self._target = target
        self.player = Player(target)
        self._events: Iterator[Event] = bundle.events()
        self._next: Event | None = next(self._events, None)
        self._at_ms: int = bundle.about["start_ms"]
        self._last = ""
        self.requests = sum(1 for event in bundle.events() if event.kind == TOOK for _ in frames(event.data))
        self.differences: list[str] = []
        self._news: list[str] = []

    def step(self, requests: int = 1) -> None:
        """Play so many requests, and what followed each: its answer, the end of its connection, calls of the test.

        Requests that came in one piece are played together. Errors: OSError, ControlError.
        """
        until = self.player.requests + requests
        while (event := self._next) is not None:
            if event.kind == TOOK and self.player.requests >= until:
                return
            self._play(event)

    def go_to(self, at_ms: int) -> None:
        """Play all that happened until then, and let the clock stand there. Errors: as `step`."""
        while (event := self._next) is not None and event.at_ms <= at_ms:
            self._play(event)
        self._at_ms = max(self._at_ms, at_ms)
        self._target.go_to(at_ms)

    def where(self, *, is_step: bool) -> dict[str, Any]:
        """Where it is, as the control plane tells it; `is_step`: with the differences of this step alone."""
        news, self._news = self._news, []
        notes, self.player.notes = self.player.notes, []
        return {
            "request": self.player.requests,
            "requests": self.requests,
            "at_ms": self._at_ms,
            "last": self._last,
            "cluster": self._target.name,
            "differences": news if is_step else list(self.differences),
            "notes": notes,
            "ended": self._next is None,
        }

    def sentence(self) -> str:
        """Where it is, in words."""
        moment = datetime.fromtimestamp(self._at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        end = ", the last" if self._next is None else ""
        return (
            f"request {self.player.requests} of {self.requests}{end}, {moment}{f': {self._last}' if self._last else ''}"
        )

    def _play(self, event: Event) -> None:
        before = self.player.requests
        found = self.player.step(event)
        self._at_ms = max(self._at_ms, event.at_ms)
        if self.player.requests > before:
            self._last = self.player.last
        if found is not None:
            self.differences.append(found.sentence())
            self._news.append(found.sentence())
        self._next = next(self._events, None)
