"""What a test lets go wrong with files in memory, and when."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

ALL_KINDS: Final = ("write", "truncate", "sync", "replace", "rename", "remove", "mkdir", "sync_dir", "cell")


class SimulatedCrash(BaseException):
    """The process dies here. Not an Exception: no handler of the code under test may survive it."""


class Fault:
    """What goes wrong, and when: the nth operation of some kinds, counted from now."""

    __slots__ = ("error", "forever", "kinds", "left", "short_bytes")

    def __init__(self, nth: int, kinds: Collection[str], error: BaseException, short_bytes: int, forever: bool) -> None:
        self.left = nth
        self.kinds = kinds
        self.error = error
        self.short_bytes = short_bytes
        self.forever = forever
