"""JSON Schema: which change of a schema is compatible, by kind and path; references; faults."""

from __future__ import annotations

import json

import pytest
from registry_kit import check

from broker.registry.jobs import Job, SchemaFaultError, Source

CLOSED = {"additionalProperties": False}


def schema(tree, *references):
    text = tree if isinstance(tree, str) else json.dumps(tree)
    return Source("JSON", text, tuple((name, json.dumps(each)) for name, each in references), 1)


def found(old, new, level="BACKWARD"):
    made = check(Job(schema(new), previous=(schema(old),), level=level))
    return [(each.kind, each.path) for each in made.differences]


def thing(*required, **properties):
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


TEXT, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
CASES = [
    # old, new, what does not fit
    (TEXT, NUMBER, [("TYPE_CHANGED", "#/")]),
    (INTEGER, NUMBER, []),
    (NUMBER, INTEGER, [("TYPE_NARROWED", "#/")]),
    (TEXT, True, []),
    (TEXT, {"type": ["string", "null"]}, []),
    ({"type": ["string", "null"]}, TEXT, [("TYPE_CHANGED", "#/")]),
    ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 9}, []),
    ({"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 5}, [("MAX_LENGTH_DECREASED", "#/maxLength")]),
    (TEXT, {"type": "string", "minLength": 1}, [("MIN_LENGTH_ADDED", "#/minLength")]),
    (TEXT, {"type": "string", "pattern": "a"}, [("PATTERN_ADDED", "#/pattern")]),
    ({"type": "string", "pattern": "b"}, {"type": "string", "pattern": "a"}, [("PATTERN_CHANGED", "#/pattern")]),
    ({"type": "number", "minimum": 1}, {"type": "number", "minimum": 2}, [("MINIMUM_INCREASED", "#/minimum")]),
    (
        {"type": "number", "multipleOf": 2},
        {"type": "number", "multipleOf": 4},
        [("MULTIPLE_OF_EXPANDED", "#/multipleOf")],
    ),
    ({"type": "number", "multipleOf": 4}, {"type": "number", "multipleOf": 2}, []),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, []),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, [("ENUM_ARRAY_NARROWED", "#/enum")]),
    ({"const": 1}, {"const": 2}, [("ENUM_ARRAY_CHANGED", "#/const")]),
    (thing(a=TEXT), thing(a=NUMBER), [("TYPE_CHANGED", "#/properties/a")]),
    (thing(), thing(a=TEXT), [("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/a")]),
    (thing(), thing(a=True), []),
    (thing() | CLOSED, thing(a=TEXT) | CLOSED, []),
    (
        thing() | CLOSED,
        thing("a", a=TEXT) | CLOSED,
        [("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", "#/properties/a")],
    ),
    (thing() | CLOSED, thing("a", a=TEXT | {"default": ""}) | CLOSED, []),
    (thing(a=TEXT), thing(), []),
    (thing(a=TEXT) | CLOSED, thing() | CLOSED, [("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "#/properties/a")]),
    (thing(a=TEXT), thing("a", a=TEXT), [("REQUIRED_ATTRIBUTE_ADDED", "#/required/a")]),
    (thing("a", a=TEXT), thing(a=TEXT), []),
    (thing(), thing() | CLOSED, [("ADDITIONAL_PROPERTIES_REMOVED", "#/additionalProperties")]),
    (thing(), thing() | {"additionalProperties": TEXT}, [("ADDITIONAL_PROPERTIES_NARROWED", "#/additionalProperties")]),
    (
        thing(a=TEXT),
        thing() | {"additionalProperties": NUMBER},
        [
            ("TYPE_CHANGED", "#/properties/a"),
            ("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "#/properties/a"),
            ("ADDITIONAL_PROPERTIES_NARROWED", "#/additionalProperties"),
        ],
    ),
    (thing() | {"patternProperties": {"^s": TEXT}}, thing(size=TEXT) | {"patternProperties": {"^s": TEXT}}, []),
    ({"type": "array", "items": TEXT}, {"type": "array", "items": NUMBER}, [("TYPE_CHANGED", "#/items")]),
    ({"type": "array"}, {"type": "array", "uniqueItems": True}, [("UNIQUE_ITEMS_ADDED", "#/uniqueItems")]),
    (
        {"type": "array", "items": [TEXT]},
        {"type": "array", "items": [TEXT, TEXT]},
        [("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", "#/items/1")],
    ),
    ({"oneOf": [TEXT]}, {"oneOf": [TEXT, NUMBER]}, []),
    ({"oneOf": [TEXT, NUMBER]}, {"oneOf": [TEXT]}, [("SUM_TYPE_NARROWED", "#/")]),
    ({"oneOf": [TEXT, NUMBER]}, {"oneOf": [TEXT, {"type": "null"}]}, [("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "#/")]),
    ({"allOf": [TEXT, {"maxLength": 5}]}, {"anyOf": [TEXT, {"maxLength": 5}]}, []),
    ({"not": TEXT}, {"not": {"type": ["string", "number"]}}, [("NOT_TYPE_EXTENDED", "#/not")]),
]  # fmt: skip - a row a case


@pytest.mark.parametrize(("old", "new", "kinds"), CASES)
def test_reader_accepts_what_the_writer_does_by_the_table(old, new, kinds):
    assert found(old, new) == kinds


def test_message_has_confluents_form():
    made = check(Job(schema(NUMBER), previous=(schema(TEXT),), level="BACKWARD"))
    assert made.messages == [
        '{errorType:"TYPE_CHANGED", description:"A type at path \'#/\' is different between the new schema and the old'
        " schema'}",
        "{oldSchemaVersion: 1}",
        '{oldSchema: \'{"type":"string"}\'}',
    ]


def test_sentence_is_that_of_the_whole_kind():
    made = check(Job(schema({"oneOf": [TEXT]}), previous=(schema({"oneOf": [TEXT, NUMBER]}),), level="BACKWARD"))
    assert "SUM_TYPE_NARROWED" in made.messages[0]
    assert "has fewer elements in the new schema than the old schema" in made.messages[0]


def test_types_that_contain_themselves_are_compared_to_their_end():
    def tree(value):
        below = {"type": "array", "items": {"$ref": "#/definitions/node"}}
        return {"$ref": "#/definitions/node", "definitions": {"node": thing(below=below, value=value)}}

    assert found(tree(TEXT), tree(TEXT)) == []
    assert ("TYPE_CHANGED", "#/properties/value") in found(tree(TEXT), tree(NUMBER))


def test_reference_of_another_subject_is_compared_through():
    def job(value):
        order = thing(price={"$ref": "money.json"})
        return schema(order, ("money.json", {"$id": "http://shop/money.json", **thing(cents=value)}))

    made = check(Job(job(TEXT), previous=(job(INTEGER),), level="BACKWARD"))
    assert [(each.kind, each.path) for each in made.differences] == [
        ("TYPE_CHANGED", "#/properties/price/properties/cents")
    ]


def test_text_is_without_spaces_and_sorted_when_normalized():
    source = schema('{"type": "object",\n "additionalProperties": false, "title": "Ü"}')
    assert check(Job(source)).text == '{"type":"object","additionalProperties":false,"title":"Ü"}'
    assert check(Job(source, normalize=True)).text == '{"additionalProperties":false,"title":"Ü","type":"object"}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "line 1 column 2"),
        ("[]", "neither an object"),
        ('{"type":"strin"}', "strin"),
        ('{"properties":{"a":{"minLength":-1}}}', r"\$.properties.a.minLength"),
        ('{"$ref":"file:///etc/passwd"}', "leads nowhere"),
        ('{"$ref":"http://127.0.0.1:1/x.json"}', "leads nowhere"),
        ('{"$ref":"#/definitions/none"}', "leads nowhere"),
        ('{"$ref":"#"}', "refers to itself"),
        ('{"not":' * 3000 + "{}" + "}" * 3000, "deeply"),
    ],
)
def test_what_is_no_schema_is_a_fault_with_its_place(text, why):
    with pytest.raises(SchemaFaultError, match=why):
        check(Job(schema(text), previous=(schema("true"),), level="BACKWARD"))


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-04/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_each_draft_is_read_by_its_own_words(draft):
    tuple_ = {"items": [TEXT]} if "04" in draft else {"prefixItems": [TEXT]}
    other = {"items": [NUMBER]} if "04" in draft else {"prefixItems": [NUMBER]}
    old, new = ({"$schema": draft, "type": "array", **each} for each in (tuple_, other))
    assert found(old, new) == [("TYPE_CHANGED", "#/items/0")]


def test_names_that_are_used_twice_each_time_make_no_endless_list():
    def twice(kind):
        links = {f"d{each}": {name: {"$ref": f"#/definitions/d{each + 1}"} for name in "ab"} for each in range(14)}
        nodes = {name: {"type": "object", "properties": each} for name, each in links.items()}
        return {"definitions": {**nodes, "d14": kind}, "$ref": "#/definitions/d0"}

    assert found(twice(TEXT), twice(TEXT | {"title": "t"})) == []
    changes = found(twice(TEXT), twice(NUMBER | {"title": "t"}))
    assert len(changes) == 1000
    assert {kind for kind, _ in changes} == {"TYPE_CHANGED"}
