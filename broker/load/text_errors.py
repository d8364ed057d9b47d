"""What is raised for a text that does not read as its language."""

from __future__ import annotations


class TextError(ValueError):
    """A text that cannot be read. `line` is counted from 1; 0: it is not known."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
