"""What is wrong with a file that fills a cluster: which file, line and field, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Path = tuple[str | int, ...]  # of a field: ("topics", 0, "name")
MOST_SHOWN: Final = 20


class Problem(NamedTuple):
    """One thing that is wrong.

    file    as it was named.
    line    counted from 1; 0: it has none, as a variable.
    field   such as topics[0].name; "": the file as a whole.
    """

    file: str
    line: int
    field: str
    text: str

    def sentence(self) -> str:
        """In words: orders.yaml:12: topics[0].partitions: takes a whole number."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.field}: {self.text}" if self.field else f"{place}: {self.text}"


class LoadError(ValueError):
    """Files that cannot be loaded; `problems` says all that is wrong, and nothing has been loaded."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        shown = [each.sentence() for each in self.problems[:MOST_SHOWN]]
        if len(self.problems) > MOST_SHOWN:
            shown.append(f"and {len(self.problems) - MOST_SHOWN} more")
        super().__init__("\n".join(shown))


class LoadFailedError(Exception):
    """A load that has begun could not be completed; the message says why, and what the next start does."""


def field_name(path: Path) -> str:
    """topics[0].records[3].value"""
    found = ""
    for step in path:
        found += f"[{step}]" if isinstance(step, int) else f".{step}" if found else step
    return found
