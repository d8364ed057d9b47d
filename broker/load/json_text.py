"""JSON with the lines of its fields. Errors: TextError: it is not JSON, or names a field twice."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from json.decoder import scanstring  # type: ignore[attr-defined]  # the decoder's own, which its stubs leave out
from typing import TYPE_CHECKING, Any, Final

from broker.load.text_errors import MOST_DIGITS, TextError, check_depth, too_deep

if TYPE_CHECKING:
    from broker.load.problems import Path

_SPACE: Final = re.compile(r"[ \t\r\n]*")
NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
_SCALAR: Final = re.compile(r"[^,\]}\s]+")


class Lines:
    """Which line of a text a position is in."""

    def __init__(self, text: str) -> None:
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def of(self, position: int) -> int:
        """Counted from 1."""
        return bisect_right(self._ends, position - 1) + 1


def parse(text: str) -> Any:
    """Errors: TextError."""
    wrong: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            wrong.append("a name that is there twice")
        return made

    def fraction(digits: str) -> float:
        found = float(digits)
        if math.isinf(found):
            raise TextError(0, f"{digits:.50} is a larger number than any that is read here")
        return found

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=wrong.append, parse_float=fraction)
        check_depth(value)
    except TextError:
        raise
    except json.JSONDecodeError as error:
        raise TextError(error.lineno, f"this is not JSON: {error.msg}") from None
    except RecursionError:
        raise too_deep() from None
    except ValueError:  # the only one that is left
        raise TextError(0, f"a number has at most {MOST_DIGITS} digits") from None
    if wrong:
        _Walk(text).refuse()
    return value


def index(text: str) -> dict[Path, int]:
    """The line of each field and item of a text that `parse` takes."""
    return _Walk(text).run()


class _Walk:
    """Goes through a text that is known to be JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = Lines(text)
        self._found: dict[Path, int] = {}
        self._wrong: list[tuple[int, str]] = []

    def run(self) -> dict[Path, int]:
        self._value(self._skip(0), ())
        return self._found

    def refuse(self) -> None:
        """Errors: TextError: what the library takes, and is wrong here."""
        self.run()
        for line, why in self._wrong:
            raise TextError(line, why)

    def _skip(self, position: int) -> int:
        found = _SPACE.match(self._text, position)
        assert found is not None
        return found.end()

    def _value(self, position: int, path: Path) -> int:
        """Take one value in. Returns where it ends."""
        first = self._text[position]
        if first == '"':
            return int(scanstring(self._text, position + 1)[1])
        if first in "{[":
            return self._inside(position + 1, path, is_object=first == "{")
        found = _SCALAR.match(self._text, position)
        assert found is not None
        if found[0] in NO_NUMBERS:
            self._wrong.append((self._lines.of(position), f"{found[0]} is no number of JSON"))
        return found.end()

    def _inside(self, position: int, path: Path, *, is_object: bool) -> int:
        number = 0
        while True:
            position = self._skip(position)
            if self._text[position] in "}]":
                return position + 1
            if self._text[position] == ",":
                position = self._skip(position + 1)
            line, step = self._lines.of(position), str | int
            if is_object:
                step, position = scanstring(self._text, position + 1)
                position = self._skip(self._skip(position) + 1)  # over the colon
                if (*path, step) in self._found:
                    self._wrong.append((line, f'"{step}" is there twice'))
            else:
                step = number  # type: ignore[assignment]  # a place in a list
                number += 1
            here = (*path, step)
            self._found[here] = line  # type: ignore[index]  # as above
            position = self._value(position, here)  # type: ignore[arg-type]  # as above
