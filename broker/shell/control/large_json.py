"""Reads JSON of any length in slices, so that others have their turn between them, and lets go of it in slices.

Python's own scanner reads whatever ends within PIECE characters; lists, objects and texts that are longer are gone
through here. So no slice takes much longer than a millisecond, whatever the text holds. What a text makes is counted
while it is made: a list of two characters takes 64 bytes of memory.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Generator
from json.decoder import scanstring  # type: ignore[attr-defined]  # the decoder's own, which its stubs leave out
from typing import Any, Final, NoReturn

PIECE: Final = 16_384  # characters that are read at once, and the work of a slice
ITEM: Final = 64  # characters that take as long as what an item takes beside its own
MOST_VALUES: Final = 1_000_000  # of a text: items of lists and members of objects
MOST_NAMES: Final = 100_000  # of an object: one of a million is copied for 20 ms when it grows
MOST_DEPTH: Final = 100  # of lists and objects within each other that are longer than PIECE
MARGIN: Final = 16  # characters of which a piece may lack the end of an escape

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TEXTS: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_INSIDE: Final = re.compile(r'[^"\\\x00-\x1f]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\\x00-\x1f]*+)*+')
_HALF_PAIR: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_scan: Final = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # as above

Slices = Generator[None, None, Any]
Long = list[Any] | dict[str, Any]


class LargeJson:
    """One text.

    data   in UTF-8, or another encoding that json.loads knows.
    """

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = memoryview(data)
        self._given = 0  # bytes of it
        self._decoder = codecs.getincrementaldecoder(json.detect_encoding(bytes(data[:4])))("surrogatepass")
        self._text = ""  # what was decoded, from which on it is not read
        self._at = 0
        self._before = 0  # characters that were dropped
        self._values = 0
        self._spent = 0  # work of this slice
        self._long: list[Long] = []  # what is longer than PIECE, the outermost first
        self._outer: list[int] = []  # for each of them the number of the one that it is in; -1: none
        self._inside: list[Long] = []  # those of them that have not ended
        self._numbers: list[int] = []  # of those

    def reading(self) -> Slices:
        """Read it. Returns the value. Errors: ValueError: it is no JSON, or makes too much."""
        root: Any = None
        name = ""
        inside = self._inside
        is_first, wants_value = True, True  # in a list or object; next comes a value, or else a comma or the end
        while True:
            yield from self._skip()
            first = self._text[self._at : self._at + 1]
            if inside and first == "]}"[isinstance(inside[-1], dict)] and (is_first or not wants_value):
                self._at += 1
                inside.pop()
                self._numbers.pop()
                is_first = wants_value = False
            elif wants_value:
                if inside and isinstance(inside[-1], dict):
                    name = yield from self._name(inside[-1])
                is_short, value = self._short()
                if not is_short and self._text[self._at] == '"':
                    is_short, value = True, (yield from self._string())
                if not inside:
                    root = value
                elif isinstance(inside[-1], dict):
                    inside[-1][name] = value
                else:
                    inside[-1].append(value)
                if not is_short:
                    self._at += 1
                    self._open(value)
                is_first, wants_value = not is_short, not is_short
            elif not inside:
                if first:
                    self._refuse("there is more after its end")
                return root
            elif first == ",":
                self._at += 1
                wants_value = True
            else:
                self._refuse("a comma or an end is missing")
            if self._work(ITEM):
                yield

    def freeing(self) -> Slices:
        """Empty what no other code has, so that it is not taken apart at once when its last owner goes.

        What is in something that other code has stays as it is.
        """
        self._inside.clear()
        is_free: list[bool] = []
        for number, outer in enumerate(self._outer):
            # Its owners: the list, whoever asks here, and what it is in.
            is_alone = sys.getrefcount(self._long[number]) <= 2 + (outer >= 0)
            is_free.append(is_alone and (outer < 0 or is_free[outer]))
        while self._long:
            each = self._long.pop()
            while is_free[-1] and each:
                each.pop() if isinstance(each, list) else each.popitem()
                if self._work(ITEM):
                    yield
            is_free.pop()

    def _work(self, characters: int) -> bool:
        """Count work. Returns whether it was enough for a slice."""
        self._spent += characters
        if self._spent < PIECE:
            return False
        self._spent = 0
        return True

    @property
    def _is_all(self) -> bool:
        """Whether all of the text was decoded."""
        return self._given == len(self._data)

    def _fill(self) -> None:
        """Decode until PIECE characters are there, or all that are left."""
        while len(self._text) - self._at < PIECE + MARGIN and not self._is_all:
            piece = self._data[self._given : self._given + PIECE]
            self._given += len(piece)
            self._before += self._at
            self._text = self._text[self._at :] + self._decoder.decode(piece, self._is_all)
            self._at = 0

    def _skip(self) -> Generator[None, None, None]:
        """Pass over white space."""
        while True:
            self._fill()
            found = _SPACE.match(self._text, self._at)
            assert found is not None
            is_full = self._work(found.end() - self._at)
            self._at = found.end()
            if self._at < len(self._text) or self._is_all:
                return
            if is_full:
                yield

    def _short(self) -> tuple[bool, Any]:
        """Whether the value here ends within a piece, and the value; else an empty one of what it is."""
        self._fill()
        first = self._text[self._at : self._at + 1]
        try:
            value, end = _scan(self._text, self._at)
        except RecursionError:
            self._refuse("it is nested too deeply")
        except (StopIteration, json.JSONDecodeError) as error:
            self._spent += len(self._text) - self._at
            if self._is_all or first not in ("[", "{", '"'):
                self._refuse(str(getattr(error, "msg", "a value is missing")))
        else:
            if end == len(self._text) and not self._is_all and first not in ("[", "{", '"'):
                self._refuse(f"a number has more than {PIECE} digits")
            text = _TEXTS.sub("", self._text[self._at : end]) if first in ("[", "{") else ""
            self._count(1 + text.count(",") + text.count("[") + text.count("{"))
            self._spent += end - self._at
            self._at = end
            return True, value
        self._count(1)
        return False, {} if first == "{" else []

    def _open(self, made: Long) -> None:
        """What comes next is in this one."""
        if len(self._inside) == MOST_DEPTH:
            self._refuse("it is nested too deeply")
        self._outer.append(self._numbers[-1] if self._numbers else -1)
        self._numbers.append(len(self._long))
        self._long.append(made)
        self._inside.append(made)

    def _name(self, made: dict[str, Any]) -> Generator[None, None, str]:
        """Read the name of a member, up to its value."""
        if self._text[self._at : self._at + 1] != '"':
            self._refuse("a name in double quotes is missing")
        if len(made) == MOST_NAMES:
            self._refuse(f"an object has more than {MOST_NAMES} names")
        try:
            name, self._at = scanstring(self._text, self._at + 1, True)
        except json.JSONDecodeError as error:
            self._refuse(error.msg if self._is_all else f"a name has more than {PIECE} characters, or {error.msg}")
        yield from self._skip()
        if self._text[self._at : self._at + 1] != ":":
            self._refuse("a colon is missing")
        self._at += 1
        yield from self._skip()
        return str(name)

    def _string(self) -> Generator[None, None, str]:
        """Read a text that is longer than a piece."""
        self._at += 1
        pieces = []
        while True:
            self._fill()
            found = _INSIDE.match(self._text, self._at)
            assert found is not None
            end = found.end()
            is_end = self._text[end : end + 1] == '"'
            if not is_end:
                if self._is_all or end < len(self._text) - MARGIN:
                    self._refuse("a text has no end, or an escape or control character that JSON has not")
                if _HALF_PAIR.search(self._text, max(self._at, end - 6), end):
                    end -= 6
            try:
                pieces.append(scanstring(f'{self._text[self._at : end]}"', 0, True)[0])
            except json.JSONDecodeError as error:
                self._refuse(error.msg)
            is_full = self._work(end - self._at)
            self._at = end + is_end
            if is_end:
                return "".join(pieces)
            if is_full:
                yield

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > MOST_VALUES:
            self._refuse(f"it has more than {MOST_VALUES} values")

    def _refuse(self, why: str) -> NoReturn:
        """Errors: ValueError."""
        raise ValueError(f"{why} (character {self._before + self._at})") from None
