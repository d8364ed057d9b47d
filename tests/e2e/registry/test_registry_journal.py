"""Requests of the registry in the journal: who registered what, which id it was given, and why it was refused."""

from __future__ import annotations

from momus.faults import once

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
OTHER = {**ORDER, "fields": [{"name": "price", "type": "double"}]}


def entries(broker):
    return broker.journal.entries(api="Registry")


def test_registration_is_kept_with_its_id_beside_kafkas_requests(broker, registry):
    registry.register("orders-value", ORDER)
    broker.create_topic("orders")
    (entry,) = entries(broker)
    assert (entry["api"], entry["listener"], entry["principal"]) == ("Registry", "REGISTRY", "User:ANONYMOUS")
    assert (entry["request"]["route"], entry["request"]["subject"]) == ("RegisterSchema", "orders-value")
    assert '"name": "Order"' in entry["request"]["body"]["schema"]
    assert (entry["response"]["status"], entry["response"]["id"], entry["response"]["version"]) == (200, 1, 1)
    assert entry["latency_ms"] >= 0


def test_refusal_says_field_and_versions_in_a_sentence(broker, registry):
    registry.register("orders-value", ORDER)
    registry.register("orders-value", OTHER)
    entry = entries(broker)[-1]
    assert entry["errors"] == ["409"]
    assert entry["why"] == (
        "the new schema of orders-value does not fit version 1: READER_FIELD_MISSING_DEFAULT_VALUE at /fields/0"
    )


def test_fault_that_acted_is_named(broker, registry):
    fault = broker.faults.registry("error", trigger=once)
    registry.ask("GET", "/subjects")
    assert entries(broker)[-1]["fault"] == fault.name


def test_requests_are_verified_by_their_number(broker, registry):
    registry.ask("GET", "/subjects")
    registry.ask("GET", "/subjects")
    broker.journal.verify(api="Registry", times=2)
    assert "Registry" in broker.journal.last()


def test_line_of_the_journal_names_the_subject(broker, registry):
    registry.ask("GET", "/subjects/orders-value/versions")
    assert "subject=orders-value  40401  (Subject 'orders-value' not found.)" in broker.journal.last()


def test_association_is_kept_with_its_subject_and_what_is_long_is_cut(broker, registry):
    registry.register("orders-value", ORDER)
    named = {"resourceName": "orders", "resourceNamespace": "cluster", "resourceId": "r" * 2000}
    registry.ask("POST", "/associations", {**named, "associations": [{"subject": "orders-value"}]})
    deep = {"associations": [{"subject": ["x"] * 100, "a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}]}
    assert registry.ask("POST", "/associations", deep)[0] == 400
    made, refused = entries(broker)[-2:]
    assert made["request"]["route"] == "CreateAssociation"
    assert made["request"]["body"]["resourceId"] == made["response"]["resourceId"] == "r" * 1000
    assert made["response"]["associations"][0]["subject"] == "orders-value"
    (item,) = refused["request"]["body"]["associations"]
    assert (item["subject"], item["a"]) == (["x"] * 20, {"b": {"c": {"d": {}}}})
