"""Construct atoms for Kafka's wire types, and the construct of a declared message: the reference codec.

This is the codec to read, not the one that runs: `protocol.codegen` is proven equal to it by tests.
"""

from __future__ import annotations

from typing import Any, cast

import construct
from construct import Adapter, Construct, Flag, Struct, stream_read, stream_write

from protocol import wire
from protocol.declare import Field, Message, WireType

_STRING_MAX_BYTES = 0x7FFF


class _UnsignedVarint(Construct):  # type: ignore[misc]  # construct has no types
    """Seven bits a byte, lowest first; at most 31 bits, as every length and tag in Kafka is a Java int."""

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0x7FFFFFFF:
                    break
                return cast("int", value)
        raise construct.IntegerError("varint longer than 31 bits", path=path)

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
    "Bool": Flag,
    "Int8": construct.Int8sb,
    "Int16": construct.Int16sb,
    "UInt16": construct.Int16ub,
    "Int32": construct.Int32sb,
    "UInt32": construct.Int32ub,
    "Int64": construct.Int64sb,
    "Float64": construct.Float64b,
    "Uuid": construct.Bytes(16),
}


class Prefixed(Construct):  # type: ignore[misc]  # construct has no types
    """Bytes behind a length; a negative length is null."""

    def __init__(self, length: Construct, *, nullable: bool, text: bool) -> None:
        super().__init__()
        self.length = length
        self.nullable = nullable
        self.text = text

    def _parse(self, stream: Any, context: Any, path: str) -> str | bytes | None:
        size = self.length._parse(stream, context, path)
        if size < 0:
            if self.nullable:
                return None
            raise construct.ConstructError("null where null is not allowed", path=path)
        if self.text and size > _STRING_MAX_BYTES:
            raise construct.ConstructError("string too long", path=path)
        data: bytes = stream_read(stream, size, path)
        return data.decode("utf-8", "replace") if self.text else data

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None:
            self.length._build(-1, stream, context, path)
            return None
        data = obj.encode() if self.text else bytes(obj)
        self.length._build(len(data), stream, context, path)
        stream_write(stream, data, len(data), path)
        return obj


class Counted(Construct):  # type: ignore[misc]  # construct has no types
    """Elements behind their count; a negative count is null."""

    def __init__(self, count: Construct, element: Construct, *, nullable: bool) -> None:
        super().__init__()
        self.count = count
        self.element = element
        self.nullable = nullable

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any] | None:
        count = self.count._parse(stream, context, path)
        if count < 0:
            if self.nullable:
                return None
            raise construct.ConstructError("null where null is not allowed", path=path)
        return [self.element._parse(stream, context, path) for _ in range(count)]

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.count._build(-1 if obj is None else len(obj), stream, context, path)
        for each in obj or ():
            self.element._build(each, stream, context, path)
        return obj


class Optional(Construct):  # type: ignore[misc]  # construct has no types
    """A nested message behind a number: 1 when it is there, the number for null (or below) when it is not."""

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


class TaggedFields(Construct):  # type: ignore[misc]  # construct has no types
    """Count, then tag, size and value of each, by rising tag; a value equal to its default is left out."""

    def __init__(self, known: dict[int, tuple[Field, Construct]]) -> None:
        super().__init__()
        self.known = known

    def _parse(self, stream: Any, context: Any, path: str) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for _ in range(UnsignedVarint._parse(stream, context, path)):
            tag = UnsignedVarint._parse(stream, context, path)
            data = stream_read(stream, UnsignedVarint._parse(stream, context, path), path)
            if tag in self.known:
                known, form = self.known[tag]
                value, rest = construct.Sequence(form, construct.GreedyBytes).parse(data)
                if rest:
                    raise construct.ConstructError("bytes left in a tagged field", path=path)
                found[known.name] = value
            else:
                found[tag] = data
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
        tags = obj.get("tags") or {}
        values = {each.name: obj[each.name] for each in self.present}
        values.update({name: value for name, value in tags.items() if isinstance(name, str)})
        made = self.cls(**values)
        made.unknown_tags = {tag: data for tag, data in tags.items() if isinstance(tag, int)} or None
        return made

    def _encode(self, obj: Message, context: Any, path: str) -> dict[str, Any]:
        values = {each.name: getattr(obj, each.name) for each in self.cls.FIELDS}
        return {**values, "tags": {**values, **(obj.unknown_tags or {})}}


def atom(kind: WireType, version: int, flexible: bool, nullable: bool, in_tag: bool = False) -> Construct:
    """The construct of one field's type in one version."""
    if isinstance(kind, wire.Array):
        count = CompactLength if flexible else construct.Int32sb
        return Counted(count, atom(kind.element, version, flexible, False), nullable=nullable)
    if not isinstance(kind, wire.Wire):
        inner = message(kind, version, flexible)
        if not nullable:
            return inner
        return Optional(inner, UnsignedVarint, 0) if in_tag else Optional(inner, construct.Int8sb, -1)
    if kind.letter:
        return FIXED[kind.name]
    text = kind is wire.String
    length = CompactLength if flexible else construct.Int16sb if text else construct.Int32sb
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
            forms.append(each.name / form)
    if flexible:
        forms.append("tags" / TaggedFields(tagged))
    return Object(cls, version, Struct(*forms))


def struct(cls: type[Message], version: int) -> Construct:
    """The construct of one version of a message: parses to and builds from objects of the class itself."""
    return message(cls, version, version >= cls.FLEXIBLE_SINCE)
