"""Says on standard error how far a read is: a bar where a person looks at it, else a line now and then."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Final

BAR_S: Final = 0.2
LINE_S: Final = 10.0
WIDTH: Final = 24


class Progress:
    """Called as rows come in. done, total: bytes; total 0: not known."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()
        self._next = monotonic() + (BAR_S if self._is_watched else LINE_S)
        self._is_shown = False

    def __call__(self, what: str, rows: int, done: int = 0, total: int = 0) -> None:
        now = monotonic()
        if now < self._next:
            return
        share = f" {100 * done // total:3d} %" if total else ""
        text = f"reading {what}:{share} {rows:,} records"
        if self._is_watched:
            full = WIDTH * done // total if total else 0
            bar = f"[{'#' * full}{'.' * (WIDTH - full)}] " if total else ""
            sys.stderr.write(f"\r\x1b[K{bar}{text}")
            self._is_shown, self._next = True, now + BAR_S
        else:
            sys.stderr.write(f"momus pipeline: {text}\n")
            self._next = now + LINE_S
        sys.stderr.flush()

    def close(self) -> None:
        """Remove the bar."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
