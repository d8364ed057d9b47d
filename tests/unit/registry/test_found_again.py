"""A schema is found again: with references to the latest, in one piece, normalized; and its id is not given twice."""

from __future__ import annotations

import json

import pytest
from registry_kit import record_of

ONE = record_of(id="long")
MONEY = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}
ORDER = {"type": "record", "name": "shop.Order", "fields": [{"name": "price", "type": "shop.Money"}]}
WHOLE = {"type": "record", "name": "shop.Order", "fields": [{"name": "price", "type": MONEY}]}
LATEST = [{"name": "shop.Money", "subject": "money", "version": -1}]
FIRST = [{"name": "shop.Money", "subject": "money", "version": 1}]


@pytest.fixture
def ordered(registry):
    registry.register("money", MONEY)
    assert registry.register("order", ORDER, references=LATEST)["id"] == 2
    return registry


def test_reference_to_the_latest_is_stored_with_its_number(ordered):
    assert ordered.ask("GET", "/schemas/ids/2")["references"] == FIRST
    assert ordered.ask("GET", "/subjects/money/versions/1/referencedby") == [2]
    assert ordered.ask("DELETE", "/subjects/money/versions/1")[:2] == (422, 42206)
    for references in (LATEST, FIRST):
        body = {"schema": json.dumps(ORDER), "references": references}
        assert ordered.ask("POST", "/subjects/order", body)["id"] == 2


def test_version_is_free_once_what_refers_to_it_is_gone_for_good(ordered):
    ordered.ask("DELETE", "/subjects/order/versions/1")
    assert ordered.ask("GET", "/subjects/money/versions/1/referencedby") == []
    assert ordered.ask("GET", "/subjects/money/versions/1/referencedby?deleted=true") == [2]
    ordered.ask("DELETE", "/subjects/order/versions/1?permanent=true")
    assert ordered.ask("GET", "/subjects/money/versions/1/referencedby?deleted=true") == []
    ordered.ask("DELETE", "/subjects/money/versions/1")
    assert ordered.ask("DELETE", "/subjects/money/versions/1?permanent=true") == 1
    assert ordered.state.facts()["referrers"] == {}


@pytest.mark.parametrize("is_referred", [True, False])
def test_deleted_version_that_comes_again_is_kept_where_something_deleted_refers_to_it(registry, is_referred):
    registry.register("money", MONEY)
    if is_referred:
        registry.register("order", ORDER, references=FIRST)
        registry.ask("DELETE", "/subjects/order")
    registry.ask("DELETE", "/subjects/money")
    assert registry.register("money", MONEY)["version"] == 2
    assert registry.ask("GET", "/subjects/money/versions?deleted=true") == ([1, 2] if is_referred else [2])


@pytest.mark.parametrize("version", [2, 3, 9])
def test_version_that_is_not_the_next_one_is_refused(registry, version):
    answer = registry.register("money", MONEY, version=version)
    assert answer[1:] == (42201, "Version is not one more than previous version")
    assert registry.register("money", MONEY, version=1)["version"] == 1


def test_reference_to_the_latest_of_nothing_is_refused(registry):
    assert registry.register("order", ORDER, references=LATEST)[:2] == (422, 42201)


def test_schema_in_one_piece_is_the_one_with_references(ordered):
    assert ordered.ask("POST", "/subjects/order", {"schema": json.dumps(WHOLE)})["version"] == 1
    assert ordered.register("order", WHOLE)["id"] == 2
    other = json.dumps(WHOLE).replace("cents", "euros")
    assert ordered.ask("POST", "/subjects/order", {"schema": other})[:2] == (404, 40403)


def test_schema_in_one_piece_is_found_over_several_levels(ordered):
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "a", "type": "shop.Order"}]}
    basket["fields"].append({"name": "b", "type": "shop.Money"})
    references = [{"name": "shop.Order", "subject": "order", "version": 1}]
    ordered.register("basket", basket, references=references)
    whole = {**basket, "fields": [{"name": "a", "type": WHOLE}, {"name": "b", "type": "shop.Money"}]}
    assert ordered.ask("POST", "/subjects/basket", {"schema": json.dumps(whole)})["version"] == 1
    resolved = ordered.ask("GET", "/subjects/basket/versions/1?format=resolved")["schema"]
    assert resolved.count('"cents"') == 1
    assert json.loads(resolved)["fields"][1] == {"name": "b", "type": "shop.Money"}


def test_avro_is_found_with_its_properties_and_aliases_in_another_order(registry):
    text = '{"type":"record","name":"R","fields":[],"aliases":["A","B"],"owner":{"b":1,"a":[1,2]}}'
    registry.register("s", text)
    for same in (text.replace('"b":1,"a":[1,2]', '"a":[1,2],"b":1'), text.replace('"A","B"', '"B","A"')):
        assert registry.ask("POST", "/subjects/s", {"schema": same})["version"] == 1
        assert registry.register("s", same)["version"] == 1
    for other in (
        text.replace("[1,2]", "[2,1]"),
        text.replace('"b":1,', '"b":2,'),
        text.replace('"b":1,', '"b":true,'),
    ):
        assert registry.ask("POST", "/subjects/s", {"schema": other})[1] == 40403


def test_json_schema_in_another_order_is_another_one(registry):
    registry.register("s", '{"type":"object","title":"x"}', schemaType="JSON")
    body = {"schema": '{"title":"x","type":"object"}', "schemaType": "JSON"}
    assert registry.ask("POST", "/subjects/s", body)[1] == 40403
    assert registry.ask("POST", "/subjects/s?normalize=true", body)[1] == 40403


def test_normalized_references_are_sorted_and_not_repeated(registry):
    for name in ("b", "a"):
        registry.register(name, {"type": "record", "name": name.upper(), "fields": []})
    rows = [{"name": name.upper(), "subject": name, "version": 1} for name in ("b", "a", "b")]
    registry.ask("PUT", "/config", {"normalize": True})
    registry.register("s", record_of(x="A", y="B"), references=rows)
    assert registry.ask("GET", "/subjects/s/versions/1")["references"] == [rows[1], rows[0]]
    body = {"schema": json.dumps(record_of(x="A", y="B")), "references": rows[1:]}
    assert registry.ask("POST", "/subjects/s", body)["version"] == 1


def test_new_schema_does_not_refer_to_what_is_deleted(registry):
    registry.register("money", MONEY)
    registry.ask("DELETE", "/subjects/money")
    assert registry.register("order", ORDER, references=FIRST)[:2] == (422, 42201)


def test_version_in_metadata_need_not_be_sent(registry):
    body = {"schema": json.dumps(ONE), "metadata": {"properties": {"confluent:version": "1"}}}
    assert registry.ask("POST", "/subjects/s/versions", body)["id"] == 1
    assert registry.register("s", ONE)["id"] == 1
    assert registry.ask("POST", "/subjects/s", {"schema": json.dumps(ONE)})["version"] == 1
    assert registry.ask("GET", "/subjects/s/versions") == [1]


def test_highest_id_outlives_the_schema_that_had_it(registry):
    registry.register("s", ONE)
    registry.register("t", MONEY)
    registry.ask("DELETE", "/subjects/t")
    registry.ask("DELETE", "/subjects/t?permanent=true")
    registry.clean()
    registry.restart()
    assert registry.register("t", ORDER | {"fields": []})["id"] == 3


def test_highest_id_outlives_a_version(registry):
    registry.register("s", ONE)
    registry.ask("DELETE", "/subjects/s/versions/1")
    registry.ask("DELETE", "/subjects/s/versions/1?permanent=true")
    registry.clean()
    registry.restart()
    assert registry.register("s", MONEY)["id"] == 2


def test_highest_id_outlives_the_beginning_of_an_import(registry):
    registry.register(":.c:s", ONE)
    registry.ask("DELETE", "/subjects/:.c:s/versions/1")
    registry.ask("PUT", "/mode/:.c:", {"mode": "IMPORT"})
    registry.ask("DELETE", "/mode/:.c:")
    registry.clean()
    registry.restart()
    assert registry.register(":.c:s", MONEY)["id"] == 2
