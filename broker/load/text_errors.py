"""What is raised for a text that does not read as its language, or is nested deeper than any reader here goes."""

from __future__ import annotations

from typing import Any, Final

MOST_DEPTH: Final = 200  # of lists and objects within each other; Python's own readers go a thousand deep at most
MOST_DIGITS: Final = 4300  # of a number: Python's limit, for the time that more would take


class TextError(ValueError):
    """A text that cannot be read. `line` is counted from 1; 0: it is not known."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def too_deep(line: int = 1) -> TextError:
    """What is raised for lists and objects within each other beyond MOST_DEPTH."""
    return TextError(line, f"this is nested more than {MOST_DEPTH} deep")


def check_depth(value: Any) -> None:
    """Refuse a value that is nested too deep for who walks through it. Errors: TextError."""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise too_deep()
