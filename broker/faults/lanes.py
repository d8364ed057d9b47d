"""Requests that a fault keeps before they take effect, and those that come behind them on the same connection.

Kafka serves the requests of a connection one after the other. So while one is kept, those behind it wait too.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.faults.fault import Fault

MOST_FRAMES: Final = 4096
MOST_BYTES: Final = 64 << 20


class Lane:
    """The waiting requests of one connection, as frames with their size fields. The first is the one that is kept."""

    __slots__ = ("_bytes", "fault", "frames", "is_swallowed", "timer")

    def __init__(self, fault: Fault, frame: bytes, is_swallowed: bool) -> None:
        """`is_swallowed`: neither the frame nor those after it are ever served."""
        self.fault = fault
        self.is_swallowed = is_swallowed
        self.timer = 0
        self.frames: deque[bytes] = deque(() if self.is_swallowed else (frame,))
        self._bytes = len(frame)

    def add(self, frame: bytes) -> bool:
        """Let one more wait. False: there are too many."""
        if self.is_swallowed:
            return True
        self.frames.append(frame)
        self._bytes += len(frame)
        return len(self.frames) <= MOST_FRAMES and self._bytes <= MOST_BYTES
