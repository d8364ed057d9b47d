"""Contexts: subjects and ids of their own, by names and by paths; aliases, which stand for a subject."""

from __future__ import annotations

import json

import pytest
from registry_kit import record_of

ONE = record_of(id="long")
TWO = record_of(id="long", note=("string", ""))


def test_context_has_subjects_versions_and_ids_of_its_own(registry):
    registry.register("s", ONE)
    registry.register("t", TWO)
    assert registry.register(":.c:s", TWO)["id"] == 1
    assert registry.register("s", TWO)["id"] == 2
    assert registry.ask("GET", "/contexts") == [".", ".c"]
    assert registry.ask("GET", "/subjects") == [":.c:s", "s", "t"]
    assert registry.ask("GET", "/subjects?subjectPrefix=") == ["s", "t"]
    assert registry.ask("GET", "/subjects?subjectPrefix=:.c:") == [":.c:s"]
    assert registry.ask("GET", "/subjects?subjectPrefix=:*:s") == [":.c:s", "s"]
    assert registry.ask("GET", "/contexts?contextPrefix=.c") == [".c"]


@pytest.mark.parametrize("name", [".c", "c", ":.c:"])
def test_path_of_a_context_is_that_of_its_subjects(registry, name):
    registry.register("other", ONE)
    body = {"schema": '"string"'}
    assert registry.ask("POST", f"/contexts/{name}/subjects/s/versions", body)["id"] == 1
    assert registry.ask("GET", f"/contexts/{name}/subjects") == [":.c:s"]
    assert registry.ask("GET", f"/contexts/{name}/subjects/s/versions/1")["subject"] == ":.c:s"
    assert registry.ask("GET", f"/contexts/{name}/schemas/ids/1")["schema"] == '"string"'
    assert registry.ask("GET", f"/contexts/{name}/schemas")[0]["subject"] == ":.c:s"
    assert registry.ask("PUT", f"/contexts/{name}/config", {"compatibility": "NONE"}) == {"compatibility": "NONE"}
    assert registry.ask("GET", "/config/:.c:s?defaultToGlobal=true")["compatibilityLevel"] == "NONE"
    assert registry.ask("GET", "/config")["compatibilityLevel"] == "BACKWARD"


def test_name_of_a_context_has_no_colon(registry):
    assert registry.ask("GET", "/contexts/a:b/subjects")[:2] == (400, 400)


def test_id_and_version_are_looked_for_in_other_contexts_where_none_is_named(registry):
    registry.register(":.c:s", ONE)
    assert registry.ask("GET", "/schemas/ids/1")[:2] == (404, 40403)
    assert registry.ask("GET", "/schemas/ids/1?subject=s")["schema"]
    assert registry.ask("GET", "/schemas/ids/1?subject=:.c:")["schema"]
    assert registry.ask("GET", "/schemas/ids/1?subject=:.d:")[:2] == (404, 40403)
    assert registry.ask("GET", "/subjects/s/versions/1")["subject"] == ":.c:s"
    assert registry.ask("GET", "/schemas/ids/1/versions?subject=s") == [{"subject": ":.c:s", "version": 1}]
    guid = registry.ask("GET", "/subjects/s/versions/1")["guid"]
    assert registry.ask("GET", f"/schemas/guids/{guid}/ids") == [{"context": ".c", "id": 1}]


def test_settings_are_those_of_the_nearest(registry):
    registry.ask("PUT", "/config/:.__GLOBAL:", {"compatibility": "FULL"})
    assert registry.ask("GET", "/config/s?defaultToGlobal=true")["compatibilityLevel"] == "FULL"
    for name in (":.c:", ":.c:s", ""):
        assert registry.ask("GET", f"/config/{name}?defaultToGlobal=true")["compatibilityLevel"] == "FULL"
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    assert registry.ask("GET", "/config/s?defaultToGlobal=true")["compatibilityLevel"] == "NONE"
    assert registry.ask("GET", "/config/:.c:s?defaultToGlobal=true")["compatibilityLevel"] == "FULL"
    registry.ask("PUT", "/mode/:.c:", {"mode": "READONLY"})
    assert registry.ask("GET", "/mode/:.c:s?defaultToGlobal=true") == {"mode": "READONLY"}
    assert registry.register(":.c:s", ONE)[:2] == (422, 42205)
    assert registry.register("s", ONE)["id"] == 1


def test_modes_of_a_contexts_subjects_go_with_it_where_that_is_asked(registry):
    for name in ("s", ":.c:s", ":.c:"):
        registry.ask("PUT", f"/mode/{name}", {"mode": "READONLY"})
    assert registry.ask("DELETE", "/mode/:.c:?recursive=true") == {"mode": "READONLY"}
    assert registry.ask("GET", "/mode/:.c:s")[:2] == (404, 40409)
    assert registry.ask("GET", "/mode/s") == {"mode": "READONLY"}


def test_reference_is_of_the_referring_schemas_context(registry):
    money = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}
    registry.register(":.c:money", money)
    references = [{"name": "shop.Money", "subject": "money", "version": 1}]
    order = record_of(price="shop.Money")
    assert registry.register("order", order, references=references)[:2] == (422, 42201)
    assert registry.register(":.c:order", order, references=references)["id"] == 2
    assert registry.ask("GET", "/subjects/:.c:money/versions/1/referencedby") == [2]


def test_alias_stands_for_a_subject(registry):
    registry.register("orders", ONE)
    assert registry.ask("PUT", "/config/bestellungen", {"alias": "orders"}) == {"alias": "orders"}
    assert registry.ask("GET", "/subjects/bestellungen/versions/1")["subject"] == "orders"
    assert registry.register("bestellungen", TWO)["version"] == 2
    assert registry.ask("GET", "/subjects") == ["orders"]
    assert registry.ask("GET", "/schemas?aliases=true&latestOnly=true")[0]["aliases"] == ["bestellungen"]
    assert registry.ask("GET", "/config/bestellungen")["alias"] == "orders"


def test_alias_of_all_stands_for_nothing(registry):
    registry.ask("PUT", "/config", {"alias": "orders"})
    registry.register("orders", ONE)
    assert registry.ask("GET", "/subjects/other/versions/1")[:2] == (404, 40401)


def test_records_say_the_same_after_a_restart(registry):
    registry.register(":.c:s", ONE)
    registry.ask("PUT", "/mode/:.c:", {"mode": "READONLY"})
    state, facts = registry.state, registry.state.facts()
    registry.restart()
    assert registry.state is not state
    assert registry.state.facts() == facts
    assert registry.ask("GET", "/contexts") == [".", ".c"]


def test_subjects_own_config_takes_flags_of_the_global_one_but_nothing_else(registry):
    registry.ask(
        "PUT", "/config", {"compatibility": "NONE", "normalize": True, "compatibilityGroup": "g", "alias": "a"}
    )
    registry.ask("PUT", "/config/s", {"validateFields": True})
    assert registry.ask("GET", "/config/s?defaultToGlobal=true") == {
        "compatibilityLevel": "BACKWARD",
        "normalize": True,
        "compatibilityGroup": "g",
        "validateFields": True,
    }


def test_context_without_subjects_is_deleted(registry):
    registry.register(":.c:s", ONE)
    assert registry.ask("DELETE", "/contexts/.c")[:2] == (422, 42211)
    registry.ask("DELETE", "/subjects/:.c:s")
    assert registry.ask("DELETE", "/contexts/:.c:")[:2] == (422, 42211)
    registry.ask("DELETE", "/subjects/:.c:s?permanent=true")
    assert registry.ask("DELETE", "/contexts/.c") is None
    assert registry.ask("GET", "/contexts") == ["."]


def test_content_is_looked_up_in_other_contexts_where_none_is_named(registry):
    registry.register(":.c:s", ONE)
    assert registry.ask("POST", "/subjects/s", {"schema": json.dumps(ONE)})["subject"] == ":.c:s"


def test_modes_go_with_a_context_that_has_none_of_its_own(registry):
    registry.ask("PUT", "/mode/:.c:s", {"mode": "READONLY"})
    assert registry.ask("DELETE", "/mode/:.c:")[:2] == (404, 40401)
    assert registry.ask("DELETE", "/mode/:.c:?recursive=true") == {}
    assert registry.ask("GET", "/mode/:.c:s")[:2] == (404, 40409)


def test_references_are_named_with_their_context_where_that_is_asked_for(registry):
    money = {"type": "record", "name": "Money", "fields": []}
    registry.register(":.c:money", money)
    order = {"type": "record", "name": "Order", "fields": [{"name": "a", "type": "Money"}]}
    answer = registry.register(":.c:order", order, references=[{"name": "Money", "subject": "money", "version": 1}])
    for path in ("/subjects/:.c:order/versions/1", f"/schemas/ids/{answer['id']}?subject=:.c:"):
        shown = registry.ask("GET", f"{path}{'&' if '?' in path else '?'}referenceFormat=qualified")
        assert [each["subject"] for each in shown["references"]] == [":.c:money"]
        plain = registry.ask("GET", path)
        assert [each["subject"] for each in plain["references"]] == ["money"]
        assert shown["guid"] == plain["guid"] == answer["guid"]
