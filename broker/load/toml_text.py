"""TOML with the lines of its fields. Errors: TextError: it is not TOML."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from broker.load.json_text import Lines
from broker.load.text_errors import MOST_DIGITS, TextError, check_depth, too_deep

if TYPE_CHECKING:
    from broker.load.problems import Path

TOO_LONG: Final = f"a number has at most {MOST_DIGITS} digits"
_DIGITS: Final = re.compile(rf"[=\[,]\s*+[-+]?[0-9_]{{{MOST_DIGITS + 1}}}")  # for each the library takes 120 bytes
_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY: Final = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+)[ \t]*""")
_SCALAR: Final = re.compile(r"[^,\]}\n#]+")
_TEXTS: Final = (  # the longer quotes first
    re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL),
    re.compile(r"'''.*?'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\]|\\.)*"'),
    re.compile(r"'[^']*'"),
)


def parse(text: str) -> Any:
    """Errors: TextError."""
    try:
        if _DIGITS.search(text):
            raise TextError(0, TOO_LONG)
        value = tomllib.loads(text)
        check_depth(value)
        return value
    except TextError:
        raise
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at (?:line (\d+)|end of document)", str(error))
        line = 1 + text.count("\n") if found is None or found[1] is None else int(found[1])
        raise TextError(line, f"this is not TOML: {error}") from None
    except RecursionError:
        raise too_deep() from None
    except ValueError:  # the only one that is left
        raise TextError(0, TOO_LONG) from None


def index(text: str) -> dict[Path, int]:
    """The line of each field and item of a text that `parse` takes."""
    return _Walk(text).run()


class _Walk:
    """Goes through a text that is known to be TOML."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = Lines(text)
        self._found: dict[Path, int] = {}
        self._last: dict[Path, int] = {}  # array of tables -> the index of its last one

    def run(self) -> dict[Path, int]:
        position, table = self._skip(0), tuple[str | int, ...]()
        while position < len(self._text):
            begin = position
            if self._text.startswith("[[", position):
                keys, position = self._keys(position + 2)
                place = (*self._placed(keys[:-1]), keys[-1])
                self._last[place] = self._last.get(place, -1) + 1
                table = (*place, self._last[place])
                position += 2
                self._found.setdefault(place, self._lines.of(begin))
                self._found[table] = self._lines.of(begin)
            elif self._text[position] == "[":
                keys, position = self._keys(position + 1)
                table = self._placed(keys)
                position += 1
                self._found[table] = self._lines.of(begin)
            else:
                position = self._pair(position, table)
            position = self._skip(position)
        return self._found

    def _skip(self, position: int) -> int:
        found = _BLANK.match(self._text, position)
        assert found is not None
        return found.end()

    def _keys(self, position: int) -> tuple[Path, int]:
        """A dotted key, and where it ends."""
        keys: list[str | int] = []
        while found := _KEY.match(self._text, position):
            keys.append(found[1][1:-1] if found[1][0] in "\"'" else found[1])
            position = found.end()
            if self._text[position : position + 1] != ".":
                break
            position += 1
        return tuple(keys), position

    def _placed(self, keys: Path) -> Path:
        """Where a table's name leads: into the last table of each array on the way."""
        place: Path = ()
        for key in keys:
            place = (*place, key)
            if place in self._last:
                place = (*place, self._last[place])
        return place

    def _pair(self, position: int, table: Path) -> int:
        line = self._lines.of(position)
        keys, position = self._keys(position)
        place = (*table, *keys)
        self._found[place] = line
        return self._value(self._skip(position + 1), place)  # after the equals sign

    def _value(self, position: int, path: Path) -> int:
        """Take one value in. Returns where it ends."""
        for quoted in _TEXTS:
            if found := quoted.match(self._text, position):
                return found.end()
        first = self._text[position : position + 1]
        if first not in ("[", "{"):
            found = _SCALAR.match(self._text, position)
            return found.end() if found else position + 1
        number, position = 0, self._skip(position + 1)
        while self._text[position : position + 1] not in ("]", "}", ""):
            if first == "{":
                position = self._pair(position, path)
            else:
                self._found[(*path, number)] = self._lines.of(position)
                position = self._value(position, (*path, number))
                number += 1
            position = self._skip(position)
            if self._text[position : position + 1] == ",":
                position = self._skip(position + 1)
        return position + 1
