"""What the two emitters of generated codecs share: lines with their field, names, sizes, and the run rule."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from protocol.declare import Field, Message, WireType
from protocol.wire import Array, Records, String, Wire


class Emitter:
    """Collects the lines of one function, and for each line the field it works for."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.version = version
        self.flexible = version >= cls.FLEXIBLE_SINCE
        self.has_records = any_field(cls, version, Records)
        self.lines: list[str] = []
        self.paths: dict[int, str] = {}  # line number -> field, for the words of an error
        self.names: dict[str, Any] = {}
        self.indent = 0
        self._numbers: dict[str, int] = {}

    def line(self, text: str, path: str = "") -> None:
        """Add a line of source. path: the field that a decode error in this line names."""
        self.lines.append("    " * self.indent + text)
        if path:
            self.paths[len(self.lines)] = path

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        """Add a line that opens a block; lines added within are indented."""
        self.line(text)
        self.indent += 1
        yield
        self.indent -= 1

    def fresh(self, stem: str) -> str:
        """A variable name that is not used yet."""
        number = self._numbers[stem] = self._numbers.get(stem, 0) + 1
        return f"{stem}{number}"

    def method(self, verb: str, letters: str) -> str:
        """The name of a bound method of a cached Struct."""
        name = f"{verb}_{letters.replace('?', 't')}"  # t: a truth value
        self.names[name] = getattr(struct.Struct(">" + letters), verb)
        return name

    def source(self) -> str:
        """The source so far, with a newline at its end."""
        return "\n".join(self.lines) + "\n"

    def present(self, cls: type[Message]) -> list[Field]:
        """The fields of this version that stand in order, without the tagged ones."""
        return [each for each in cls.FIELDS if each.is_in(self.version) and not each.is_tagged(self.version)]

    def tagged(self, cls: type[Message]) -> list[Field]:
        """The tagged fields of this version."""
        return [each for each in cls.FIELDS if each.is_in(self.version) and each.is_tagged(self.version)]

    def length_letter(self, kind: WireType) -> str:
        """The struct letter of the length of a string, bytes or records; compact: of its first byte."""
        if self.flexible:
            return "B"  # the first byte of a varint, and nearly always the only one
        return "h" if kind is String else "i"

    def min_size(self, kind: WireType, nullable: bool = False) -> int:
        """The fewest bytes a value can take, what a claimed count is measured by."""
        if isinstance(kind, Wire):
            return kind.size or struct.calcsize(">" + self.length_letter(kind))
        if isinstance(kind, Array):
            return struct.calcsize(">" + self.length_letter(kind))
        if nullable:
            return 1
        sizes = [self.min_size(each.wire, each.is_nullable(self.version)) for each in self.present(kind)]
        return sum(sizes) + self.flexible

    def is_run(self, cls: type[Message]) -> bool:
        """Whether elements have a fixed stride as long as their one string, if any, is empty."""
        variable = [each for each in self.present(cls) if not getattr(each.wire, "letter", "")]
        return not variable or (len(variable) == 1 and variable[0].wire is String)


def any_field(cls: type[Message], version: int, kind: Wire) -> bool:
    """Whether a version of a message holds a field of this type anywhere."""
    for each in cls.FIELDS:
        if not each.is_in(version):
            continue
        inner = each.wire.element if isinstance(each.wire, Array) else each.wire
        if inner is kind or (isinstance(inner, type) and any_field(inner, version, kind)):
            return True
    return False
