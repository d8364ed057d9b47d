"""Associations of subjects and resources: kept as Confluent's registry keeps them, and held to its rules."""

from __future__ import annotations

import json

import pytest
from registry_kit import RegistryKit

from broker.registry.associations.touched import Touched, touched
from broker.registry.records import decode, encode
from broker.registry.state import RegistryState
from broker.shell.registry.service import Call

TOPIC = {"resourceName": "orders", "resourceNamespace": "lkc-1", "resourceId": "id-1"}
DEFAULT = ":.lkc-1:orders-value"


def associate(registry, *items, method="POST", query="", **more):
    path = "/associations" if method == "POST" else "/associations/resources/id-1"
    return registry.ask(method, path + query, {**TOPIC, "associations": list(items), **more})


def weak(subject, kind="value"):
    return {"subject": subject, "associationType": kind, "lifecycle": "WEAK"}


def strong(schema='"int"', kind="value"):
    return {"associationType": kind, "schema": {"schema": schema}}


def told(row):
    return {key: value for key, value in row.items() if key != "guid"}


def test_record_has_confluents_form(registry):
    registry.register("s", '"string"')
    assert associate(registry, weak("s")) == {**TOPIC, "resourceType": "topic", "associations": [weak("s")]}
    (row,) = registry.ask("GET", "/associations/resources/id-1")
    assert told(row) == {**TOPIC, "resourceType": "topic", **weak("s")}
    key, value = registry.log[-1]
    assert key == (
        b'{"keytype":"ASSOC","tenant":"default","resourceName":"orders","resourceNamespace":"lkc-1",'
        b'"resourceType":"topic","associationType":"value","subject":"s","magic":0}'
    )
    assert json.loads(value) == {"tenant": "default", **row, "frozen": False}


def test_strong_association_registers_its_schemas_with_an_id_each(registry):
    made = associate(registry, strong('"int"'), strong('"long"', "key"))
    subjects = [(each["subject"], each["schema"]["id"], each["schema"]["schema"]) for each in made["associations"]]
    assert subjects == [(DEFAULT, 1, '"int"'), (":.lkc-1:orders-key", 2, '"long"')]
    assert registry.register(DEFAULT, '"int"')["id"] == 1
    assert registry.register(":.lkc-1:other", '"float"')["id"] == 3


def test_schemas_that_are_one_have_one_id(registry):
    made = associate(registry, strong('"int"'), strong('"int"', "key"))
    assert [each["schema"]["id"] for each in made["associations"]] == [1, 1]


def test_same_request_again_changes_nothing_and_another_is_refused(registry):
    associate(registry, strong())
    length = len(registry.log)
    assert "associations" not in associate(registry, strong())
    assert associate(registry, strong('"long"'))[:2] == (409, 40903)
    assert len(registry.log) == length


def test_it_is_found_by_each_of_its_names(registry):
    registry.register("s", '"string"')
    associate(registry, weak("s"), weak("s", "key"))
    for path in ("subjects/s", "resources/id-1", "resources/lkc-1/orders", "resources/-/orders", "resources/lkc-1/-"):
        kinds = [each["associationType"] for each in registry.ask("GET", f"/associations/{path}")]
        assert kinds == ["key", "value"]
        assert len(registry.ask("GET", f"/associations/{path}?associationType=key&lifecycle=WEAK")) == 1
        assert registry.ask("GET", f"/associations/{path}?lifecycle=STRONG") == []
    assert registry.ask("GET", "/associations/resources/none") == []
    (row,) = registry.ask("GET", "/schemas?associationType=key")
    assert [each["associationType"] for each in row["associations"]] == ["key"]
    assert registry.ask("GET", "/schemas?lifecycle=NONE") == []
    assert registry.ask("GET", "/schemas?lifecycle=OTHER&subjectPrefix=none")[:2] == (404, 404)


# What a request is refused by, after ("s", a schema) is registered.
REFUSED = [
    (weak("none"), 409, 40907),
    (weak(""), 422, 42212),
    ({**weak("s"), "associationType": "other"}, 422, 42212),
    ({**weak("s"), "frozen": True}, 422, 42212),
    ({**weak("s"), "schema": {"schema": '"int"'}}, 422, 42212),
    (weak(DEFAULT), 422, 42212),
    ({**strong(), "frozen": False}, 422, 42212),
    ({**strong(), "subject": "s"}, 422, 42212),
    ({"lifecycle": "STRONG"}, 422, 42212),
    (strong('"what'), 422, 42201),
    ({**weak("s"), "lifecycle": "weak"}, 400, 400),
]


@pytest.mark.parametrize(("item", "status", "code"), REFUSED)
def test_what_does_not_go_together_is_refused_and_leaves_nothing(registry, item, status, code):
    registry.register("s", '"string"')
    length = len(registry.log)
    assert associate(registry, item)[:2] == (status, code)
    assert len(registry.log) == length


def test_request_is_done_as_a_whole_or_not(registry):
    assert associate(registry, strong(), weak("none", "key"))[:2] == (422, 42212)
    assert associate(registry, strong(), strong("none", "key"))[:2] == (422, 42201)
    assert registry.log == []


def test_dry_run_writes_nothing(registry):
    answer = associate(registry, strong(), query="?dryRun=true", resourceId=None)
    assert answer == {"resourceName": "orders", "resourceNamespace": "lkc-1", "resourceType": "topic"}
    assert registry.log == []


def test_update_makes_weak_ones_alone_and_changes_no_subject(registry):
    registry.register("s", '"string"')
    registry.register("t", '"string"')
    assert associate(registry, {"lifecycle": "STRONG"}, method="PUT")[:2] == (422, 42212)
    assert associate(registry, strong(), method="PUT")[:2] == (422, 42212)
    assert associate(registry, {"subject": "s"}, method="PUT")["associations"] == [weak("s")]
    assert associate(registry, weak("t"), method="PUT")[:2] == (422, 42212)
    assert associate(registry, weak("s"), method="PUT", resourceId="id-2")[:2] == (422, 42212)
    assert associate(registry, strong(kind="key"))[2].endswith("but got value=WEAK, key=STRONG")


def test_weak_one_is_not_added_beside_a_strong_one(registry):
    registry.register("s", '"string"')
    associate(registry, strong())
    refusal = associate(registry, {"subject": "s", "associationType": "key"}, method="PUT")
    assert refusal[2].endswith("but got value=STRONG, key=WEAK")


def test_what_an_association_owns_is_no_ones_else(registry):
    associate(registry, strong())
    reference = {"name": "r", "subject": DEFAULT, "version": 1}
    assert registry.register("s", '"string"', references=[reference])[:2] == (422, 42205)
    other = {"resourceName": "other", "resourceId": "id-2"}
    assert associate(registry, weak(DEFAULT), **other)[:2] == (409, 40905)
    assert registry.ask("DELETE", "/associations/resources/id-1")[:2] == (409, 40908)


def test_what_is_referred_to_cannot_be_owned(registry):
    registry.register(DEFAULT, '"int"')
    registry.register("s", '"string"', references=[{"name": "r", "subject": DEFAULT, "version": 1}])
    assert associate(registry, strong())[:2] == (422, 42206)


def test_subject_with_an_association_keeps_a_version(registry):
    registry.register("s", '"string"')
    registry.ask("PUT", "/config/s", {"compatibility": "NONE"})
    registry.register("s", '"int"')
    associate(registry, weak("s"))
    assert registry.ask("DELETE", "/subjects/s")[:2] == (409, 40904)
    assert registry.ask("DELETE", "/subjects/s/versions/1") == 1
    assert registry.ask("DELETE", "/subjects/s/versions/2")[:2] == (409, 40907)
    assert registry.ask("DELETE", "/associations/resources/id-1") is None
    assert registry.ask("DELETE", "/associations/resources/id-1")[:2] == (404, 40410)
    assert registry.ask("DELETE", "/subjects/s/versions/2") == 2


def test_cascade_takes_the_subject_and_gives_no_id_again(registry):
    associate(registry, strong(), strong('"long"', "key"))
    assert registry.ask("DELETE", "/associations/resources/id-1?cascadeLifecycle=true") is None
    assert registry.ask("GET", "/subjects?deleted=true") == []
    registry.clean()
    registry.restart()
    assert registry.register(DEFAULT, '"float"')["id"] == 3


def test_read_only_subject_is_left_alone(registry):
    registry.register("s", '"string"')
    registry.ask("PUT", "/mode/s", {"mode": "READONLY"})
    assert associate(registry, weak("s")) == (422, 42205, "Subject s in context . is in read-only mode")


def test_batch_answers_for_each_resource(registry):
    registry.register("s", '"string"')
    rows = [
        {**TOPIC, "associations": [{"opType": "CREATE", **weak("s")}]},
        {**TOPIC, "associations": [{"opType": "CREATE", **weak("none", "key")}]},
        {**TOPIC, "associations": [{"opType": "DELETE", "frozen": "x"}, {"opType": "UPSERT", **weak("s", "key")}]},
    ]
    results = registry.ask("POST", "/associations:batchMutate", {"requests": rows})["results"]
    assert results[0]["result"]["associations"] == [weak("s")]
    assert results[1]["error"]["error_code"] == 40907
    assert results[2]["result"]["associations"] == [weak("s", "key")]
    asked = {"requests": [{"resourceId": "id-1"}, {"resourceName": "orders"}]}
    found, refused = registry.ask("POST", "/associations:batchGet?includeSchemas=true", asked)["results"]
    assert found["result"]["associations"][0]["schema"]["schema"] == '"string"'
    assert refused["error"]["error_code"] == 500
    assert registry.ask("POST", "/associations:batchMutate", {"requests": []})[:2] == (422, 42212)
    rows = [{**TOPIC, "associations": [{"opType": "CREATE", **weak(""), "frozen": True}]}]
    (refused,) = registry.ask("POST", "/associations:batchMutate", {"requests": rows})["results"]
    assert "'frozen'" in refused["error"]["message"]


def test_state_is_that_of_the_records_live_cleaned_and_at_a_start(registry):
    registry.register("s", '"string"')
    associate(registry, weak("s"), weak("s", "key"))
    associate(registry, strong(), resourceName="other", resourceId="id-2")
    registry.ask("DELETE", "/associations/resources/id-1?associationType=key")
    before = registry.state.facts()
    assert len(before["associations"]) == 2
    assert registry.replayed().facts() == before
    registry.clean()
    assert registry.replayed().facts()["associations"] == before["associations"]


def test_time_of_making_outlives_a_change_and_the_cleaner(registry):
    registry.register("s", '"string"')
    associate(registry, weak("s"))
    table = RegistryState().associations
    table.replay(decode(*registry.log[-1]), 1000)
    (row,) = table.rows()
    changed = row._replace(lifecycle="STRONG").record()
    table.replay(changed, 2000)
    shown = table.rows()[0].to_json()
    assert (shown["createTs"], shown["updateTs"], shown["frozen"]) == (1000, 2000, False)
    cleaned = RegistryState().associations
    cleaned.replay(decode(*encode(changed)), 2000)
    assert cleaned.rows() == table.rows()


@pytest.mark.parametrize(
    "change",
    [{"guid": None}, {"resourceId": 3}, {"lifecycle": "OTHER"}, {"createTs": "x"}],
)
def test_record_that_is_none_is_passed_over(registry, change):
    registry.register("s", '"string"')
    associate(registry, weak("s"))
    key, value = registry.log[-1]
    with pytest.raises(ValueError, match="ASSOC"):
        decode(key, json.dumps({**json.loads(value), **change}).encode())
    with pytest.raises(ValueError, match="ASSOC"):
        decode(json.dumps({**json.loads(key), "resourceName": None}).encode(), value)
    assert decode(json.dumps({**json.loads(key), "tenant": "other"}).encode(), value) is None


def test_releases_before_8_have_none():
    registry = RegistryKit("7.9")
    assert registry.ask("GET", "/associations/resources/id-1")[:2] == (404, 404)
    assert associate(registry, weak("s"))[:2] == (404, 404)


def touches(registry, method, path, body=None):
    call = Call(method, path)
    call.body = body or {}
    return touched(registry.state, call.ask(registry.state), call.route.needs)


def test_authorizer_is_asked_of_each_subject_and_of_the_topic(registry):
    registry.register("s", '"string"')
    referring = {"associationType": "key", "schema": {"schema": '"int"', "references": [{"subject": "r"}]}}
    body = {**TOPIC, "associations": [weak("s"), referring]}
    owned, referred = ":.lkc-1:orders-key", ":.lkc-1:r"
    wanted = [Touched("write", topic="orders"), Touched("write", "s"), Touched("write", owned)]
    assert touches(registry, "POST", "/associations", body) == [*wanted, Touched("describe", referred)]
    associate(registry, weak("s"))
    assert touches(registry, "DELETE", "/associations/resources/id-1") == [Touched("delete", "s")]
    batch = {"requests": [{**TOPIC, "associations": [{"opType": "DELETE"}, {"opType": "UPSERT", **weak("t", "key")}]}]}
    wanted = [Touched("write", topic="orders"), Touched("delete", "s"), Touched("write", "t")]
    assert touches(registry, "POST", "/associations:batchMutate", batch) == wanted
    assert touches(registry, "PUT", "/associations/resources/id-1", {"associations": [{}]})[1:] == [
        Touched("write", "s")
    ]
