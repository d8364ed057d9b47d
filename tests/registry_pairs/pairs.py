"""Random pairs of schemas: one of the three formats, and what some changes make of it. The same for a seed."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, NamedTuple

from json_pairs import json_change, json_schema

LEVELS = ("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE")
FORMATS = ("AVRO", "JSON", "PROTOBUF")


class Pair(NamedTuple):
    """An older and a newer schema of one format."""

    schema_type: str
    old: str
    new: str


def pair(schema_type: str, seed: int) -> Pair:
    """The pair of this number."""
    draw = random.Random(f"{schema_type} {seed}")
    make, change, text = {
        "AVRO": (_avro_record, _avro_change, json.dumps),
        "JSON": (json_schema, json_change, json.dumps),
        "PROTOBUF": (_proto_file, _proto_change, _proto_text),
    }[schema_type]
    old = make(draw)
    new = copy.deepcopy(old)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        change(draw, new)
    return Pair(schema_type, text(old), text(new))


# -- Avro

PRIMITIVES = ("int", "long", "float", "double", "string", "bytes", "boolean", "null")
DEFAULTS: dict[str, Any] = {
    "int": 0,
    "long": 1,
    "float": 0.5,
    "double": 1.5,
    "string": "x",
    "bytes": "b",
    "boolean": True,
    "null": None,
}


class _Names:
    def __init__(self) -> None:
        self.count = 0

    def next(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"


def _avro_type(draw: random.Random, names: _Names, depth: int) -> Any:
    kind = draw.choice((*PRIMITIVES, *("record", "enum", "array", "map", "union", "fixed") * (2 if depth < 2 else 0)))
    if kind in PRIMITIVES:
        return kind
    if kind == "record":
        return _avro_named(draw, names, depth + 1)
    if kind == "enum":
        made = {"type": "enum", "name": names.next("E"), "symbols": ["A", "B", "C"][: draw.randrange(1, 4)]}
        return {**made, "default": "A"} if draw.random() < 0.3 else made
    if kind == "array":
        return {"type": "array", "items": _avro_type(draw, names, depth + 1)}
    if kind == "map":
        return {"type": "map", "values": _avro_type(draw, names, depth + 1)}
    if kind == "fixed":
        return {"type": "fixed", "name": names.next("F"), "size": draw.randrange(1, 5)}
    return draw.sample(PRIMITIVES, draw.randrange(1, 4))


def _avro_named(draw: random.Random, names: _Names, depth: int) -> dict[str, Any]:
    name, fields = names.next("R"), []
    for number in range(draw.randrange(1, 5)):
        field: dict[str, Any] = {"name": f"f{number}", "type": _avro_type(draw, names, depth)}
        if isinstance(field["type"], str) and draw.random() < 0.4:
            field["default"] = DEFAULTS[field["type"]]
        if draw.random() < 0.1:
            field |= draw.choice(({"doc": "d"}, {"order": "descending"}, {"zeta": 1, "beta": {"b": 1, "a": 2}}))
        fields.append(field)
    made = {"type": "record", "name": name, "fields": fields}
    if draw.random() < 0.2:
        made |= draw.choice(({"doc": "d"}, {"namespace": draw.choice(("a.b", "c"))}, {"zeta": 1, "beta": 2}))
    return made


def _avro_record(draw: random.Random) -> Any:
    return _avro_named(draw, _Names(), 0)


def _avro_places(schema: Any) -> list[dict[str, Any]]:
    """All objects in a schema."""
    found = []
    if isinstance(schema, dict):
        found.append(schema)
        for each in schema.values():
            found += _avro_places(each)
    elif isinstance(schema, list):
        for each in schema:
            found += _avro_places(each)
    return found


def _avro_change(draw: random.Random, schema: Any) -> None:
    place = draw.choice(_avro_places(schema))
    kind, names = place.get("type"), _Names()
    names.count = 100 + draw.randrange(1_000_000)
    if kind == "record":
        fields = place["fields"]
        deed = draw.choice(("add", "add", "drop", "rename", "name", "alias"))
        if deed == "add":
            primitive = draw.choice(PRIMITIVES)
            more = {"default": DEFAULTS[primitive]} if draw.random() < 0.5 else {}
            fields.append({"name": names.next("g"), "type": primitive, **more})
        elif deed == "drop" and fields:
            fields.pop(draw.randrange(len(fields)))
        elif deed == "rename" and fields:
            field = draw.choice(fields)
            if draw.random() < 0.5:
                field["aliases"] = [field["name"]]
            field["name"] = names.next("h")
        elif deed == "name":
            place["name"] = names.next("N")
        elif deed == "alias":
            place["aliases"], place["name"] = [place["name"]], names.next("N")
    elif kind == "enum":
        if draw.random() < 0.5 and len(place["symbols"]) > 1:
            gone = place["symbols"].pop()
            if place.get("default") == gone:
                del place["default"]
        else:
            place["symbols"].append("Z")
    elif kind == "fixed":
        place["size"] += draw.choice((0, 1))
        if draw.random() < 0.3:
            place["name"] = names.next("F")
    elif kind == "array":
        place["items"] = _avro_type(draw, names, 2)
    elif kind == "map":
        place["values"] = _avro_type(draw, names, 2)
    elif "type" in place:  # a field
        place.pop("default", None)
        if isinstance(kind, list) and draw.random() < 0.7:
            if len(kind) > 1 and draw.random() < 0.5:
                kind.pop()
            else:
                kind[:] = list(dict.fromkeys([*kind, draw.choice(PRIMITIVES)]))
        elif kind in PRIMITIVES and draw.random() < 0.4:
            place["type"] = ["null", kind] if kind != "null" else ["null", "int"]
        else:
            place["type"] = _avro_type(draw, names, 2)


# -- Protobuf: a file is a list of messages and enums

SCALARS = (
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "bool",
    "string",
    "bytes",
    "double",
    "float",
)


def _proto_file(draw: random.Random) -> Any:
    enums = [{"name": "Colour", "values": ["RED", "GREEN", "BLUE"][: draw.randrange(1, 4)]}]
    messages = [_proto_message(draw, f"M{number}") for number in range(draw.randrange(1, 4))]
    return {"enums": enums, "messages": messages}


def _proto_message(draw: random.Random, name: str) -> Any:
    fields = []
    for number in range(1, draw.randrange(2, 6)):
        fields.append(
            {
                "name": f"f{number}",
                "number": number,
                "type": _proto_type(draw),
                "label": draw.choice(("", "", "", "repeated ")),
            }
        )
    nested = [_proto_message(draw, f"{name}N")] if len(name) < 3 and draw.random() < 0.3 else []
    group = [field["name"] for field in fields[:2] if not field["label"]] if draw.random() < 0.3 else []
    return {"name": name, "fields": fields, "nested": nested, "oneof": group}


def _proto_type(draw: random.Random) -> str:
    return draw.choice((*SCALARS, "Colour", "M0", "map<string, int32>"))


def _proto_change(draw: random.Random, file: Any) -> None:
    message = draw.choice(file["messages"])
    if message["nested"] and draw.random() < 0.3:
        message = message["nested"][0]
    fields = message["fields"]
    deed = draw.choice(("add", "drop", "type", "type", "label", "name", "number", "oneof", "message", "enum", "gone"))
    if deed == "add":
        number = 10 + draw.randrange(5)
        if all(field["number"] != number for field in fields):
            fields.append({"name": f"g{number}", "number": number, "type": _proto_type(draw), "label": ""})
    elif deed == "drop" and fields:
        gone = fields.pop(draw.randrange(len(fields)))
        message["oneof"] = [name for name in message["oneof"] if name != gone["name"]]
    elif deed in ("type", "label", "name", "number") and fields:
        field = draw.choice(fields)
        if deed == "type":
            field["type"] = _proto_type(draw)
        elif deed == "label" and field["name"] not in message["oneof"]:
            field["label"] = "" if field["label"] else "repeated "
        elif deed == "number":
            field["number"] = 20 + draw.randrange(1000)
        elif deed == "name" and field["name"] not in message["oneof"]:
            field["name"] = f"h{field['number']}"
    elif deed == "oneof":
        message["oneof"] = [field["name"] for field in fields[: draw.randrange(0, 4)] if not field["label"]]
    elif deed == "message":
        name = f"M{5 + draw.randrange(4)}"
        if all(each["name"] != name for each in file["messages"]):
            file["messages"].append(_proto_message(draw, name))
    elif deed == "gone" and len(file["messages"]) > 1:
        file["messages"].pop()
    elif deed == "enum":
        file["enums"][0]["values"] = ["RED", "GREEN", "BLUE", "BLACK"][: draw.randrange(1, 5)]


def _proto_text(file: Any) -> str:
    lines = ['syntax = "proto3";']
    for enum in file["enums"]:
        lines += [f"enum {enum['name']} {{", *(f"  {name} = {at};" for at, name in enumerate(enum["values"])), "}"]
    for message in file["messages"]:
        lines += _proto_lines(message, "")
    return "\n".join(lines) + "\n"


def _proto_lines(message: Any, indent: str) -> list[str]:
    lines, grouped = [f"{indent}message {message['name']} {{"], []
    for field in message["fields"]:
        kind = field["type"]
        label = "" if kind.startswith("map<") else field["label"]
        text = f"{label}{kind} {field['name']} = {field['number']};"
        is_grouped = field["name"] in message["oneof"] and not label and not kind.startswith("map<")
        (grouped if is_grouped else lines).append(f"{indent}  {text}")
    if grouped:
        lines += [f"{indent}  oneof one {{", *(f"  {text}" for text in grouped), f"{indent}  }}"]
    for nested in message["nested"]:
        lines += _proto_lines(nested, f"{indent}  ")
    return [*lines, f"{indent}}}"]
