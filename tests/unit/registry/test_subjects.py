"""Reading and deletion of subjects, versions and ids, by Confluent's API reference."""

from __future__ import annotations

import pytest
from registry_kit import record_of

ONE, TWO = record_of(id="long"), record_of(id="long", note=("string", ""))


@pytest.fixture
def orders(registry):
    registry.register("orders", ONE)
    registry.register("orders", TWO)
    registry.register("bills", ONE)
    return registry


def test_subjects_are_listed_sorted_by_prefix_and_page(orders):
    assert orders.ask("GET", "/subjects") == ["bills", "orders"]
    assert orders.ask("GET", "/subjects?subjectPrefix=or") == ["orders"]
    assert orders.ask("GET", "/subjects?subjectPrefix=:*:b") == ["bills"]
    assert orders.ask("GET", "/subjects?offset=1&limit=1") == ["orders"]
    assert orders.ask("GET", "/subjects?limit=x")[0] == 404


def test_version_is_found_by_number_and_as_latest(orders):
    assert orders.ask("GET", "/subjects/orders/versions") == [1, 2]
    assert orders.ask("GET", "/subjects/orders/versions/latest")["version"] == 2
    assert orders.ask("GET", "/subjects/orders/versions/1")["id"] == 1
    assert orders.ask("GET", "/subjects/orders/versions/-1")["version"] == 2


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/subjects/none/versions", 40401),
        ("/subjects/none/versions/1", 40401),
        ("/subjects/orders/versions/3", 40402),
        ("/subjects/orders/versions/0", 42202),
        ("/subjects/orders/versions/x", 42202),
        ("/schemas/ids/9", 40403),
        ("/schemas/ids/9/subjects", 40403),
        ("/schemas/ids/x", 404),
        ("/schemas/guids/00", 40403),
        ("/config/orders", 40408),
        ("/mode/orders", 40409),
        ("/nowhere", 404),
        ("/exporters", 501),
    ],
)
def test_what_is_not_there_has_its_code(orders, path, code):
    assert orders.ask("GET", path)[1] == code


def test_id_tells_schema_subjects_and_versions(orders):
    text = orders.ask("GET", "/subjects/orders/versions/1/schema")
    assert orders.ask("GET", "/schemas/ids/1")["schema"] == text
    assert orders.ask("GET", "/schemas/ids/1/schema") == text
    assert orders.ask("GET", "/schemas/ids/1/subjects") == ["bills", "orders"]
    both = [{"subject": "bills", "version": 1}, {"subject": "orders", "version": 1}]
    assert orders.ask("GET", "/schemas/ids/1/versions?subject=orders") == both
    guid = orders.ask("GET", "/schemas/ids/1")["guid"]
    assert orders.ask("GET", f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 1}]
    assert orders.ask("GET", f"/schemas/guids/{guid}")["schema"] == text


def test_all_schemas_are_listed_or_the_latest(orders):
    rows = orders.ask("GET", "/schemas")
    assert [(row["subject"], row["version"]) for row in rows] == [("bills", 1), ("orders", 1), ("orders", 2)]
    assert len(orders.ask("GET", "/schemas?latestOnly=true&subjectPrefix=orders")) == 1


def test_version_is_deleted_softly_then_for_good(orders):
    assert orders.ask("DELETE", "/subjects/orders/versions/2?permanent=true")[:2] == (404, 40407)
    assert orders.ask("DELETE", "/subjects/orders/versions/2") == 2
    assert orders.ask("DELETE", "/subjects/orders/versions/2")[:2] == (404, 40406)
    assert orders.ask("GET", "/subjects/orders/versions") == [1]
    assert orders.ask("GET", "/subjects/orders/versions?deleted=true") == [1, 2]
    assert orders.ask("GET", "/subjects/orders/versions?deletedOnly=true") == [2]
    assert orders.ask("GET", "/subjects/orders/versions?deletedAsNegative=true") == [1, -2]
    assert orders.ask("GET", "/schemas/ids/2")["schema"]  # messages that were written by it can still be read
    assert orders.ask("DELETE", "/subjects/orders/versions/2?permanent=true") == 2
    assert orders.ask("GET", "/schemas/ids/2")[:2] == (404, 40403)
    assert orders.register("orders", TWO)["id"] == 3  # an id is not given twice


def test_subject_is_deleted_softly_then_for_good(orders):
    orders.ask("PUT", "/config/orders", {"compatibility": "FULL"})
    assert orders.ask("DELETE", "/subjects/orders?permanent=true")[:2] == (404, 40405)
    assert orders.ask("DELETE", "/subjects/orders") == [1, 2]
    assert orders.ask("DELETE", "/subjects/orders")[:2] == (404, 40404)
    assert orders.ask("GET", "/subjects") == ["bills"]
    assert orders.ask("GET", "/subjects?deleted=true") == ["bills", "orders"]
    assert orders.ask("DELETE", "/subjects/orders?permanent=true") == [1, 2]
    assert orders.ask("DELETE", "/subjects/orders")[:2] == (404, 40401)
    assert orders.ask("GET", "/config/orders")[1] == 40408


def test_deleted_schema_that_comes_back_has_its_id_and_a_new_version(orders):
    orders.ask("DELETE", "/subjects/orders")
    answer = orders.register("orders", ONE)
    assert (answer["id"], answer["version"]) == (1, 3)
    assert orders.ask("GET", "/subjects/orders/versions?deleted=true") == [2, 3]


def test_referenced_version_is_not_deleted(registry):
    registry.register("money", {"type": "record", "name": "Money", "fields": []})
    order = {"type": "record", "name": "Order", "fields": [{"name": "price", "type": "Money"}]}
    registry.register("order", order, references=[{"name": "Money", "subject": "money", "version": 1}])
    assert registry.ask("DELETE", "/subjects/money")[:2] == (422, 42206)
    status, code, text = registry.ask("DELETE", "/subjects/money/versions/1")
    key = "{magic=1,keytype=SCHEMA,subject=money,version=1}"
    assert (status, code, text) == (422, 42206, f"One or more references exist to the schema {key}.")
    registry.ask("DELETE", "/subjects/order")
    assert registry.ask("DELETE", "/subjects/money") == [1]
    assert registry.ask("DELETE", "/subjects/money?permanent=true")[:2] == (422, 42206)


def test_method_that_a_path_has_not_is_405(orders):
    assert orders.ask("PUT", "/subjects")[1] == 405


def test_latest_version_that_is_deleted_is_not_there(registry):
    registry.register("s", '"int"')
    assert registry.ask("DELETE", "/subjects/s/versions/latest") == 1
    assert registry.ask("DELETE", "/subjects/s/versions/latest") == (404, 40402, "Version -1 not found.")
    assert registry.ask("DELETE", "/subjects/s/versions/1")[:2] == (404, 40406)
