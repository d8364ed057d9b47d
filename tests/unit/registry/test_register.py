"""Registering, looking up and testing of schemas, by Confluent's API reference."""

from __future__ import annotations

import json

import pytest
from registry_kit import record_of

ONE = record_of(id="long")
TWO = record_of(id="long", note=("string", ""))
THREE = record_of(id="long", price="double")  # no default: BACKWARD refuses it


def test_first_schema_gets_id_and_version_one(registry):
    answer = registry.register("orders-value", ONE)
    assert (answer["id"], answer["version"]) == (1, 1)


def test_same_schema_again_writes_nothing_and_answers_the_same(registry):
    first = registry.register("orders-value", ONE)
    written = len(registry.log)
    assert registry.register("orders-value", json.dumps(ONE, indent=2)) == first
    assert len(registry.log) == written


def test_canonical_text_again_is_answered_without_an_examination(registry):
    registry.register("orders-value", ONE)
    text = registry.ask("GET", "/schemas/ids/1")["schema"]
    jobs = registry.jobs
    assert registry.register("orders-value", text)["id"] == 1
    assert registry.jobs == jobs


def test_content_of_another_subject_keeps_its_id(registry):
    assert registry.register("orders-value", ONE)["id"] == 1
    assert registry.register("bills-value", TWO)["id"] == 2
    answer = registry.register("more-value", ONE)
    assert (answer["id"], answer["version"]) == (1, 1)


def test_incompatible_schema_is_refused_with_path_and_earlier_version(registry):
    registry.register("orders-value", ONE)
    status, code, message = registry.register("orders-value", THREE)
    assert (status, code) == (409, 409)
    assert message.startswith(
        'Schema being registered is incompatible with an earlier schema for subject "orders-value", details:'
        " [{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'price' at path '/fields/1' in the"
        " new schema has no default value and is missing in the old schema', additionalInfo:'price'},"
        " {oldSchemaVersion: 1}, {oldSchema: '"
    )
    assert message.endswith("'}, {validateFields: 'false', compatibility: 'BACKWARD'}]")


def test_force_registers_what_does_not_fit(registry):
    registry.register("orders-value", ONE)
    answer = registry.ask("POST", "/subjects/orders-value/versions?force=true", {"schema": json.dumps(THREE)})
    assert answer["version"] == 2


@pytest.mark.parametrize(("level", "version"), [("BACKWARD", 3), ("BACKWARD_TRANSITIVE", None), ("NONE", 3)])
def test_transitive_level_compares_with_all_versions(registry, level, version):
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    for schema in (record_of(a="string"), record_of(a="long")):
        registry.register("s", schema)
    registry.ask("PUT", "/config", {"compatibility": level})
    answer = registry.register("s", record_of(a="double"))
    assert (answer["version"] if isinstance(answer, dict) else None) == version


def test_another_type_never_fits(registry):
    registry.register("s", ONE)
    answer = registry.register("s", {"type": "object"}, schemaType="JSON")
    assert answer[:2] == (409, 409)
    assert "Incompatible because of different schema type" in answer[2]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"schema": "{"}, 42201),
        ({"schema": ""}, 42201),
        ({}, 42201),
        ({"schema": '"string"', "schemaType": "THRIFT"}, 42201),
        ({"schema": {"type": "string"}}, 422),
        ({"schema": '"string"', "references": [{"name": "a"}]}, 422),
        ({"schema": '"string"', "ruleSet": {"domainRules": [{}]}}, 42210),
        ({"schema": '"string"', "references": [{"name": "a", "subject": "gone", "version": 1}]}, 42201),
        ({"schema": '"string"', "version": 7}, 42201),
        ({"schema": '"string"', "id": 7}, 42205),
    ],
)
def test_what_is_no_schema_is_refused(registry, body, code):
    assert registry.ask("POST", "/subjects/s/versions", body)[1] == code
    assert registry.log == []


@pytest.mark.parametrize("name", ["__GLOBAL", "__EMPTY", "a\x07b"])
def test_names_that_no_subject_may_have_are_refused(registry, name):
    assert registry.register(name, ONE)[:2] == (422, 42208)


def test_default_context_in_a_name_is_left_out(registry):
    assert registry.register(":.:s", ONE)["id"] == 1
    assert registry.ask("GET", "/subjects") == ["s"]


def test_reference_gives_the_type_that_it_names(registry):
    registry.register("money", {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]})
    order = {"type": "record", "name": "shop.Order", "fields": [{"name": "price", "type": "shop.Money"}]}
    assert registry.register("order", order)[:2] == (422, 42201)
    references = [{"name": "shop.Money", "subject": "money", "version": 1}]
    assert registry.register("order", order, references=references)["id"] == 2
    assert registry.ask("GET", "/subjects/money/versions/1/referencedby") == [2]
    assert registry.ask("GET", "/schemas/ids/2")["references"] == references


def test_look_up_finds_version_by_content_of_any_spelling(registry):
    registry.register("s", ONE)
    registry.register("s", TWO)
    answer = registry.ask("POST", "/subjects/s", {"schema": json.dumps(ONE, indent=1)})
    assert (answer["subject"], answer["version"], answer["id"]) == ("s", 1, 1)
    assert registry.ask("POST", "/subjects/s", {"schema": json.dumps(THREE)})[:2] == (404, 40403)
    assert registry.ask("POST", "/subjects/t", {"schema": json.dumps(ONE)})[:2] == (404, 40401)


def test_normalize_takes_spellings_for_one_content(registry):
    registry.ask("PUT", "/config", {"normalize": True})
    first = registry.register("s", '{"type":"record","name":"A","namespace":"x","fields":[]}')
    assert registry.register("s", '{"name":"x.A","type":"record","fields":[]}') == first


def test_metadata_is_part_of_the_content_and_is_inherited(registry):
    registry.register("s", ONE, metadata={"properties": {"owner": "shop"}})
    assert registry.register("s", TWO)["metadata"] == {"properties": {"owner": "shop"}}
    assert registry.ask("GET", "/subjects/s/metadata?key=owner&value=shop")["version"] == 2
    assert registry.ask("GET", "/subjects/s/metadata?key=owner&value=else")[:2] == (404, 40403)


def test_verbose_test_says_why_and_one_without_it_does_not(registry):
    registry.register("s", ONE)
    path = "/compatibility/subjects/s/versions/latest"
    assert registry.ask("POST", path, {"schema": json.dumps(THREE)}) == {"is_compatible": False}
    answer = registry.ask("POST", path + "?verbose=true", {"schema": json.dumps(THREE)})
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in answer["messages"][0]
    assert registry.ask("POST", path, {"schema": json.dumps(TWO)}) == {"is_compatible": True}


def test_test_of_a_subject_without_versions_is_compatible(registry):
    assert registry.ask("POST", "/compatibility/subjects/s/versions", {"schema": '"int"'}) == {"is_compatible": True}
    assert registry.ask("POST", "/compatibility/subjects/s/versions/3", {"schema": '"int"'})[:2] == (404, 40402)


def test_verbose_test_of_no_schema_says_so_in_the_messages(registry):
    path = "/compatibility/subjects/s/versions/latest"
    assert registry.ask("POST", path, {"schema": "{"})[:2] == (422, 42201)
    assert registry.ask("POST", path + "?verbose=true", {"schema": "{"})["is_compatible"] is False


BAD_DEFAULT = '{"type":"record","name":"R","fields":[{"name":"f","type":"string","default":null}]}'


def test_new_schema_is_held_to_avro_unless_the_config_says_otherwise(registry):
    for path in ("/subjects/s/versions", "/compatibility/subjects/s/versions"):
        assert registry.ask("POST", path, {"schema": BAD_DEFAULT})[:2] == (422, 42201)
    assert registry.ask("PUT", "/config/s", {"validateNewSchemas": False}) == {"validateNewSchemas": False}
    assert registry.ask("POST", "/subjects/s/versions", {"schema": BAD_DEFAULT})["id"] == 1


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (ONE, "AVRO"),
        ({"type": "object", "properties": {"id": {"type": "string"}}}, "JSON"),
        ('syntax = "proto3"; message A { string id = 1; }', "PROTOBUF"),
    ],
)
def test_reserved_field_is_neither_used_nor_given_up_where_fields_are_validated(registry, schema, kind):
    reserved = {"schemaType": kind, "metadata": {"properties": {"confluent:reserved": "x, id"}}}
    assert registry.register("free", schema, **reserved)["id"] == 1
    registry.ask("PUT", "/config", {"validateFields": True})
    refused = registry.register("s", schema, **reserved)
    assert refused[0] == 409
    assert "conflicts with the reserved field id" in refused[2]
    reserved["metadata"] = {"properties": {"confluent:reserved": "x"}}
    registry.register("s", schema, **reserved)
    reserved["metadata"] = {"properties": {"confluent:reserved": "y"}}
    assert "has reserved field x removed" in registry.register("s", schema, **reserved)[2]
