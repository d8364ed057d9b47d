"""A condition on a JSON value: a path, and what it is compared with. `$.order.items[0].name == "coffee"`.

    $            the value                  .name ["name"]   a field of an object
    [2]          an item of a list          .* [*]           each field, or each item

After it ==, !=, <, <=, >, >= with a JSON value, or ~ with a text that is part of it; alone: the path is there. A word
that is no JSON is a text: `$.name == coffee`. Numbers compare with numbers, texts with texts. Source: the paths of
RFC 9535, as far as they name one step after the other.
"""

from __future__ import annotations

import json
import math
import operator
import os
import re
from collections.abc import Callable, Iterator
from itertools import compress
from typing import Any, Final, TypeVar

_MARK: Final = os.urandom(8).hex()  # of this process: no message that it reads was written for it
_BETWEEN: Final = f',"{_MARK}",'.encode()
ANY: Final = None  # the step to each field, or to each item
_raw_decode: Final = json.JSONDecoder().raw_decode
_STEP: Final = re.compile(r"""\.(?:(\*)|([^\s.\[\]=!<>~"']+))|\[\s*(?:(\*)|(\d{1,9})|("(?:[^"\\]|\\.)*"))\s*\]""")
_REST: Final = re.compile(r"\s*(==|!=|<=|>=|=(?!=)|<|>|~)\s*(.+?)\s*", re.DOTALL)
_PLAIN: Final = re.compile(r"[\w./@#-]+")
_OF_FLOATS: Final = re.compile(r"[0-9.e+-]+|-?I?n?f?i?n?i?t?y?|N?a?N?")  # what may be part of one as Python writes it
_FLOATS: Final = re.compile(rb"[:\[,][\s\0]*-?\0*[0-9][0-9\0]*[.eE]")  # may be written in many ways; \0: in UTF-16
_ANYTHING: Final = re.compile(b"")
_WIDE: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")  # what else JSON is read in
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Step = str | int | None
_Found = TypeVar("_Found")


class Condition:
    """A path and a comparison. Errors: ValueError: the text is none."""

    __slots__ = ("_anyhow", "_floats", "_is_branching", "_literals", "_numbers", "operator", "steps", "wanted")

    def __init__(self, text: str) -> None:
        text = text.strip()
        if not text.startswith("$"):
            raise ValueError(f"a path begins with $, as in $.order.item, not {text:.40}")
        at, steps = 1, list[Step]()
        while found := _STEP.match(text, at):
            at = found.end()
            _, name, _, index, quoted = found.groups()
            steps.append(name if name is not None else int(index) if index else json.loads(quoted) if quoted else ANY)
        self.steps = tuple(steps)
        self.operator = ""
        self.wanted: Any = None
        if at < len(text):
            rest = _REST.fullmatch(text, at)
            if rest is None:
                raise ValueError(f"after {text[:at]:.60} there may be ==, !=, <, <=, >, >= or ~, not {text[at:]:.40}")
            self.operator, self.wanted = rest[1].replace("=", "==") if rest[1] == "=" else rest[1], _value(rest[2])
            if self.operator == "~":
                self.wanted = self.wanted if isinstance(self.wanted, str) else rest[2]

        self._is_branching = ANY in steps
        self._literals = self._written()
        self._anyhow = self._written_otherwise()
        self._numbers = self._of_numbers()
        self._floats = self._of_floats()

    def _written(self) -> list[bytes]:
        """What stands in each JSON text that fits, unless it is written with escapes, or in another encoding."""
        found = [json.dumps(step, ensure_ascii=False) for step in self.steps if isinstance(step, str)]
        if self.operator == "==" and (self.wanted is None or isinstance(self.wanted, (str, bool))):
            found.append(json.dumps(self.wanted, ensure_ascii=False))
        elif self.operator == "~" and _PLAIN.fullmatch(self.wanted):
            found.append(self.wanted)
        return [each.encode(errors="surrogatepass") for each in found if "\\" not in each]

    def _written_otherwise(self) -> list[bytes]:
        """One of these stands in a JSON text that fits, but without all that is `_written`."""
        slashes = any(b"/" in each for each in self._literals)
        escapes = ["\\u", "\\/"] if slashes else ["\\u"]
        first = [each.decode(errors="surrogatepass") for each in self._literals[:1]]
        wide = [each.encode(name, "surrogatepass") for each in [*escapes, *first] for name in _WIDE]
        return [*(each.encode() for each in escapes), *wide]

    def _named(self, numbers: bytes) -> re.Pattern[bytes] | None:
        """Finds what the last name is given; None: the last step is no name, or one that is written with escapes."""
        last = self.steps[-1] if self.steps else None
        name = json.dumps(last, ensure_ascii=False).encode(errors="surrogatepass") if isinstance(last, str) else b"\\"
        return None if b"\\" in name else re.compile(re.escape(name) + rb"\s*:\s*" + numbers)

    def _of_numbers(self) -> re.Pattern[bytes] | None:
        """Finds the numbers of the last name, where it is a number that is compared."""
        if not _is_number(self.wanted) or self.operator not in ("==", *_COMPARE):
            return None
        return self._named(rb"(-?(?:[0-9][0-9.eE+-]*|Infinity))")

    def _of_floats(self) -> re.Pattern[bytes] | None:
        """Finds numbers that may be written in many ways, where a part of one may be what is looked for."""
        if self.operator != "~" or not _OF_FLOATS.fullmatch(self.wanted):
            return None
        return self._named(rb"(?:[\[{]|-?[0-9]+[.eE])") or (_FLOATS if self.steps else _ANYTHING)

    def may_be_in(self, data: bytes) -> bool:
        """Whether a value, or one in the records of a batch, can fit, by its bytes alone: most are done with that."""
        for each in self._literals:
            if each not in data:
                return self._is_written_otherwise(data)
        if self._numbers is None:
            return True
        compare: Callable[[Any, Any], bool] = _COMPARE.get(self.operator, operator.eq)
        return any(compare(_number(each), self.wanted) for each in self._numbers.findall(data)) or (
            self._is_written_otherwise(data)
        )

    def _is_written_otherwise(self, data: bytes) -> bool:
        if any(each in data for each in self._anyhow):
            return True
        return self._floats is not None and self._floats.search(data) is not None

    def fits(self, data: bytes | None) -> bool:
        """Whether bytes are JSON that the condition holds for."""
        if data is None or not self.may_be_in(data):
            return False
        try:
            value = _parsed(data)
        except (ValueError, RecursionError):
            return False
        if self._is_branching:
            return any(self._holds(each) for each in _reached(value, self.steps))
        for step in self.steps:
            if isinstance(step, str):
                if type(value) is not dict or step not in value:
                    return False
            elif not isinstance(step, int) or type(value) is not list or step >= len(value):
                return False
            value = value[step]
        return self._holds(value)

    def fitting(self, values: list[bytes | None]) -> list[int] | None:
        """The indices of those that `fits` says yes to; None: ask it for each, not all of them are plain JSON."""
        kept = [at for at, data in enumerate(values) if data is not None]
        found: list[bytes] = [data for data in values if data is not None]
        for each in self._literals:
            has = [each in data for data in found]
            if not all(has):
                if self._is_written_otherwise(_BETWEEN.join(found)):
                    break
                kept, found = _those(kept, found, has)
        parsed = _parsed_as_one(found)
        if parsed is None:
            return None
        if self._is_branching:
            fits = [any(self._holds(each) for each in _reached(value, self.steps)) for value in parsed]
            return _those(kept, parsed, fits)[0]
        for step in self.steps:
            kind = dict if isinstance(step, str) else list
            kept, parsed = _those(kept, parsed, [type(value) is kind for value in parsed])
            try:
                parsed = [value[step] for value in parsed]
            except (KeyError, IndexError):
                kept, parsed = _those(kept, parsed, [_has(value, step) for value in parsed])
                parsed = [value[step] for value in parsed]
        wanted = self.wanted
        if self.operator == "!=" and isinstance(wanted, str):  # nothing else is the same as a text
            return [at for at, value in zip(kept, parsed, strict=True) if value != wanted]
        return [at for at, value in zip(kept, parsed, strict=True) if self._holds(value)]

    def _holds(self, value: Any) -> bool:
        wanted = self.wanted
        if not self.operator:
            return True
        if self.operator == "~":
            return wanted in (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if self.operator in ("==", "!="):
            return _is_same(value, wanted) == (self.operator == "==")
        if not (_is_number(value) and _is_number(wanted)) and not (isinstance(value, str) and isinstance(wanted, str)):
            return False
        return _COMPARE[self.operator](value, wanted)


def _parsed(data: bytes) -> Any:
    """What JSON says. Errors: ValueError, RecursionError."""
    try:
        text = data.decode()
        value, end = _raw_decode(text)
        if end == len(text):
            return value
    except ValueError:
        pass
    return json.loads(data)  # with blanks around it, UTF-16, or a mark at its beginning: two times slower


def _parsed_as_one(values: list[bytes]) -> list[Any] | None:
    """What each of them says, a third faster than one by one; None: not all of them are plain JSON.

    Between the values stands a text that none of them can hold: there are as many of it as there were put,
    so where every second item of the list is one, no value ends another's list, text or object.
    """
    try:
        text = b"".join((b"[", _BETWEEN.join(values), b"]")).decode()
        found, end = _raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if end != len(text) or found[1::2] != [_MARK] * (len(values) - 1):
        return None
    items: list[Any] = found[::2]
    return items


def _those(kept: list[int], found: list[_Found], fits: list[bool]) -> tuple[list[int], list[_Found]]:
    return (kept, found) if all(fits) else (list(compress(kept, fits)), list(compress(found, fits)))


def _has(value: Any, step: Step) -> bool:
    return step in value if isinstance(step, str) else isinstance(step, int) and step < len(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _number(text: bytes) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return math.nan  # no JSON


def _reached(value: Any, steps: tuple[Step, ...]) -> Iterator[Any]:
    for at, step in enumerate(steps):
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return
            value = value[step]
        elif isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return
            value = value[step]
        else:
            for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
                yield from _reached(each, steps[at + 1 :])
            return
    yield value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_same(one: Any, other: Any) -> bool:
    """As JSON has it: true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
