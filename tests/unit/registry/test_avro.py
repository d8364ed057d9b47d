"""Avro: canonical and normalized text, findings with their paths, faults."""

from __future__ import annotations

import json

import pytest
from registry_kit import check

from broker.registry.jobs import Job, SchemaFaultError, Source


def avro(schema, *references):
    return Source("AVRO", schema if isinstance(schema, str) else json.dumps(schema), references)


def record(*fields, name="R", **more):
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t, **rest} for n, t, rest in fields], **more}


ENUM = {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}


def kinds(new, old, level="BACKWARD"):
    found = check(Job(avro(new), previous=(avro(old)._replace(version=1),), level=level))
    return [(each.kind, each.path) for each in found.differences]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ('{"type":"string"}', '"string"'),
        ('{"type":"string","doc":"x"}', '"string"'),
        ('{"type":"string","x":1}', '{"type":"string","x":1}'),
        ('{"fields":[],"name":"a.b.R","type":"record"}', '{"type":"record","name":"R","namespace":"a.b","fields":[]}'),
        (
            '{"type":"record","name":"R","namespace":"a","fields":[{"type":{"type":"fixed","size":2,"name":"F"},"name":"f"},'
            '{"name":"g","type":"a.F","order":"descending"},{"name":"h","type":{"name":"o.E","symbols":["A"],"type":"enum"}}]}',
            '{"type":"record","name":"R","namespace":"a","fields":[{"name":"f","type":{"type":"fixed","name":"F","size":2}},'
            '{"name":"g","type":"F","order":"descending"},'
            '{"name":"h","type":{"type":"enum","name":"E","namespace":"o","symbols":["A"]}}]}',
        ),
        ('{"type":"map","values":["null",{"type":"int"}]}', '{"type":"map","values":["null","int"]}'),
    ],
)
def test_canonical_text_is_that_of_java(given, text):
    assert check(Job(avro(given))).text == text


def test_normalized_text_has_attributes_in_one_order_and_is_written_by_java():
    given = record(("f", "E", {"doc": "d", "b": 1, "a": 2}), name="x.R", aliases=["Q"], doc="r")
    given["fields"].insert(0, {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}})
    assert check(Job(avro(given), normalize=True)).text == (  # as Confluent's client 7.5.3 makes it
        '{"type":"record","name":"R","namespace":"x","doc":"r","fields":[{"name":"e","type":{"type":"enum","name":"E",'
        '"symbols":["A"],"default":"A"}},{"name":"f","type":"E","doc":"d","a":2,"b":1}],"aliases":["Q"]}'
    )


def test_full_level_shows_the_old_schema_only_where_the_new_one_cannot_read():
    def told(new, old):
        return check(Job(avro(new), previous=(avro(old)._replace(version=1),), level="FULL")).messages

    lone, wider = record(("f", "int", {})), record(("f", "int", {}), ("g", "int", {}))
    assert [each[:12] for each in told(lone, wider)] == ["{errorType:'"]  # Confluent's client 7.5.3
    assert [each[:12] for each in told(wider, lone)] == ["{errorType:'", "{oldSchemaVe", "{oldSchema: "]


@pytest.mark.parametrize(
    ("new", "old", "found"),
    [
        ('"long"', '"int"', []),
        ('"int"', '"long"', [("TYPE_MISMATCH", "/")]),
        ('"bytes"', '"string"', []),
        (record(("a", "int", {})), record(), [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0")]),
        # a missing field of an enum with a default: Java's library compares the enum with the whole record
        (record(("a", ENUM, {})), record(), [("TYPE_MISMATCH", "/fields/0/type")]),
        (record(("a", ENUM, {"default": "A"})), record(), []),
        (record(("a", "int", {"default": 1})), record(), []),
        (record(), record(("a", "int", {})), []),
        (record(("b", "int", {"aliases": ["a"]})), record(("a", "int", {})), []),
        (record(name="S"), record(), [("NAME_MISMATCH", "/name")]),
        (record(name="S", aliases=["R"]), record(), []),
        (
            record(("a", {"type": "array", "items": "int"}, {})),
            record(("a", {"type": "array", "items": "string"}, {})),
            [("TYPE_MISMATCH", "/fields/0/type/items")],
        ),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, [("TYPE_MISMATCH", "/values")]),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            [("MISSING_ENUM_SYMBOLS", "/symbols")],
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            [],
        ),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3},
            [("FIXED_SIZE_MISMATCH", "/size")],
        ),
        ('["null","int"]', '["null","string"]', [("MISSING_UNION_BRANCH", "/1")]),
        ('["null","int"]', '"int"', []),
        ('["null","int"]', '"string"', [("MISSING_UNION_BRANCH", "/")]),
        ('"int"', '["int","string"]', [("TYPE_MISMATCH", "/1")]),
    ],
)  # fmt: skip - a row a case
def test_reader_reads_writer_by_avros_rules(new, old, found):
    assert kinds(new, old) == found


@pytest.mark.parametrize(("level", "fits"), [("BACKWARD", True), ("FORWARD", False), ("FULL", False), ("NONE", True)])
def test_level_says_who_reads_whom(level, fits):
    assert (kinds('"long"', '"int"', level) == []) is fits


def test_types_that_contain_themselves_are_compared_to_their_end():
    tree = record(("next", ["null", "R"], {"default": None}), ("value", "int", {}))
    other = record(("next", ["null", "R"], {"default": None}), ("value", "string", {}))
    assert kinds(tree, tree) == []
    assert ("TYPE_MISMATCH", "/fields/1/type") in kinds(tree, other)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "line 1 column 2"),
        ("5", "Could not make an Avro Schema"),
        ('{"type":"record","name":"R"}', "fields"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"Nowhere"}]}', "Nowhere"),
        ('{"type":"enum","name":"E","symbols":["a-b"]}', "a-b is not a valid"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}', "a"),
        ('{"type":"array","items":' * 5000 + '"int"' + "}" * 5000, "deeply"),
        ('{"type":"record","name":5,"fields":[]}', "must be a string"),
    ],
)
def test_what_is_no_schema_is_a_fault_with_its_reason(text, why):
    with pytest.raises(SchemaFaultError, match=why):
        check(Job(avro(text)))


def test_stored_schema_may_have_names_that_the_standard_does_not_allow():
    old = record(("a-b", "int", {}), name="R-1")
    with pytest.raises(SchemaFaultError, match="R-1 is not a valid Avro name"):
        check(Job(avro(old)))
    assert kinds(record(("a", "int", {"default": 1}), name="R"), old) == [("NAME_MISMATCH", "/name")]


def test_names_that_are_used_twice_each_time_make_no_endless_list():
    def twice(kind):
        for number in range(14):
            again = f"R{number - 1}" if number else kind
            fields = [{"name": "a", "type": kind}, {"name": "b", "type": again}]
            kind = {"type": "record", "name": f"R{number}", "fields": fields}
        return kind

    assert kinds(twice("int"), twice("int")) == []
    assert len(kinds(twice("string"), twice("int"))) == 1000
