"""The values of golden frames: made from a message's declaration, the same every time.

A value follows from the name of its field and of the messages around it, not from the order of the fields: two fields
that stand in the wrong order then hold each other's values.

full   no field is at its default; lists have two elements, or one where they are lists of messages inside lists
flags  as full, but a flag is the first bit of its place among the flags of its message, in the order of their names
null   what may be null is null, tagged fields are left out, and a flag is the second bit of that place
"""

from __future__ import annotations

import base64
from typing import Any
from zlib import crc32

from protocol.declare import Field, Message, WireType
from protocol.wire import Array, Bool, Bytes, Float64, Records, String, Uuid, Wire

KINDS = ("full", "flags", "null")
_RANGES = {  # least value, number of values
    "Int8": (1, 126),
    "Int16": (1, (1 << 15) - 2),
    "UInt16": (1 << 15, (1 << 15) - 1),
    "Int32": (1, (1 << 31) - 2),
    "UInt32": (1 << 31, (1 << 31) - 1),
    "Int64": (1 << 40, 1 << 32),
}


def golden_value(cls: type[Message], version: int, kind: str) -> Message:
    """A value of one version; fields that the version lacks keep their defaults."""
    return _message(cls, version, kind, "", 2)


def golden_kinds(cls: type[Message], version: int) -> list[str]:
    """The kinds whose values differ."""
    found: list[str] = []
    for kind in KINDS:
        if all(golden_value(cls, version, kind) != golden_value(cls, version, other) for other in found):
            found.append(kind)
    return found


def _message(cls: type[Message], version: int, kind: str, path: str, elements: int) -> Message:
    present = [field for field in cls.FIELDS if field.is_in(version)]
    flags = sorted([field.name for field in present if field.wire is Bool])
    assert len(flags) <= 4, f"{cls.__name__}: a fifth flag needs a fourth kind"
    values = {field.name: _field(field, version, kind, f"{path}.{field.name}", elements) for field in present}
    if kind != "full":
        bit = KINDS.index(kind) - 1
        values.update({name: bool(place >> bit & 1) for place, name in enumerate(flags)})
    return cls(**values)


def _field(field: Field, version: int, kind: str, path: str, elements: int) -> Any:
    if kind == "null" and field.is_tagged(version):
        return field.fresh_default()
    if kind == "null" and field.is_nullable(version):
        return None
    if field.wire is Bool:
        return not field.default
    value = _value(field.wire, version, kind, path, elements)
    return _value(field.wire, version, kind, path + "'", elements) if value == field.default else value


def _value(wire: WireType, version: int, kind: str, path: str, elements: int) -> Any:
    if isinstance(wire, Array):
        size = 2 if isinstance(wire.element, Wire) else elements
        return [_value(wire.element, version, kind, f"{path}.{place}", 1) for place in range(size)]
    if not isinstance(wire, Wire):
        return _message(wire, version, kind, path, elements)
    number = crc32(path.encode())
    if wire is String:
        return f"{number:x}"
    if wire is Uuid:
        return number.to_bytes(8, "big") * 2
    if wire in (Bytes, Records):
        return number.to_bytes(4, "big")
    if wire is Float64:
        return number + 0.5
    least, count = _RANGES[wire.name]
    return least + number % count


def as_json(message: Message, version: int) -> dict[str, Any]:
    """As Kafka's JsonConverter classes read and write it: tagged fields at their default are left out."""
    found = {}
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.is_in(version) and not (field.is_tagged(version) and value == field.fresh_default()):
            found[_camel(field.name)] = _json(field.wire, value, version)
    return found


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join([word.title() for word in rest])


def _json(wire: WireType, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(wire, Array):
        return [_json(wire.element, each, version) for each in value]
    if wire is Uuid:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    if wire in (Bytes, Records):
        return base64.b64encode(value).decode()
    return value if isinstance(wire, Wire) else as_json(value, version)
