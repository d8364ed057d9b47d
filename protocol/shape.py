"""Finds the fields of a message that differ from one message to the next, and the bytes between them that do not.

A client asks the same thing again and again: from one OffsetCommit to the next only offsets and leader epochs change.
`Shape` names such fields of a declared message; `Shape.cut` finds them in the bytes of one message, by walking its
declaration. The Cut that it returns reads a later message of the same form by one comparison and one struct call, and
writes one alike. So nothing about the layout of a message is written down beside its declaration.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as StructError  # noqa: N812  # the name that other modules give it
from typing import Any, Final

from protocol.declare import Field, Message
from protocol.wire import Array, Bytes, Records, String, Wire

MOST_ELEMENTS: Final = 10_000  # of all arrays of a message: a longer one is not worth a Cut
_Group = tuple[int, int, str]  # where neighbouring fields that differ begin and end, and their struct letters


class Cut:
    """Where a message has fields that differ. The bytes before the first of them are the `prefix`.

    A run is: one group of fields that differ, the same bytes, one group, the same bytes, ... to the end. `unpack(data,
    end of the prefix)` returns them all: of `width` fields a group, `fields[0::width + 1]` are the first ones of each
    group, and `fields[width::width + 1]` must be equal to `statics`. `pack` takes the same sequence.
    """

    __slots__ = ("pack", "prefix", "size", "statics", "unpack", "width")

    def __init__(self, data: bytes, start: int, stop: int, groups: list[_Group]) -> None:
        width = len(groups[0][2]) if groups else 0
        if any(len(letters) != width for _, _, letters in groups):
            groups, width = _singles(groups), 1
        self.width = width
        self.prefix = data[start : groups[0][0] if groups else stop]
        layout, statics = [">"], []
        for at, (_, end, letters) in enumerate(groups):
            static = data[end : groups[at + 1][0] if at + 1 < len(groups) else stop]
            layout.append(f"{letters}{len(static)}s")
            statics.append(static)
        run = Struct("".join(layout))
        self.statics = tuple(statics)
        self.unpack: Callable[..., tuple[Any, ...]] = run.unpack_from
        self.pack: Callable[..., bytes] = run.pack
        self.size = len(self.prefix) + run.size


class OpenCut:
    """Where a message has one field of bytes of any length: between `prefix`, with its length after it, and `tail`."""

    __slots__ = ("prefix", "tail")

    def __init__(self, prefix: bytes, tail: bytes) -> None:
        self.prefix = prefix
        self.tail = tail


class Shape:
    """Names the fields of a message that differ from one message to the next.

    cls       a request or a response.
    varying   their names, wherever they are in the message; of fixed size.
    """

    def __init__(self, cls: type[Message], *varying: str) -> None:
        self.cls = cls
        self.varying = frozenset(varying)
        missing = self.varying - {each.name for each in _all_fields(cls)}
        if missing:
            raise ValueError(f"{cls.__name__} has no field {', '.join(sorted(missing))}")

    def cut(self, data: bytes, start: int, stop: int, version: int, *, header: str) -> Cut:
        """Find the fields in the bytes of one message.

        header  what stands between `start` and the message: "request" (the client id, and tags), "tags" or "".
        Errors: ValueError: the message has a length that is not there, or more elements than MOST_ELEMENTS.
        """
        walk = _Walk(self, data, start, stop, version)
        walk.header(header)
        walk.message(self.cls)
        return Cut(data, start, stop, walk.groups)


class OpenShape:
    """Names the one field of bytes of a request that differs, as the records of a Produce with one partition."""

    def __init__(self, cls: type[Message], field: str) -> None:
        self.cls = cls
        self.field = field

    def cut(self, data: bytes, start: int, stop: int, version: int, *, header: str) -> OpenCut:
        """Find the field. Errors: ValueError: it is not there exactly once, or null."""
        walk = _Walk(Shape(self.cls), data, start, stop, version)
        walk.open_field = self.field
        walk.header(header)
        walk.message(self.cls)
        if walk.opened is None:
            raise ValueError(f"no {self.field}, or several")
        prefix_end, _, end = walk.opened
        return OpenCut(data[start:prefix_end], data[end:stop])


def _all_fields(cls: type[Message]) -> list[Field]:
    found = list(cls.FIELDS)
    for each in cls.FIELDS:
        inner = each.wire.element if isinstance(each.wire, Array) else each.wire
        if isinstance(inner, type):
            found += _all_fields(inner)
    return found


def _singles(groups: list[_Group]) -> list[_Group]:
    """One field a group, with no bytes between those that were neighbours."""
    found: list[_Group] = []
    for start, _, letters in groups:
        for letter in letters:
            size = Struct(f">{letter}").size
            found.append((start, start + size, letter))
            start += size
    return found


class _Walk:
    """One pass over a message's bytes by its declaration. It makes no objects of what it passes."""

    def __init__(self, shape: Shape, data: bytes, start: int, stop: int, version: int) -> None:
        self._varying = shape.varying
        self._data = data
        self._stop = stop
        self._version = version
        self._flexible = version >= shape.cls.FLEXIBLE_SINCE
        self._elements = 0
        self.at = start
        self.groups: list[_Group] = []
        self.open_field = ""
        self.opened: tuple[int, int, int] | None = None

    def header(self, kind: str) -> None:
        """Pass the header of a request or response after its correlation id."""
        if kind == "request":
            self._pass(max(0, self._fixed("h")))
        if kind and self._flexible:
            self._tags()

    def message(self, cls: type[Message]) -> None:
        """Pass all fields of a message."""
        for each in cls.FIELDS:
            if each.is_in(self._version) and not each.is_tagged(self._version):
                self._field(each)
        if self._flexible:
            self._tags()

    def _field(self, field: Field) -> None:
        wire = field.wire
        if isinstance(wire, Wire) and wire.letter:
            start = self.at
            self._pass(wire.size)
            if field.name in self._varying:
                self._vary(start, wire.letter)
        elif isinstance(wire, Wire):
            if field.name == self.open_field:
                self._open()
            else:
                self._sized(wire)
        elif isinstance(wire, Array):
            self._array(wire)
        else:
            if field.is_nullable(self._version) and self._fixed("b") < 0:
                return
            self.message(wire)

    def _vary(self, start: int, letter: str) -> None:
        if self.groups and self.groups[-1][1] == start:
            begin, _, letters = self.groups.pop()
            self.groups.append((begin, self.at, letters + letter))
        else:
            self.groups.append((start, self.at, letter))

    def _open(self) -> None:
        if self.opened is not None:
            raise ValueError("there are several")
        prefix_end = self.at
        size = self._length(4)
        if size < 0:
            raise ValueError("null")
        begin = self.at
        self._pass(size)
        self.opened = prefix_end, begin, self.at

    def _array(self, wire: Array[Any]) -> None:
        count = self._length(4)
        self._elements += max(0, count)
        if self._elements > MOST_ELEMENTS:
            raise ValueError("too many elements")
        element = wire.element
        for _ in range(count):
            if not isinstance(element, Wire):
                self.message(element)
            elif element.letter:
                self._pass(element.size)
            else:
                self._sized(element)

    def _sized(self, wire: Wire) -> None:
        assert wire is String or wire is Bytes or wire is Records
        self._pass(max(0, self._length(2 if wire is String else 4)))

    def _length(self, old_bytes: int) -> int:
        """The length of an array, string or bytes; -1: null."""
        if self._flexible:
            return self._uvarint() - 1
        return self._fixed("h" if old_bytes == 2 else "i")

    def _fixed(self, letter: str) -> int:
        struct = Struct(f">{letter}")
        start = self.at
        self._pass(struct.size)
        try:
            value: int = struct.unpack_from(self._data, start)[0]
        except StructError as error:
            raise ValueError(str(error)) from None
        return value

    def _uvarint(self) -> int:
        value = shift = 0
        while shift < 32:
            self._pass(1)
            byte = self._data[self.at - 1]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ValueError("a varint of more than five bytes")

    def _tags(self) -> None:
        for _ in range(self._uvarint()):
            self._uvarint()
            self._pass(self._uvarint())

    def _pass(self, size: int) -> None:
        self.at += size
        if self.at > self._stop:
            raise ValueError("too short")
