"""Random schemas of the three formats: usual ones, others that mean the same, next versions, and some that are none.

`@U` stands for a word of the sequence, so that no two sequences share a schema. All is drawn from a seed.
"""

from __future__ import annotations

import json
import random
from typing import Any, Final, NamedTuple

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
NAMES: Final = ("a", "b", "c", "d")
PRIMITIVES: Final = ("string", "int", "long", "boolean", "bytes", "double", "float", "null")
DRAFTS: Final = (
    *(f"http://json-schema.org/draft-0{number}/schema#" for number in (4, 6, 7)),
    *(f"https://json-schema.org/draft/{each}/schema" for each in ("2019-09", "2020-12")),
)
NO_AVRO: Final = (
    *(
        '"strin"',
        "[]",
        '{"type": "record", "name": "R"}',
        "{",
        "nothing",
        '{"type": "enum", "name": "E", "symbols": []}',
    ),
    *('{"type": "record", "name": "r-1", "fields": []}', '["int", "int"]', '{"type": "fixed", "name": "F"}', "null"),
    '{"type": "record", "name": "R@U", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}',
    '{"type": "record", "name": "R@U", "fields": [{"name": "a", "type": "int", "default": "x"}]}',
    '{"type": "record", "name": "R@U", "fields": [{"name": "a", "type": "n.None"}]}',
    '{"type": "enum", "name": "E@U", "symbols": ["A", "A"]}',
    '{"type": "enum", "name": "E@U", "symbols": ["A"], "default": "B"}',
)
NO_JSON: Final = (
    *('{"type": "strin"}', "{", "3", '"text"', '{"properties": []}', '{"type": "string", "pattern": "(["}', "[]"),
    *('{"$ref": "#/definitions/none"}', '{"required": "a"}', '{"minLength": -1}', '{"enum": []}', "null"),
)
NO_PROTOBUF: Final = (
    *("message", 'syntax = "proto3"; message M { nothing a = 1; }', 'syntax = "proto9"; message M {}', "{}"),
    *('syntax = "proto3"; message M { string a = 0; }', 'syntax = "proto3"; enum E { A = 1; }', '"string"'),
    'syntax = "proto3"; message M { string a = 1; string a = 2; }',
)


class Reference(NamedTuple):
    """What a schema may refer to: `name` as the schema calls it, in a subject of the sequence."""

    schema_type: str
    name: str
    subject: str


def schema(rng: random.Random, schema_type: str, referred: list[Reference]) -> str:
    """A schema's text, which uses what it is given to refer to."""
    if rng.random() < 0.07:
        return rng.choice({AVRO: NO_AVRO, JSON: NO_JSON, PROTOBUF: NO_PROTOBUF}[schema_type])
    made = {AVRO: _avro, JSON: _json, PROTOBUF: _protobuf}[schema_type]
    return made(rng, [each.name for each in referred])


def referable(rng: random.Random, schema_type: str, number: int) -> tuple[str, str]:
    """A schema that others refer to, and the name by which they do."""
    kind = rng.choice(("int", "string"))
    if schema_type == AVRO:
        fields = [{"name": "x", "type": kind}]
        return f"o@U.S{number}", _text(
            rng, {"type": "record", "name": f"S{number}", "namespace": "o@U", "fields": fields}
        )
    if schema_type == JSON:
        kind = rng.choice(("integer", "string"))
        return f"s{number}.json", _text(rng, {"title": "@U", "type": "object", "properties": {"x": {"type": kind}}})
    kind = rng.choice(("int32", "string"))
    return f"s{number}.proto", f'syntax = "proto3";\npackage o@U;\nmessage S{number} {{ {kind} x = 1; }}\n'


def _text(rng: random.Random, value: object) -> str:
    """JSON in one of the ways to write it."""
    return json.dumps(value, indent=rng.choice((None, None, 2)), ensure_ascii=rng.random() < 0.5)


def _avro(rng: random.Random, names: list[str]) -> str:
    if not names and rng.random() < 0.1:
        return _text(
            rng, rng.choice(("string", {"type": "int"}, ["null", "string"], {"type": "array", "items": "int"}))
        )
    fields: list[dict[str, Any]] = []
    for name in rng.sample(NAMES, rng.randint(0 if names else 1, 3)):
        fields.append(_avro_field(rng, name))
    fields += [{"name": f"r{number}", "type": name} for number, name in enumerate(names)]
    made: dict[str, Any] = {"type": "record", "name": "R@U", "fields": fields}
    extra = {"namespace": "n@U", "doc": "ä 'x'", "aliases": ["Old"], "owner": {"b": 1, "a": [True, None]}}
    for key in rng.sample(list(extra), rng.choice((0, 0, 1, 2))):
        made[key] = extra[key]
    if rng.random() < 0.3:
        made = dict(rng.sample(list(made.items()), len(made)))
    return _text(rng, made)


def _avro_field(rng: random.Random, name: str) -> dict[str, Any]:
    kind: Any = rng.choice(PRIMITIVES)
    field: dict[str, Any] = {"name": name, "type": kind}
    what = rng.randrange(9)
    if what == 0:
        field |= {"type": ["null", kind if kind != "null" else "int"], "default": None}
    elif what == 1:
        field |= {"type": {"type": "enum", "name": f"E{name}", "symbols": rng.sample(["X", "Y", "Z"], 2)}}
    elif what == 2:
        field |= {"type": {"type": rng.choice(("array", "map")), "items": kind, "values": kind}}
        del field["type"]["values" if field["type"]["type"] == "array" else "items"]
    elif what == 3:
        field |= {"type": {"type": kind}}
    elif what == 4:
        field |= rng.choice(({"doc": "x"}, {"order": "descending"}, {"aliases": ["z"]}, {"confluent:tags": ["PII"]}))
    elif what == 5:
        field |= {"type": "int", "default": rng.choice((0, -1, 7))}
    elif what == 6:
        field |= {"type": {"type": "long", "logicalType": "timestamp-millis"}}
    elif what == 7:
        inner = [{"name": "x", "type": kind}]
        field |= {"type": {"type": "record", "name": f"I{name}", "fields": inner}}
    return field


def _json(rng: random.Random, names: list[str]) -> str:
    properties: dict[str, Any] = {}
    for name in rng.sample(NAMES, rng.randint(0, 3)):
        properties[name] = rng.choice(
            (
                *(
                    {"type": "string"},
                    {"type": "integer"},
                    {"type": ["null", "string"]},
                    {"type": "number", "minimum": 1},
                ),
                *({"enum": ["x", "y"]}, {"type": "array", "items": {"type": "string"}}, {"$ref": "#/definitions/D"}),
                *({"oneOf": [{"type": "null"}, {"type": "string"}]}, {"type": "string", "maxLength": 5}, True, {}),
                *(
                    {"type": "array", "contains": {"type": "string"}},
                    {"type": "array", "minContains": 2, "contains": True},
                ),
                *(
                    {"if": {"type": "string"}, "then": {"maxLength": 3}},
                    {"type": "object", "dependentRequired": {"a": ["b"]}},
                ),
                *({"type": "array", "prefixItems": [{"type": "string"}]}, {"then": {"type": "string"}}),
                *(
                    {"type": "object", "dependencies": {"a": ["b"]}},
                    {"type": "object", "propertyNames": {"maxLength": 3}},
                ),
                *({"type": "string", "confluent:tags": ["PII"]}, {"const": 1.0}, {"type": "string", "default": "ä"}),
            )
        )
    properties |= {f"r{number}": {"$ref": name} for number, name in enumerate(names)}
    made: dict[str, Any] = {"title": "@U", "type": "object", "properties": properties}
    if any(each == {"$ref": "#/definitions/D"} for each in properties.values()):
        made["definitions"] = {"D": {"type": rng.choice(("string", "integer"))}}
    extra = {
        "$schema": rng.choice(DRAFTS),
        "additionalProperties": rng.choice((True, False)),
        "required": rng.sample(list(properties), min(1, len(properties))) or ["z"],
        "description": "a 'b' \"c\"",
        "$id": "http://example.com/@U.json",
    }
    for key in rng.sample(list(extra), rng.choice((0, 1, 2))):
        made[key] = extra[key]
    return _text(rng, made)


def _protobuf(rng: random.Random, names: list[str]) -> str:
    syntax, is_third = ('syntax = "proto3";', True) if rng.random() < 0.85 else ('syntax = "proto2";', False)
    lines = [syntax, *(["package n@U;"] if rng.random() < 0.8 else [])]
    lines += [f'import "{name}";' for name in names]
    option = rng.choice(("", "", 'option java_package = "x.y@U";', "option java_multiple_files = true;"))
    lines += [option] if option else []
    label = "" if is_third else "optional "
    body = []
    for number, name in enumerate(rng.sample(NAMES, rng.randint(0, 3)), 1):
        body.append(_protobuf_field(rng, name, number, label))
    body += [f"{label}o@U.{name.removesuffix('.proto').title()} r{at} = {at + 10};" for at, name in enumerate(names)]
    if rng.random() < 0.2:
        body.append("reserved 100 to 110;")
    if rng.random() < 0.2:
        body.append("oneof choice { string o1 = 21; int32 o2 = 22; }")
    gap = rng.choice((" ", "\n  "))
    lines.append(f"message M@U {{{gap}{gap.join([*body, ''])}}}")
    if any("E e" in each for each in body) or rng.random() < 0.1:
        lines.append("enum E { ZERO = 0; ONE = 1; }")
    if rng.random() < 0.15:
        lines.insert(1, "// a comment")
    return "\n".join(lines) + rng.choice(("", "\n"))


def _protobuf_field(rng: random.Random, name: str, number: int, label: str) -> str:
    kind = rng.choice(("string", "int32", "int64", "bool", "bytes", "double", "E"))
    what = rng.randrange(8)
    if what == 0:
        return f"map<string, {kind if kind != 'E' else 'string'}> {name} = {number};"
    if what == 1:
        return f"repeated {kind if kind != 'E' else 'E'} {'e' if kind == 'E' else ''}{name} = {number};"
    if what == 2:
        return f"message I{name} {{ {label}string x = 1; }} {label}I{name} {name} = {number};"
    if what == 3:
        return f'{label}string {name} = {number} [json_name = "j{name}"];'
    if what == 4:
        return f"{label}int32 {name} = {number} [deprecated = true];"
    return f"{label}{kind} {'e' if kind == 'E' else ''}{name} = {number};"
