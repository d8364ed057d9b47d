"""Construct atoms for Kafka's wire types, and the construct of a declared message.

This is the codec to read. It explains malformed frames, shows frames as trees and serves `--codec construct`; a broker
otherwise runs the functions of `protocol.codegen`, which tests prove equal to it. Pass `trace=` a Trace to `parse` and
it notes where each field is.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import construct
from construct import Adapter, Construct, Renamed, Struct, Subconstruct, stream_read, stream_write

from protocol import wire
from protocol.codec_support import MOST_ELEMENTS, MOST_TAGS
from protocol.declare import Field, Message, WireType

TAGGED = "tagged_fields"  # what the parts of a Struct that hold tagged fields are called
_STRING_MAX_BYTES = 0x7FFF


class UnreadableError(construct.ConstructError):  # type: ignore[misc]  # construct has no types
    """Bytes that do not fit their declaration: at which byte, what was expected there and what was found."""

    def __init__(self, position: int, expected: str, found: str) -> None:
        super().__init__(f"at byte {position}: expected {expected}, {found}")
        self.position = position
        self.expected = expected
        self.found = found


def _read(stream: Any, size: int, expected: str) -> bytes:
    """All of `size` bytes. Errors: UnreadableError: fewer are left."""
    position = stream.tell()
    data: bytes = stream.read(size)
    if len(data) != size:
        raise UnreadableError(position, expected, _are_left(len(data)))
    return data


def _are_left(size: int) -> str:
    return "1 is left" if size == 1 else f"{size} are left"


def _left(stream: Any) -> int:
    """How many bytes follow."""
    position: int = stream.tell()
    end: int = stream.seek(0, 2)
    stream.seek(position)
    return end - position


class _Fixed(Subconstruct):  # type: ignore[misc]  # construct has no types
    """A value of a fixed size."""

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        position = stream.tell()
        try:
            return self.subcon._parsereport(stream, context, path)
        except construct.StreamError:
            size = self.subcon.sizeof()
            left = stream.tell() - position
            raise UnreadableError(position, f"{size} byte{'s' * (size > 1)}", _are_left(left)) from None


class _UnsignedVarint(Construct):  # type: ignore[misc]  # construct has no types
    """Seven bits a byte, lowest first; at most 31 bits, as every length and tag in Kafka is a Java int."""

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        position = stream.tell()
        value = 0
        for shift in range(0, 35, 7):
            byte = _read(stream, 1, "a byte of a varint")[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0x7FFFFFFF:
                    break
                return value
        raise UnreadableError(position, "a varint of at most 31 bits", "found a longer one")

    def _build(self, obj: int, stream: Any, context: Any, path: str) -> int:
        rest = obj
        while rest > 0x7F:
            stream_write(stream, bytes([rest & 0x7F | 0x80]), 1, path)
            rest >>= 7
        stream_write(stream, bytes([rest]), 1, path)
        return obj


UnsignedVarint = _UnsignedVarint()


class _Length(Adapter):  # type: ignore[misc]  # construct has no types
    """A varint that stands for length + 1, so that 0 can stand for null (-1)."""

    def _decode(self, obj: int, context: Any, path: str) -> int:
        return obj - 1

    def _encode(self, obj: int, context: Any, path: str) -> int:
        return obj + 1


CompactLength = _Length(UnsignedVarint)

FIXED: dict[str, Construct] = {
    "Bool": _Fixed(construct.Flag),
    "Int8": _Fixed(construct.Int8sb),
    "Int16": _Fixed(construct.Int16sb),
    "UInt16": _Fixed(construct.Int16ub),
    "Int32": _Fixed(construct.Int32sb),
    "UInt32": _Fixed(construct.Int32ub),
    "Int64": _Fixed(construct.Int64sb),
    "Float64": _Fixed(construct.Float64b),
    "Uuid": _Fixed(construct.Bytes(16)),
}


class Prefixed(Construct):  # type: ignore[misc]  # construct has no types
    """Bytes after a length; a negative length is null."""

    def __init__(self, length: Construct, *, nullable: bool, text: bool) -> None:
        super().__init__()
        self.length = length
        self.nullable = nullable
        self.text = text

    def _parse(self, stream: Any, context: Any, path: str) -> str | bytes | None:
        position = stream.tell()
        size = self.length._parse(stream, context, path)
        if size < 0:
            if self.nullable:
                return None
            raise UnreadableError(position, "a string" if self.text else "bytes", f"found null (length {size})")
        if self.text and size > _STRING_MAX_BYTES:
            raise UnreadableError(position, f"a string of at most {_STRING_MAX_BYTES} bytes", f"found length {size}")
        data = _read(stream, size, f"{size} bytes of a {'string' if self.text else 'value'}")
        return data.decode("utf-8", "replace") if self.text else data

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None:
            self.length._build(-1, stream, context, path)
            return None
        if hasattr(obj, "read"):  # a slice of a segment file, which a stream of parts takes as it is
            self.length._build(len(obj), stream, context, path)
            stream.add(obj)
            return obj
        data = obj.encode() if self.text else bytes(obj)
        self.length._build(len(data), stream, context, path)
        stream_write(stream, data, len(data), path)
        return obj


class Counted(Construct):  # type: ignore[misc]  # construct has no types
    """Elements after their count; a negative count is null."""

    def __init__(self, count: Construct, element: Construct, kind: str, *, nullable: bool) -> None:
        super().__init__()
        self.count = count
        self.element = element
        self.kind = kind
        self.nullable = nullable

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any] | None:
        position = stream.tell()
        count = self.count._parse(stream, context, path)
        if count < 0:
            if self.nullable:
                return None
            raise UnreadableError(position, "an array", f"found null (count {count})")
        left = _left(stream)
        if count > left:  # an element has a byte at least: believe no count that cannot be true
            raise UnreadableError(position, f"at most {left} elements, as many bytes are left", f"found count {count}")
        if count > MOST_ELEMENTS:
            raise UnreadableError(position, f"at most {MOST_ELEMENTS} elements", f"found count {count}")
        trace = context._params.get("trace")
        if trace is None:
            return [self.element._parse(stream, context, path) for _ in range(count)]
        found = []
        for at in range(count):
            trace.enter(f"[{at}]", self.kind, stream.tell())
            found.append(self.element._parse(stream, context, path))
            trace.leave(found[-1], stream.tell())
        return found

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.count._build(-1 if obj is None else len(obj), stream, context, path)
        for each in obj or ():
            self.element._build(each, stream, context, path)
        return obj


class Optional(Construct):  # type: ignore[misc]  # construct has no types
    """A nested message after a number: 1 when it is there, the number for null (or below) when it is not."""

    def __init__(self, inner: Construct, number: Construct, null: int) -> None:
        super().__init__()
        self.inner = inner
        self.number = number
        self.null = null

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        there = self.number._parse(stream, context, path) > self.null
        return self.inner._parse(stream, context, path) if there else None

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.number._build(self.null if obj is None else 1, stream, context, path)
        if obj is not None:
            self.inner._build(obj, stream, context, path)
        return obj


class Named(Renamed):  # type: ignore[misc]  # construct has no types
    """A named part of a Struct, which a trace notes."""

    def __init__(self, name: str, kind: str, subcon: Construct) -> None:
        super().__init__(subcon, newname=name)
        self.kind = kind

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        trace = context._params.get("trace")
        if trace is None:
            return self.subcon._parsereport(stream, context, path)
        trace.enter(self.name, self.kind, stream.tell())
        value = self.subcon._parsereport(stream, context, path)
        trace.leave(value, stream.tell())
        return value


class TaggedFields(Construct):  # type: ignore[misc]  # construct has no types
    """Count, then tag, size and value of each, by rising tag; a value equal to its default is left out."""

    def __init__(self, known: dict[int, tuple[Field, Construct]]) -> None:
        super().__init__()
        self.known = known

    def _parse(self, stream: Any, context: Any, path: str) -> dict[Any, Any]:
        trace = context._params.get("trace")
        found: dict[Any, Any] = {}
        position = stream.tell()
        count = UnsignedVarint._parse(stream, context, path)
        if count > MOST_TAGS:
            raise UnreadableError(position, f"at most {MOST_TAGS} tagged fields", f"found count {count}")
        for _ in range(count):
            position = stream.tell()
            tag = UnsignedVarint._parse(stream, context, path)
            known = self.known.get(tag)
            if trace is not None:
                name, kind = (known[0].name, kind_name(known[0].wire)) if known else (f"tag {tag}", "Bytes")
                trace.enter(name, kind, position)
            size = UnsignedVarint._parse(stream, context, path)
            start = stream.tell()
            if size > _left(stream):
                raise UnreadableError(start, f"{size} bytes of a tagged field", _are_left(_left(stream)))
            if known is None:
                value: Any = stream_read(stream, size, path)
                found[tag] = value
            else:
                field, form = known
                value = found[field.name] = form._parsereport(stream, context, path)
            if stream.tell() - start != size:
                raise UnreadableError(start, f"a tagged field of {size} bytes", f"found {stream.tell() - start}")
            if trace is not None:
                trace.leave(value, stream.tell())
        return found

    def _build(self, obj: dict[Any, Any], stream: Any, context: Any, path: str) -> Any:
        values = {tag: data for tag, data in obj.items() if isinstance(tag, int)}
        for tag, (known, form) in self.known.items():
            value = obj[known.name]
            if not is_default(known, value):
                values[tag] = form.build(value)
        UnsignedVarint._build(len(values), stream, context, path)
        for tag in sorted(values):
            UnsignedVarint._build(tag, stream, context, path)
            UnsignedVarint._build(len(values[tag]), stream, context, path)
            stream_write(stream, values[tag], len(values[tag]), path)
        return obj


def is_default(known: Field, value: Any) -> bool:
    """Whether a tagged field says nothing: equal to its default, or a nested message all of defaults."""
    if value is None and known.default is None:
        return True
    if isinstance(known.wire, type) and known.nullable == "none" and known.default is None:
        return bool(value == known.wire())
    return bool(value == known.fresh_default())


class Object(Adapter):  # type: ignore[misc]  # construct has no types
    """Between the parsed container of a version and an object of the declared class."""

    def __init__(self, cls: type[Message], version: int, fields: Struct) -> None:
        super().__init__(fields)
        self.cls = cls
        self.present = [each for each in cls.FIELDS if each.is_in(version) and not each.is_tagged(version)]

    def _decode(self, obj: Any, context: Any, path: str) -> Message:
        tags = obj.get(TAGGED) or {}
        values = {each.name: obj[each.name] for each in self.present}
        values.update({name: value for name, value in tags.items() if isinstance(name, str)})
        made = self.cls(**values)
        made.unknown_tags = {tag: data for tag, data in tags.items() if isinstance(tag, int)} or None
        return made

    def _encode(self, obj: Message, context: Any, path: str) -> dict[str, Any]:
        values = {each.name: getattr(obj, each.name) for each in self.cls.FIELDS}
        return {**values, TAGGED: {**values, **(obj.unknown_tags or {})}}


def kind_name(kind: WireType) -> str:
    """What to call a type when it is shown."""
    if isinstance(kind, wire.Array):
        return "Array"
    return kind.name if isinstance(kind, wire.Wire) else kind.__name__


def atom(kind: WireType, version: int, flexible: bool, nullable: bool, in_tag: bool = False) -> Construct:
    """The construct of one field's type in one version."""
    if isinstance(kind, wire.Array):
        count = CompactLength if flexible else FIXED["Int32"]
        element = atom(kind.element, version, flexible, False)
        return Counted(count, element, kind_name(kind.element), nullable=nullable)
    if not isinstance(kind, wire.Wire):
        inner = message(kind, version, flexible)
        if not nullable:
            return inner
        return Optional(inner, UnsignedVarint, 0) if in_tag else Optional(inner, FIXED["Int8"], -1)
    if kind.letter:
        return FIXED[kind.name]
    text = kind is wire.String
    length = CompactLength if flexible else FIXED["Int16"] if text else FIXED["Int32"]
    return Prefixed(length, nullable=nullable, text=text)


def message(cls: type[Message], version: int, flexible: bool) -> Construct:
    """The construct of a declared message in one version."""
    forms = []
    tagged: dict[int, tuple[Field, Construct]] = {}
    for each in cls.FIELDS:
        if not each.is_in(version):
            continue
        is_tagged = each.is_tagged(version)
        form = atom(each.wire, version, flexible, each.is_nullable(version), is_tagged)
        if is_tagged:
            tagged[each.tag] = (each, form)
        else:
            forms.append(Named(each.name, kind_name(each.wire), form))
    if flexible:
        forms.append(Named(TAGGED, "TaggedFields", TaggedFields(tagged)))
    return Object(cls, version, Struct(*forms))


@cache
def struct(cls: type[Message], version: int) -> Construct:
    """The construct of one version of a message: parses to and builds from objects of the class itself."""
    return message(cls, version, version >= cls.FLEXIBLE_SINCE)
