"""The memory that slow clients hold, bounded in all: whoever has made no progress for longest gives way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.wire.connection import Connection

PATIENCE_MS = 1000  # that a client without progress is given while the limit is only passed, not doubled


class Backlog:
    """Connections with unfinished requests or unread replies, the one that has waited longest first."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.turn_bytes = 0  # answered in this turn, on all connections
        self._waiting: dict[Connection, tuple[int, int]] = {}  # bytes, and the time of the last progress

    @property
    def is_pressed(self) -> bool:
        """Time to hand out memory in smaller pieces."""
        return self.bytes + self.turn_bytes > self.limit_bytes // 2

    def weigh(self, connection: Connection, size: int, now_ms: int, *, progress: bool) -> None:
        """Say what a connection holds now. Without progress it keeps its place among those that wait.

        One connection alone may hold more than the limit: a large request must be able to come in.
        """
        waiting = self._waiting
        before, since_ms = waiting.get(connection, (0, now_ms))
        if progress or not size:
            waiting.pop(connection, None)
            since_ms = now_ms
        if size:
            waiting[connection] = (size, since_ms)
        self.bytes += size - before
        while self.bytes > self.limit_bytes and len(waiting) > 1:
            slowest, (held, since_ms) = next(iter(waiting.items()))
            if now_ms - since_ms < PATIENCE_MS and self.bytes <= 2 * self.limit_bytes:
                break
            del waiting[slowest]
            self.bytes -= held
            slowest.refuse(f"clients that do not read or finish requests hold more than {self.limit_bytes} bytes")
