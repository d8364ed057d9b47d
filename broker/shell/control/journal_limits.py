"""How large a journal may be."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import RefusedError

LEAST_BYTES: Final = 1 << 16
MOST_BYTES: Final = 4 << 30


def check_journal_bytes(limit_bytes: int) -> None:
    """Errors: RefusedError."""
    if limit_bytes and not LEAST_BYTES <= limit_bytes <= MOST_BYTES:
        raise RefusedError(400, f"a journal has 0 bytes, for none, or {LEAST_BYTES} to {MOST_BYTES}")
