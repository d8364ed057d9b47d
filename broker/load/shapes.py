"""What a field of a file may hold: the check, with near names, and the same as JSON Schema for editors."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker.load.problems import Path

    Report = Callable[[Path, str], None]

NEAR_ENOUGH: Final = 0.6
MOST_INT: Final = (1 << 63) - 1


class Shape:
    """Anything at all."""

    def __init__(self, about: str = "") -> None:
        self.about = about

    def check(self, value: Any, path: Path, report: Report) -> None:
        """Report what is wrong."""

    def schema(self) -> dict[str, Any]:
        """As JSON Schema, draft 2020-12."""
        return {"description": self.about} if self.about else {}


class Words(Shape):
    """A text, perhaps one of a few: these in any case, with - for _."""

    def __init__(self, about: str = "", choices: Collection[str] = (), *, may_be_empty: bool = False) -> None:
        super().__init__(about)
        self.choices = tuple(choices)
        self._may_be_empty = may_be_empty

    def check(self, value: Any, path: Path, report: Report) -> None:
        if not isinstance(value, str):
            quoted = ": write it in quotes" if isinstance(value, (int, float)) else ""
            report(path, f"takes a text, not {_kind(value)}{quoted}")
        elif not value and not self._may_be_empty:
            report(path, "is empty")
        elif self.choices and plain(value) not in map(plain, self.choices):
            report(path, f"takes one of {', '.join(self.choices)}, not {value:.60}{did_you_mean(value, self.choices)}")

    def schema(self) -> dict[str, Any]:
        more: dict[str, Any] = {"enum": list(self.choices)} if self.choices else {}
        if not self.choices and not self._may_be_empty:
            more["minLength"] = 1
        return {**super().schema(), "type": "string", **more}


class Whole(Shape):
    """A whole number."""

    def __init__(self, about: str = "", least: int = 0, most: int = MOST_INT) -> None:
        super().__init__(about)
        self._least, self._most = least, most

    def check(self, value: Any, path: Path, report: Report) -> None:
        if type(value) is not int:
            report(path, f"takes a whole number, not {_kind(value)}")
        elif not self._least <= value <= self._most:
            limit = f"at least {self._least}" if value < self._least else f"at most {self._most}"
            report(path, f"takes {limit}, not {value}")

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "type": "integer", "minimum": self._least, "maximum": self._most}


class Number(Shape):
    """A number above 0."""

    def check(self, value: Any, path: Path, report: Report) -> None:
        if type(value) not in (int, float):
            report(path, f"takes a number, not {_kind(value)}")
        elif value <= 0:
            report(path, f"takes more than 0, not {value}")

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "type": "number", "exclusiveMinimum": 0}


class Flag(Shape):
    """True or false."""

    def check(self, value: Any, path: Path, report: Report) -> None:
        if type(value) is not bool:
            report(path, f"takes true or false, not {_kind(value)}")

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "type": "boolean"}


class _Of(Shape):
    """What holds any number of one shape."""

    def __init__(self, item: Shape, about: str = "") -> None:
        super().__init__(about)
        self._item = item


class Items(_Of):
    """A list of one shape."""

    def check(self, value: Any, path: Path, report: Report) -> None:
        if not isinstance(value, list):
            report(path, f"takes a list, not {_kind(value)}")
            return
        for number, each in enumerate(value):
            self._item.check(each, (*path, number), report)

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "type": "array", "items": self._item.schema()}


class Names(_Of):
    """An object of any names, and one shape."""

    def check(self, value: Any, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report(path, f"takes an object, not {_kind(value)}")
            return
        for name, each in value.items():
            self._item.check(each, (*path, name), report)

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "type": "object", "additionalProperties": self._item.schema()}


class Fields(Shape):
    """An object of certain fields.

    needed   those that must be there.
    one_of   sets of names, of each of which one must be there.
    """

    def __init__(
        self, about: str, needed: Collection[str] = (), one_of: Collection[Collection[str]] = (), **fields: Shape
    ) -> None:
        super().__init__(about)
        self.fields = {name.removesuffix("_").replace("__", "$"): shape for name, shape in fields.items()}
        self._needed, self._one_of = tuple(needed), tuple(map(tuple, one_of))

    def and_more(self, **fields: Shape) -> Fields:
        """The same with more fields."""
        made = Fields(self.about, self._needed, self._one_of, **fields)
        made.fields = {**self.fields, **made.fields}
        return made

    def check(self, value: Any, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report(path, f"takes an object, not {_kind(value)}")
            return
        for name, each in value.items():
            if name in self.fields:
                self.fields[name].check(each, (*path, name), report)
            else:
                known = did_you_mean(name, self.fields) or f" There are {', '.join(self.fields)}."
                report((*path, name), f"no such field.{known}")
        for name in self._needed:
            if name not in value:
                report(path, f'"{name}" is missing')
        for names in self._one_of:
            if not any(name in value for name in names):
                report(path, f"one of {', '.join(names)} is missing")

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {**super().schema(), "type": "object", "additionalProperties": False}
        found["properties"] = {name: shape.schema() for name, shape in self.fields.items()}
        if self._needed:
            found["required"] = list(self._needed)
        if self._one_of:
            found["allOf"] = [{"anyOf": [{"required": [name]} for name in names]} for names in self._one_of]
        return found


class Scalar(Shape):
    """A text, a number, true or false: what a setting of Kafka may be written as."""

    def check(self, value: Any, path: Path, report: Report) -> None:
        if not isinstance(value, (str, int, float)):
            report(path, f"takes a text, a number, true or false, not {_kind(value)}")

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "type": ["string", "number", "boolean"]}


class Either(Shape):
    """One of two shapes, told apart by the type of the value."""

    def __init__(self, about: str, shapes: dict[type, Shape], says: str) -> None:
        super().__init__(about)
        self._shapes = shapes
        self._says = says

    def check(self, value: Any, path: Path, report: Report) -> None:
        shape = self._shapes.get(type(value))
        if shape is None:
            report(path, f"takes {self._says}, not {_kind(value)}")
        else:
            shape.check(value, path, report)

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "anyOf": [shape.schema() for shape in self._shapes.values()]}


def plain(word: str) -> str:
    """A word of a few, as it is compared."""
    return word.lower().replace("-", "_")


def did_you_mean(name: str, known: Collection[str]) -> str:
    """A question to end a sentence with; "" where nothing is near."""
    found = get_close_matches(plain(name), known, 1, NEAR_ENOUGH)
    return f" Did you mean {found[0]}?" if found else ""


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), f"a {type(value).__name__}")
