"""`registry.as`: what a registry answers differs where Confluent's releases differ, and nowhere else."""

import json

import pytest
from registry_kit import RegistryKit, record_of

from broker.config.settings import BrokerConfig, ConfigError
from broker.registry.errors import RegistryError
from broker.registry.releases import DEFAULT_RELEASE, INCOMPATIBLE, OLDER_CODES, SERVER_VERSIONS

ONE, OTHER = record_of(a="string"), record_of(b="int")


@pytest.mark.parametrize(("release", "code"), [("", 409), ("7.9", 409), ("8.0", 40901)])
def test_schema_that_does_not_fit_has_the_code_of_the_release(release, code):
    registry = RegistryKit(release)
    registry.register("s", ONE)
    status, found, text = registry.register("s", OTHER)
    assert (status, found) == (409, code)
    assert text.startswith('Schema being registered is incompatible with an earlier schema for subject "s", details: [')


@pytest.mark.parametrize(
    ("release", "registered", "by_id", "by_version"),
    [
        ("", {"id", "version", "guid"}, {"schema", "guid"}, {"subject", "version", "id", "schema", "guid"}),
        ("7.9", {"id"}, {"schema"}, {"subject", "version", "id", "schema"}),
        (
            "8.0",
            {"id", "version", "guid"},
            {"schema", "guid", "schemaType", "subject", "version"},
            {"subject", "version", "id", "schema", "guid", "schemaType"},
        ),
    ],
)
def test_answer_has_the_fields_of_the_release(release, registered, by_id, by_version):
    registry = RegistryKit(release)
    assert registry.register("s", ONE).keys() == registered
    assert registry.register("s", ONE).keys() == registered
    registry.ask("DELETE", "/subjects/s/versions/1")
    later = {"deleted"} if release != "7.9" else set()
    assert registry.ask("GET", "/schemas/ids/1").keys() == by_id | later
    assert registry.ask("GET", "/subjects/s/versions/1?deleted=true").keys() == by_version | later
    assert [each.keys() for each in registry.ask("GET", "/schemas?deleted=true")] == [by_version | later]
    body = {"schema": json.dumps(ONE)}
    assert registry.ask("POST", "/subjects/s?deleted=true", body).keys() == by_version | later
    tagged = {**body, "metadata": {"properties": {"a": "b"}}, "version": 2}
    answer = registry.ask("POST", "/subjects/s/versions", tagged)
    assert ("guid" in answer) == (release != "7.9")
    assert answer["version"] == 2
    assert registry.ask("GET", "/v1/metadata/version")["version"].startswith(release or "7.9")


def test_default_is_the_code_that_clients_of_any_age_know_with_all_fields():
    assert BrokerConfig({}).registry_as == DEFAULT_RELEASE == ""
    for release in OLDER_CODES:
        assert BrokerConfig({"registry.as": release}).registry_as == release
    assert OLDER_CODES.keys() == SERVER_VERSIONS.keys()
    with pytest.raises(ConfigError, match=r"registry\.as"):
        BrokerConfig({"registry.as": "6.0"})


def test_code_that_a_fault_was_given_is_left():
    assert RegistryError(409, INCOMPATIBLE, "x", fault="mine").as_of("7.9").code == INCOMPATIBLE
    assert RegistryError(409, INCOMPATIBLE, "x").as_of("7.9").code == 409
