"""The memory that slow clients hold, bounded in all: whoever has made no progress for longest gives way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.connection import Connection


class Backlog:
    """Connections with unfinished requests or unread replies, the one that has waited longest first."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self._waiting: dict[Connection, int] = {}

    def weigh(self, connection: Connection, size: int, *, progress: bool) -> None:
        """Say what a connection holds now. Without progress it keeps its place among those that wait.

        One connection alone may hold more than the limit: a large request must be able to come in.
        """
        waiting = self._waiting
        before = waiting.get(connection, 0)
        if progress or not size:
            waiting.pop(connection, None)
        if size:
            waiting[connection] = size
        self.bytes += size - before
        while self.bytes > self.limit_bytes and len(waiting) > 1:
            slowest = next(iter(waiting))
            self.bytes -= waiting.pop(slowest)
            slowest.refuse(f"clients that do not read or finish requests hold more than {self.limit_bytes} bytes")
