"""The parked fetches of a partition."""

from __future__ import annotations

from typing import Protocol


class Waiter(Protocol):
    """A parked fetch."""

    def poll(self) -> None:
        """Look again: there may be new records, or the partition was closed."""


def poll_all(waiters: dict[Waiter, None]) -> None:
    """Let each of them look again, oldest first."""
    for wait in list(waiters):
        wait.poll()
