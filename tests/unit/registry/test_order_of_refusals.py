"""Which refusal comes first: that of the schema before that of the mode, of parameters before that of the subject."""

import json

import pytest
from registry_kit import record_of

ONE, TWO = record_of(a="string"), record_of(a="string", b=("int", 1))
BAD = {"type": "fixed", "name": "F"}
ENUM = {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
WIDER = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
READONLY, IMPORT = {"mode": "READONLY"}, {"mode": "IMPORT"}


def text(schema):
    return {"schema": json.dumps(schema)}


@pytest.mark.parametrize("mode", [READONLY, IMPORT])
def test_what_is_no_schema_is_told_before_the_mode(registry, mode):
    registry.ask("PUT", "/mode/s?force=true", mode)
    assert registry.register("s", BAD)[1] == 42201
    assert registry.register("s", ONE)[1] == 42205
    assert registry.register("s", " ")[1] == 42205


def test_schema_that_is_there_is_answered_in_any_mode_and_form(registry):
    registry.register("s", ONE)
    registry.ask("PUT", "/mode/s", READONLY)
    assert registry.register("s", ONE)["id"] == 1
    assert registry.register("s", json.dumps(ONE, indent=1))["id"] == 1
    assert registry.register("s", ONE, version=-1)["id"] == 1
    assert registry.register("s", ONE, id=1)["id"] == 1
    assert registry.register("s", ONE, id=2)[1] == 42205
    assert registry.register("s", ONE, version=2)[1] == 42205


def test_schema_that_is_there_need_not_be_one_as_a_new_one(registry):
    bad = record_of(a=("string", None))
    registry.ask("PUT", "/config/s", {"validateNewSchemas": False})
    registry.register("s", bad)
    registry.ask("PUT", "/config/s", {"validateNewSchemas": True})
    assert registry.register("s", bad)["id"] == 1
    assert registry.register("s", json.dumps(bad, indent=1))["id"] == 1
    assert registry.register("s", record_of(a=("string", 5)))[1] == 42201
    assert registry.register("s", record_of(a=("string", None)), version=-1)["id"] == 1


def test_latest_version_alone_is_meant_by_minus_1(registry):
    registry.register("s", ONE)
    registry.register("s", TWO)
    assert registry.register("s", TWO, version=-1)["version"] == 2
    again = registry.register("s", ONE, version=-1)
    assert (again["version"], again["metadata"]) == (3, {"properties": {"confluent:version": "3"}})


def test_import_gives_a_schema_that_is_there_only_with_its_id(registry):
    registry.ask("PUT", "/mode/s", IMPORT)
    assert registry.register("s", ONE, id=7, version=3)["version"] == 3
    assert registry.register("s", ONE, id=7)["version"] == 3
    assert registry.register("s", ONE, id=7, version=3)["version"] == 3
    assert registry.register("s", TWO, id=7)[1:] == (
        42205,
        "Overwrite new schema with id 7 in context  is not permitted.",
    )
    assert registry.register("s", ONE)["id"] == 7


def test_import_takes_json_that_is_no_json_schema(registry):
    odd = {"type": "object", "minLength": -1, "properties": {"a": {"pattern": "(["}}}
    assert registry.register("s", odd, schemaType="JSON")[1] == 42201
    registry.ask("PUT", "/mode/s", IMPORT)
    assert registry.register("s", odd, schemaType="JSON", id=5)["id"] == 5
    assert registry.ask("GET", "/schemas/ids/5/schema") == json.dumps(odd, separators=(",", ":"))
    assert registry.register("s", '"text"', schemaType="JSON", id=6)["id"] == 6


def test_what_is_no_schema_is_told_where_there_is_no_subject(registry):
    assert registry.ask("POST", "/subjects/none", text(BAD))[1] == 42201
    assert registry.ask("POST", "/subjects/none", text(ENUM))[1] == 42201
    assert registry.ask("POST", "/subjects/none", text(ONE))[1] == 40401
    assert registry.ask("POST", "/subjects/none", {"schema": ""})[1] == 40401
    registry.register("s", ONE)
    assert registry.ask("POST", "/subjects/s", {"schema": ""})[1] == 40403


@pytest.mark.parametrize(
    "path", ["/subjects/none/versions", "/subjects/none/versions/1/referencedby", "/schemas/ids/9/versions"]
)
def test_parameters_are_read_before_what_they_are_about(registry, path):
    assert registry.ask("GET", f"{path}?offset=x")[1] == 404
    assert registry.ask("GET", f"{path}?limit=3000000000")[1] == 404
    assert registry.ask("GET", path)[1] in (40401, 40403)


def test_first_of_a_parameter_counts_and_a_limit_of_0_is_none(registry):
    registry.register("s", ONE)
    registry.register("s", TWO)
    assert registry.ask("GET", "/subjects/s/versions?limit=1&limit=2") == [1]
    assert registry.ask("GET", "/subjects/s/versions?limit=0") == [1, 2]
    assert registry.ask("GET", "/subjects/s/versions?offset=1") == [2]
    assert registry.ask("POST", "/subjects/s/versions?normalize=true&normalize=false", text(ONE))["id"] == 1


@pytest.mark.parametrize(("number", "code"), [("-1", 40403), ("-2147483648", 404), ("x", 404), ("2147483648", 404)])
def test_id_that_is_a_number_is_looked_for(registry, number, code):
    assert registry.ask("GET", f"/schemas/ids/{number}")[1] == code


def test_ids_of_a_guid_that_is_not_there_are_none(registry):
    assert registry.ask("GET", "/schemas/guids/none/ids") == []
    assert registry.ask("GET", "/schemas/guids/none")[1] == 40403
    guid = registry.register("s", ONE)["guid"]
    assert registry.ask("GET", f"/schemas/guids/{guid}")["guid"] == guid
    assert registry.ask("GET", f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 1}]


def test_settings_are_answered_as_they_were_given(registry):
    assert registry.ask("PUT", "/mode/s", {"mode": "import"}) == {"mode": "import"}
    assert registry.ask("GET", "/mode/s") == {"mode": "IMPORT"}
    assert registry.ask("PUT", "/mode/s", {})[1] == 42204
    assert registry.ask("PUT", "/mode/other", {"mode": None}) == {"mode": None}
    assert registry.ask("DELETE", "/mode/none?recursive=true") == {}
    assert registry.ask("DELETE", "/mode/none")[1] == 40401
    assert registry.ask("PUT", "/config/s", {"alias": ""}) == {"alias": ""}
    assert registry.ask("GET", "/config/s") == {"compatibilityLevel": "BACKWARD"}
    assert registry.ask("PUT", "/config/s", {"normalize": True}) == {"normalize": True}
    assert registry.ask("POST", "/subjects/s/versions", {**text(ONE), "id": 1})["id"] == 1


def test_alias_of_itself_is_listed_too(registry):
    registry.register("s", ONE)
    registry.ask("PUT", "/config/s", {"alias": "s"})
    assert [each["aliases"] for each in registry.ask("GET", "/schemas?aliases=true")] == [["s"]]


def test_lists_of_schemas_know_deleted_but_not_deleted_only(registry):
    registry.register("s", ONE)
    registry.ask("DELETE", "/subjects/s")
    assert registry.ask("GET", "/schemas?deletedOnly=true") == []
    assert len(registry.ask("GET", "/schemas?deleted=true")) == 1


@pytest.mark.parametrize(("policy", "fits"), [("STRICT", False), ("LENIENT", True), ("lenient", True)])
def test_lenient_policy_lets_open_objects_gain_properties(registry, policy, fits):
    assert registry.ask("PUT", "/config/s", {"compatibilityPolicy": policy}) == {"compatibilityPolicy": policy}
    registry.register("s", OPEN, schemaType="JSON")
    body = {**text(WIDER), "schemaType": "JSON"}
    assert registry.ask("POST", "/compatibility/subjects/s/versions/latest", body) == {"is_compatible": fits}
    answer = registry.register("s", WIDER, schemaType="JSON")
    assert ("id" in answer) if fits else (answer[1] == 409)


def test_metadata_without_properties_has_none_of_them(registry):
    registry.register("s", ONE)
    assert registry.ask("GET", "/subjects/s/metadata")[1] == 40403
    registry.register("s", TWO, metadata={"tags": {"a": ["PII"]}})
    assert registry.ask("GET", "/subjects/s/metadata")["version"] == 2
    assert registry.ask("GET", "/subjects/s/metadata?key=a&value=b")[1] == 40403
