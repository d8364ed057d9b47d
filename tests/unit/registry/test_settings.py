"""Config and mode: global, of a subject, and gone again."""

from __future__ import annotations

import pytest
from registry_kit import record_of

ONE = record_of(id="long")


def test_config_of_a_subject_stands_before_the_global_one(registry):
    assert registry.ask("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.ask("PUT", "/config", {"compatibility": "full"}) == {"compatibility": "FULL"}
    assert registry.ask("GET", "/config/s?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}
    registry.ask("PUT", "/config/s", {"compatibility": "NONE", "normalize": True})
    assert registry.ask("GET", "/config/s") == {"compatibilityLevel": "NONE", "normalize": True}
    registry.ask("PUT", "/config/s", {"normalize": None})
    assert registry.ask("GET", "/config/s") == {"compatibilityLevel": "NONE"}
    assert registry.ask("DELETE", "/config/s") == {"compatibilityLevel": "NONE"}
    assert registry.ask("DELETE", "/config/s")[:2] == (404, 40401)
    registry.ask("DELETE", "/config")
    assert registry.ask("GET", "/config") == {"compatibilityLevel": "BACKWARD"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"compatibility": "SOME"}, 42203),
        ({"normalize": "yes"}, 422),
        ({"alias": 5}, 422),
        ({"compatibilityGroup": ["major"]}, 422),
        ({"defaultRuleSet": {"domainRules": [{"name": "a b", "type": "CEL"}]}}, 42210),
        ({"compatibilityPolicy": "LOGICAL"}, 501),
    ],
)
def test_config_that_is_not_served_is_refused(registry, body, code):
    assert registry.ask("PUT", "/config", body)[1] == code
    assert registry.log == []


def test_default_and_override_metadata_are_merged_into_what_is_registered(registry):
    registry.ask("PUT", "/config", {"defaultMetadata": {"properties": {"a": "1", "b": "1"}}})
    registry.ask("PUT", "/config/s", {"overrideMetadata": {"properties": {"b": "3"}}})
    answer = registry.register("s", ONE, metadata={"properties": {"a": "2", "b": "2"}})
    assert answer["metadata"] == {"properties": {"a": "2", "b": "3"}}


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE"])
def test_read_only_refuses_whatever_writes(registry, mode):
    registry.register("s", ONE)
    registry.ask("PUT", "/mode", {"mode": mode})
    refused = [
        registry.register("s", record_of(id="long", a=("int", 1))),
        registry.ask("DELETE", "/subjects/s"),
        registry.ask("DELETE", "/subjects/s/versions/1"),
        registry.ask("PUT", "/config/s", {"compatibility": "FULL"}),
    ]
    assert [answer[1] for answer in refused] == [42205] * 4
    assert refused[0][2] == "Subject s in context  is in read-only mode"
    assert registry.ask("PUT", "/mode", {"mode": "READWRITE"}) == {"mode": "READWRITE"}
    assert registry.ask("DELETE", "/subjects/s") == [1]


def test_mode_of_a_subject_stands_before_the_global_one_but_not_before_override(registry):
    registry.ask("PUT", "/mode", {"mode": "READONLY"})
    registry.ask("PUT", "/mode/s", {"mode": "readwrite"})
    assert registry.register("s", ONE)["id"] == 1
    registry.ask("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
    assert registry.register("s", record_of(a="int"))[1] == 42205


def test_import_takes_ids_and_versions_and_compares_nothing(registry):
    assert registry.ask("PUT", "/mode/s", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert registry.register("s", ONE)[1] == 42205  # without an id
    answer = registry.register("s", ONE, id=100, version=5)
    assert (answer["id"], answer["version"]) == (100, 5)
    assert registry.register("s", record_of(id="string"), id=101, version=7)["version"] == 7
    assert registry.register("s", record_of(x="int"), id=100)[1] == 42205  # the id of another content
    registry.ask("PUT", "/mode/s", {"mode": "READWRITE"})
    assert registry.register("t", record_of(x="int"))["id"] == 102


def test_import_needs_a_subject_without_schemas_or_force(registry):
    registry.register("s", ONE)
    assert registry.ask("PUT", "/mode/s", {"mode": "IMPORT"})[:2] == (422, 42205)
    assert registry.ask("PUT", "/mode/s?force=true", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    registry.ask("DELETE", "/mode/s")
    registry.ask("DELETE", "/subjects/s")
    assert registry.ask("PUT", "/mode/s", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert registry.ask("GET", "/subjects?deleted=true") == []


@pytest.mark.parametrize(("path", "mode"), [("/mode", "OFTEN"), ("/mode/s", "FORWARD"), ("/mode", 7)])
def test_what_is_no_mode_is_refused(registry, path, mode):
    assert registry.ask("PUT", path, {"mode": mode})[:2] == (422, 42204)


def test_mode_is_taken_away(registry):
    registry.ask("PUT", "/mode/s", {"mode": "READONLY"})
    assert registry.ask("GET", "/mode/s") == {"mode": "READONLY"}
    assert registry.ask("DELETE", "/mode/s") == {"mode": "READONLY"}
    assert registry.ask("GET", "/mode/s?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert registry.ask("DELETE", "/mode/s")[:2] == (404, 40401)
