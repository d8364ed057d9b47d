"""What a test wants to go wrong with the writes and syncs of a disk, be it the real one or one in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

WRITE: Final = "write"
SYNC: Final = "sync"


class Trouble:
    """What a test wants to go wrong with one write or sync: it takes longer, or fails with a part written."""

    __slots__ = ("delay_ms", "errno", "short_bytes")

    def __init__(self, errno: int, *, short_bytes: int = 0, delay_ms: int = 0) -> None:
        self.errno = errno  # 0: it succeeds
        self.short_bytes = short_bytes
        self.delay_ms = delay_ms


# directory, with a slash -> (WRITE or SYNC, path of the file, bytes of the write) -> what goes wrong with it
Troubles = dict[str, Callable[[str, str, int], "Trouble | None"]]


def find_trouble(troubles: Troubles, kind: str, path: str, size: int) -> Trouble | None:
    """What goes wrong with a write or sync, its delay already waited for; None if it succeeds."""
    for directory, ask in list(troubles.items()):
        found = ask(kind, path, size) if path.startswith(directory) else None
        if found is None:
            continue
        if found.delay_ms:
            time.sleep(found.delay_ms / 1000)
        if found.errno:
            return found
    return None
