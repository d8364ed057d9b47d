"""Bounds the memory that slow clients hold: the connection longest without progress is closed first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.turn.turn import Turn

PATIENCE_MS: Final = 1000  # a client without progress is kept so long while the limit is exceeded but not doubled


class SlowClient(Protocol):
    """A connection that holds memory."""

    def refuse(self, why: str) -> None:
        """Close it."""


class Backlog:
    """Connections with unfinished requests or unread replies, the longest without progress first."""

    def __init__(self, limit_bytes: int, turn: Turn) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.large_request: Callable[[], None] = _nothing  # called when one begins to arrive, or many come together
        self._turn = turn
        self._waiting: dict[SlowClient, tuple[int, int]] = {}  # bytes, and the time of the last progress

    @property
    def is_pressed(self) -> bool:
        """Whether replies should use smaller chunks of memory."""
        return self.bytes + self._turn.answered_bytes > self.limit_bytes // 2

    def weigh(self, client: SlowClient, size: int, now_ms: int, *, progress: bool) -> None:
        """Set how many bytes a connection holds. Without progress it keeps its place in the order.

        A single connection may hold more than the limit, so that a large request can arrive.
        """
        waiting = self._waiting
        before, since_ms = waiting.get(client, (0, now_ms))
        if progress or not size:
            waiting.pop(client, None)
            since_ms = now_ms
        if size:
            waiting[client] = (size, since_ms)
        self.bytes += size - before
        while self.bytes > self.limit_bytes and len(waiting) > 1:
            slowest, (held, since_ms) = next(iter(waiting.items()))
            if now_ms - since_ms < PATIENCE_MS and self.bytes <= 2 * self.limit_bytes:
                break
            del waiting[slowest]
            self.bytes -= held
            slowest.refuse(
                f"slow clients hold more than {self.limit_bytes} bytes (queued.max.bytes), this one without progress"
            )


def _nothing() -> None:
    """Where nobody prepares for large requests."""
