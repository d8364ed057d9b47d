"""Write: records for one log, and the state that they change. Whoever decides on them makes one; turn/ appends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

# of one batch: its buffers, last offset, largest timestamp in Unix milliseconds, and size in bytes
Batch: TypeAlias = tuple[Sequence[Any], int, int, int]
Span: TypeAlias = list[tuple[bytes, int]]  # batches that are valid only together: (bytes, last offset) of each


class Write:
    """A base class, not a Protocol: the compiled build calls its methods without a look-up by name."""

    __slots__ = ()

    def build(self, log: Any, base_offset: int, now_ms: int) -> Batch | Span:
        """The records as they go into the log, from `base_offset` on."""
        raise NotImplementedError

    def replay(self, target: Any, base_offset: int, now_ms: int) -> None:
        """Change the state of the log's owner as a start does that reads these records."""
        raise NotImplementedError
