"""What was done to a cluster, and when: begun, reset, restored; brokers stopped, paused, started. For the page."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

KEPT: Final = 1000


class Happening(NamedTuple):
    """One of them. `number` counts from 1 in the process; `at_ms` is the cluster's time, in Unix milliseconds."""

    number: int
    at_ms: int
    text: str


class Happenings:
    """The newest of one cluster, through all its lives."""

    def __init__(self) -> None:
        self.kept: deque[Happening] = deque(maxlen=KEPT)
        self.seen = 0

    def tell(self, at_ms: int, text: str) -> None:
        """Remember what has just been done."""
        self.seen += 1
        self.kept.append(Happening(self.seen, at_ms, text))

    def began(self, at_ms: int, life: int, *, is_copy: bool) -> None:
        """A life of the cluster begins."""
        if life == 1:
            self.tell(at_ms, "the cluster began, as a copy" if is_copy else "the broker started")
        else:
            self.tell(at_ms, "a snapshot was restored" if is_copy else "the cluster was reset")
