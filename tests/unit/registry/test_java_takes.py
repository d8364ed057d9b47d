"""What Java's libraries take and refuse of a schema: defaults and names of Avro, regular expressions of JSON Schema."""

from __future__ import annotations

import json

import pytest
from registry_kit import check

from broker.registry.jobs import Job, SchemaFaultError, Source

ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}
RECORD = {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}]}
FILLED = {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int", "default": 3}]}


def avro(*fields, version=0, **more):
    record = {"type": "record", "name": "R", "fields": list(fields), **more}
    return Source("AVRO", json.dumps(record), version=version)


def new(source):
    return check(Job(source, is_new=True)).text


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("string", None),
        ("int", 1.0),
        ("int", True),
        ("int", 1 << 31),
        ("long", 1 << 63),
        ("boolean", "true"),
        ("null", "null"),
        ("float", "1"),
        (["string", "null"], 5),
        ({"type": "array", "items": "int"}, ["a"]),
        ({"type": "array", "items": "int"}, None),
        ({"type": "map", "values": "int"}, {"a": "1"}),
        (RECORD, {}),
        (ENUM, 1),
    ],
)
def test_default_that_is_no_value_of_its_field_is_refused_where_a_schema_is_new(kind, default):
    source = avro({"name": "f", "type": kind, "default": default})
    with pytest.raises(SchemaFaultError, match="Invalid default for field f"):
        new(source)
    assert check(Job(source)).text


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("float", 1),
        ("double", "NaN"),
        ("bytes", "\u0100"),
        (["null", "string"], "x"),
        (ENUM, "B"),
        (FILLED, {}),
        (FILLED, {"b": 1}),
        ({"type": "fixed", "name": "F", "size": 2}, "a"),
    ],
)
def test_default_that_java_takes_is_taken(kind, default):
    assert new(avro({"name": "f", "type": kind, "default": default}))


def test_default_within_a_record_within_a_map_is_looked_at():
    inner = {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int", "default": "x"}]}
    with pytest.raises(SchemaFaultError, match="field a"):
        new(avro({"name": "f", "type": {"type": "map", "values": ["null", inner]}}))


@pytest.mark.parametrize("name", ["f-1", "a$", "é", "1a"])
def test_name_of_a_field_that_avro_does_not_allow_is_refused(name):
    with pytest.raises(SchemaFaultError, match="not a valid Avro name"):
        check(Job(avro({"name": name, "type": "int"})))
    assert check(Job(avro({"name": name, "type": "int"}, version=1))).text  # stored already


def test_alias_and_name_of_a_type_are_held_to_the_same():
    for source in (avro(aliases=["a-b"]), avro({"name": "f", "type": {**ENUM, "name": "a-b"}})):
        with pytest.raises(SchemaFaultError, match="not a valid Avro name"):
            check(Job(source))


def test_namespace_is_looked_at_where_a_schema_is_new():
    with pytest.raises(SchemaFaultError, match="not a valid Avro name"):
        new(avro(namespace="a-b"))
    assert check(Job(avro(namespace="a-b"))).text


def test_name_in_an_object_stands_for_the_type():
    own = {"type": "record", "name": "my.N", "fields": [{"name": "n", "type": ["null", {"type": "my.N"}]}]}
    text = new(avro({"name": "f", "type": own}, {"name": "g", "type": {"type": "my.N", "x": 1}}))
    assert json.loads(text)["fields"][1] == {"name": "g", "type": "my.N"}


def test_definition_that_is_given_again_stands_for_its_name_and_another_one_is_refused():
    text = new(avro({"name": "f", "type": RECORD}, {"name": "g", "type": RECORD}))
    assert json.loads(text)["fields"][1] == {"name": "g", "type": "S"}
    with pytest.raises(SchemaFaultError, match="already in use"):
        new(avro({"name": "f", "type": RECORD}, {"name": "g", "type": FILLED}))


def test_order_may_have_capitals():
    text = new(avro({"name": "f", "type": "int", "order": "DESCENDING"}))
    assert json.loads(text)["fields"][0]["order"] == "descending"


def of_pattern(pattern):
    return Source("JSON", json.dumps({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}))


@pytest.mark.parametrize("pattern", ["([", "a)", "*a", "[a", "a{2,1}", "[z-a]", "\\", "{", "a{", "(?P<n>a)", "\\i"])
def test_pattern_that_does_not_compile_is_refused(pattern):
    properties = Source("JSON", json.dumps({"patternProperties": {pattern: True}}))
    for source in (of_pattern(pattern), properties):
        with pytest.raises(SchemaFaultError, match="does not compile"):
            check(Job(source))


@pytest.mark.parametrize(
    "pattern",
    [
        "\\p{L}+",
        "(?<n>a)\\k<n>",
        "[[:alpha:]]",
        "a++",
        "\\Qa[\\E",
        "(?i)a",
        "\\cA",
        "(?<=a)b",
        "\\x{41}",
        "\\h",
        "[{]",
        "\\{",
    ],
)
def test_pattern_of_java_is_taken(pattern):
    assert check(Job(of_pattern(pattern))).text


def test_value_that_looks_like_a_pattern_is_none():
    assert check(Job(Source("JSON", '{"default": {"pattern": "(["}, "const": {"pattern": "("}}'))).text
