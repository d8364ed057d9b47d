"""`registry.as`: what a registry answers differs where Confluent's releases differ, and nowhere else."""

import pytest
from registry_kit import RegistryKit, record_of

from broker.config.settings import BrokerConfig, ConfigError
from broker.registry.errors import RegistryError
from broker.registry.releases import DEFAULT_RELEASE, INCOMPATIBLE, OLDER_CODES, SERVER_VERSIONS

ONE, OTHER = record_of(a="string"), record_of(b="int")


@pytest.mark.parametrize(("release", "code"), [("7.9", 409), ("8.0", 40901)])
def test_schema_that_does_not_fit_has_the_code_of_the_release(release, code):
    registry = RegistryKit(release)
    registry.register("s", ONE)
    status, found, text = registry.register("s", OTHER)
    assert (status, found) == (409, code)
    assert text.startswith('Schema being registered is incompatible with an earlier schema for subject "s", details: [')


@pytest.mark.parametrize(("release", "more"), [("7.9", {}), ("8.0", {"subject": "s", "version": 1})])
def test_answer_names_what_the_release_names(release, more):
    registry = RegistryKit(release)
    number = registry.register("s", ONE)["id"]
    shown = {} if release == "7.9" else {"schemaType": "AVRO"}
    by_id = registry.ask("GET", f"/schemas/ids/{number}")
    assert {key: by_id[key] for key in ("subject", "version", "schemaType") if key in by_id} == {**shown, **more}
    for found in (registry.ask("GET", "/subjects/s/versions/1"), *registry.ask("GET", "/schemas")):
        assert found.get("schemaType") == shown.get("schemaType")
    assert registry.ask("GET", "/v1/metadata/version")["version"].startswith(release)


def test_default_is_the_release_that_clients_of_any_age_know():
    assert BrokerConfig({}).registry_as == DEFAULT_RELEASE == "7.9"
    assert BrokerConfig({"registry.as": "8.0"}).registry_as == "8.0"
    assert OLDER_CODES.keys() == SERVER_VERSIONS.keys()
    with pytest.raises(ConfigError, match=r"registry\.as"):
        BrokerConfig({"registry.as": "6.0"})


def test_code_that_a_fault_was_given_is_left():
    assert RegistryError(409, INCOMPATIBLE, "x", fault="mine").as_of("7.9").code == INCOMPATIBLE
    assert RegistryError(409, INCOMPATIBLE, "x").as_of("7.9").code == 409
