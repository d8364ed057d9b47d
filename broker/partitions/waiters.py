"""The parked fetches of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from storage.log.log import Log


class Waiter(Protocol):
    """A parked fetch."""

    def poll(self) -> None:
        """Look again: there may be new records, or the partition was closed."""


def poll_all(waiters: dict[Waiter, None], log: Log) -> None:
    """Let each of them look again, oldest first. What several want to read is looked for and read once."""
    if len(waiters) == 1:
        next(iter(waiters)).poll()
        return
    is_first = log.shared_slices is None
    if is_first:
        log.shared_slices = {}
    try:
        for wait in list(waiters):
            wait.poll()
    finally:
        if is_first:
            log.shared_slices = None
