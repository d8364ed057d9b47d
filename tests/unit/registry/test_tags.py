"""Tags within schemas of the three formats: added and removed at a registration, and at a version."""

from __future__ import annotations

import json

import pytest

RECORD = {"type": "record", "name": "shop.Order", "fields": [{"name": "price", "type": "long"}]}
NESTED = {"type": "record", "name": "Line", "fields": [{"name": "id", "type": "long"}]}
AVRO = {**RECORD, "fields": [*RECORD["fields"], {"name": "lines", "type": {"type": "array", "items": NESTED}}]}
OBJECT = {"type": "object", "properties": {"a.b": {"type": "object", "properties": {"c": {"type": "string"}}}}}
PROTO = 'syntax = "proto3";\nmessage A { string f = 1 [deprecated = true]; oneof o { int32 g = 2; } message B {} }'


def tags(path, kind, *names):
    return [{"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": list(names)}]


def registered(registry, schema, kind, **more):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    answer = registry.ask("POST", "/subjects/s/versions", {"schema": text, "schemaType": kind, **more})
    return list(answer) if isinstance(answer, tuple) else registry.ask("GET", "/subjects/s/versions/latest")


@pytest.mark.parametrize(
    ("schema", "kind", "path", "entity", "written"),
    [
        (AVRO, "AVRO", "shop.Order", "sr_record", '"confluent:tags":["X","Y"]'),
        (AVRO, "AVRO", "shop.Order.price", "sr_field", '"type":"long","confluent:tags":["X","Y"]'),
        (AVRO, "AVRO", "shop.Line.id", "sr_field", '"name":"id","type":"long","confluent:tags":["X","Y"]'),
        (OBJECT, "JSON", "object", "sr_record", '"confluent:tags":["X","Y"]'),
        (OBJECT, "JSON", "object.a.b.object.c", "sr_field", '"c":{"type":"string","confluent:tags":["X","Y"]}'),
        (PROTO, "PROTOBUF", ".A.f", "sr_field", '(confluent.field_meta) = {\n      tags: [\n        "X",\n        "Y"'),
        (PROTO, "PROTOBUF", "A.g", "sr_field", "g = 2 [(confluent.field_meta) = {"),
        (PROTO, "PROTOBUF", "A.o.g", "sr_field", "g = 2 [(confluent.field_meta) = {"),
        (PROTO, "PROTOBUF", "A.B", "sr_record", "option (confluent.message_meta) = {"),
    ],
)
def test_tags_are_added_and_removed(registry, schema, kind, path, entity, written):
    first = registered(registry, schema, kind)
    second = registered(registry, schema, kind, schemaTagsToAdd=tags(path, entity, "X", "Y"))
    assert written in second["schema"]
    assert (second["version"], second["metadata"]["properties"]) == (2, {"confluent:version": "2"})
    third = registered(registry, second["schema"], kind, schemaTagsToRemove=tags(path, entity, "X", "Y"))
    assert (third["version"], third["schema"]) == (3, first["schema"])


def test_version_is_tagged_with_rules(registry):
    rule = {"name": "r", "type": "CEL", "mode": "READ"}
    registered(registry, RECORD, "AVRO")
    body = {"newVersion": 2, "tagsToAdd": tags("shop.Order", "sr_record", "X"), "rulesToMerge": {"domainRules": [rule]}}
    assert registry.ask("POST", "/subjects/s/versions/1/tags", body)["version"] == 2
    body = {"newVersion": 3, "tagsToRemove": tags("shop.Order", "sr_record", "X"), "rulesToRemove": ["r"]}
    assert registry.ask("POST", "/subjects/s/versions/latest/tags", body)["version"] == 3
    second, third = (registry.ask("GET", f"/subjects/s/versions/{number}") for number in (2, 3))
    assert [each["name"] for each in second["ruleSet"]["domainRules"]] == ["r"]
    assert '"confluent:tags":["X"]' in second["schema"]
    assert third["ruleSet"] == {}
    assert "confluent:tags" not in third["schema"]


@pytest.mark.parametrize(
    ("schema", "kind", "path", "entity"),
    [
        (AVRO, "AVRO", "shop.Nothing", "sr_record"),
        (AVRO, "AVRO", "shop.Order.nothing", "sr_field"),
        (OBJECT, "JSON", "object.nothing", "sr_field"),
        (OBJECT, "JSON", "array", "sr_field"),
        (PROTO, "PROTOBUF", "A.nothing", "sr_field"),
        (PROTO, "PROTOBUF", "C", "sr_record"),
        (PROTO, "PROTOBUF", "C.f", "sr_field"),
    ],
)
def test_path_that_leads_nowhere_is_refused(registry, schema, kind, path, entity):
    assert registered(registry, schema, kind, schemaTagsToAdd=tags(path, entity, "X"))[:2] == [422, 42201]


@pytest.mark.parametrize("given", [5, [5], [{"tags": ["x"]}], tags("a", "sr_table", "x"), tags("a", "sr_field", 5)])
def test_tags_of_another_form_are_refused(registry, given):
    assert registered(registry, RECORD, "AVRO", schemaTagsToAdd=given)[:2] == [422, 422]


def test_tag_of_what_is_not_there_is_refused(registry):
    assert registry.ask("POST", "/subjects/s/versions/1/tags", {})[:2] == (404, 40401)
    registered(registry, RECORD, "AVRO")
    assert registry.ask("POST", "/subjects/s/versions/2/tags", {})[:2] == (404, 40402)


@pytest.mark.parametrize(
    ("schema", "kind", "places"),
    [
        (AVRO, "AVRO", [("shop.Order", "sr_record"), ("shop.Order.price", "sr_field"), ("shop.Line.id", "sr_field")]),
        (OBJECT, "JSON", [("object", "sr_record"), ("object.a.b", "sr_field"), ("object.a.b.object.c", "sr_field")]),
        (PROTO, "PROTOBUF", [("A", "sr_record"), ("A.g", "sr_field"), ("A.f", "sr_field"), ("A.B", "sr_record")]),
    ],
)
def test_tags_within_a_schema_are_found_and_taken_over(registry, schema, kind, places):
    rows = [{**tags(path, entity, f"T{number}")[0]} for number, (path, entity) in enumerate(places)]
    first = registered(registry, schema, kind, schemaTagsToAdd=rows)
    for path in ("/subjects/s/versions/1", f"/schemas/ids/{first['id']}"):
        assert registry.ask("GET", f"{path}?findTags=*")["schemaTags"] == rows
        assert registry.ask("GET", f"{path}?findTags=T1&findTags=none")["schemaTags"] == rows[1:2]
        assert "schemaTags" not in registry.ask("GET", f"{path}?findTags=none")
    text = schema if isinstance(schema, str) else json.dumps(schema)
    second = registry.ask(
        "POST", "/subjects/s/versions", {"schema": text, "schemaType": kind, "propagateSchemaTags": True}
    )
    assert registry.ask("GET", f"/schemas/ids/{second['id']}?findTags=*")["schemaTags"] == rows


def test_tags_of_what_is_gone_are_not_taken_over(registry):
    registered(registry, RECORD, "AVRO", schemaTagsToAdd=tags("shop.Order.price", "sr_field", "X"))
    bare = {**RECORD, "fields": []}
    assert registered(registry, bare, "AVRO", propagateSchemaTags=True)[:2] == [422, 42201]
    assert registered(registry, bare, "AVRO")["version"] == 2


def test_record_is_named_with_its_namespace_or_without(registry):
    registered(registry, RECORD, "AVRO", schemaTagsToAdd=tags("Order", "sr_record", "X"))
    found = registry.ask("GET", "/subjects/s/versions/1?findTags=X")["schemaTags"]
    assert found == tags("shop.Order", "sr_record", "X")


@pytest.mark.parametrize("text", ["", " ", None])
def test_tags_are_written_into_no_schema_but_the_one_that_is_sent(registry, text):
    registered(registry, RECORD, "AVRO")
    added = tags("shop.Order", "sr_record", "X")
    assert registry.ask("POST", "/subjects/s/versions", {"schema": text, "schemaTagsToAdd": added})[:2] == (422, 42201)
