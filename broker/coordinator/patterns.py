"""Regular expressions that clients send: RE2's syntax, matched in time linear in the text, never by backtracking.

RE2 refuses what would need backtracking (back references, lookaround). Time still grows with the size of the
expression: so its size is limited, and whoever matches many names counts the steps (`Pattern.steps`) and yields in
between.

Source: Kafka compiles these expressions by RE2/J (KIP-848, KIP-1152).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

LONGEST: Final = 1 << 15  # characters; Kafka has no limit
MEMORY_BYTES: Final = 1 << 20  # of a compiled expression; compiling takes at most 15 ms then, instead of 450
STEPS_A_SLICE: Final = 250_000  # 2 ms
CALL_STEPS: Final = 250  # what a call takes beside the steps of the match: 2 us


class PatternError(ValueError):
    """The expression cannot be used; the text says why."""


class Pattern:
    """A compiled expression."""

    __slots__ = ("_fullmatch", "_size")

    def __init__(self, fullmatch: Callable[[str], Any], size: int) -> None:
        self._fullmatch = fullmatch
        self._size = size

    def matches(self, text: str) -> bool:
        """Whether the expression matches the whole text."""
        return self._fullmatch(text) is not None

    def steps(self, text: str) -> int:
        """How many steps a match takes at most: up to 8 ns each."""
        return CALL_STEPS + self._size * (len(text) + 1)


@lru_cache(maxsize=256)
def compiled(expression: str) -> Pattern:
    """Compile an expression. Errors: PatternError."""
    if len(expression) > LONGEST:
        raise PatternError(f"it has more than {LONGEST} characters")
    import re2  # 8 ms, and few clients send expressions

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES
    options.never_capture = True  # else thousands of groups make a match a hundred times slower
    try:
        regexp = re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0]
        raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    return Pattern(regexp.fullmatch, regexp.programsize)
