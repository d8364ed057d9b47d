"""The page's schemas: subjects, versions side by side and why they do not fit, and topics that use an id."""

from __future__ import annotations

import json
import urllib.request
from urllib.parse import quote

import pytest

from momus import Broker

HOSTILE = "<img src=x onerror=alert(1)>\u202e/value"
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NOTED = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
PRICED = {**ORDER, "fields": [{"name": "price", "type": "double"}]}


def register(broker, subject, schema, schema_type="AVRO"):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    ask(broker, "POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": text, "schemaType": schema_type})


def ask(broker, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(broker.registry_url + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


@pytest.fixture(scope="module")
def broker():
    with Broker(registry=True) as broker:
        register(broker, "orders-value", ORDER)
        register(broker, "orders-value", NOTED)
        ask(broker, "PUT", "/config/orders-value", {"compatibility": "NONE"})
        register(broker, "orders-value", PRICED)
        register(broker, HOSTILE, {"type": "object", "title": HOSTILE}, "JSON")
        register(broker, "bills-value", 'syntax = "proto3"; message Bill { int64 cents = 1; }', "PROTOBUF")
        yield broker


def test_subjects_are_listed_and_filtered_with_hostile_names_as_text(broker, page):
    tab = page.open(broker, "schemas")
    rows = {row["Subject"]: row for row in page.rows("subjects")}
    assert set(rows) == {"orders-value", "bills-value", HOSTILE}
    orders = rows["orders-value"]
    assert (orders["Type"], orders["Versions"], orders["Latest"], orders["Id"]) == ("AVRO", "3", "3", "3")
    assert orders["Compatibility"] == "NONE"
    assert rows["bills-value"]["Type"] == "PROTOBUF"
    tab.keyboard.press("/")
    tab.keyboard.type("BILLS")
    tab.get_by_text("1 found").wait_for()
    assert [row["Subject"] for row in page.rows("subjects")] == ["bills-value"]
    assert page.findings() == []
    tab.keyboard.press("Control+a")
    tab.keyboard.type("img")
    tab.get_by_text("1 found").wait_for()
    tab.get_by_role("link", name="<img").click()
    tab.get_by_text("Both are the same").wait_for()
    assert any(HOSTILE in json.loads("{" + row["Version 1"].strip() + "}").values() for row in page.rows("lines")[2:3])
    assert tab.locator("main img").count() == 0


def test_versions_stand_side_by_side_and_say_why_they_do_not_fit(broker, page):
    tab = page.open(broker, "schemas/orders-value")
    assert [(row["Version"], row["Id"]) for row in page.rows("versions")] == [("3", "3"), ("2", "2"), ("1", "1")]
    backward, forward = (tab.locator(f"[data-is={each}]") for each in ("backward", "forward"))
    assert "readers of version 3 cannot read what version 2 has written" in backward.text_content()
    assert "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/0" in backward.text_content()
    assert "The field 'price' at path" in backward.text_content()
    assert "The field 'id' at path" in forward.text_content()
    assert "readers of version 2 cannot read what version 3 has written" in forward.text_content()
    tab.get_by_label("To version").select_option("2")
    tab.get_by_label("From version").select_option("1")
    tab.get_by_text("readers of version 2 can read what version 1").wait_for()
    assert forward.text_content() == "Compatible: readers of version 1 can read what version 2 has written."
    rows = page.rows("lines")
    changed = [(row["Version 1"], row["Version 2"].strip()) for row in rows if row["Version 2"].startswith("+ ")]
    assert ("", '+       "name": "note",') in changed
    same = [row for row in rows if not row["Version 1"].startswith("− ") and not row["Version 2"].startswith("+ ")]
    assert same
    assert all(row["Version 1"] == row["Version 2"] for row in same)
    assert page.findings() == []


def test_new_version_and_softly_deleted_one_appear(broker, page):
    tab = page.open(broker, "schemas/bills-value")
    assert len(page.rows("versions")) == 1
    register(broker, "bills-value", 'syntax = "proto3"; message Bill { int64 cents = 1; string of = 2; }', "PROTOBUF")
    tab.get_by_text("2 versions").wait_for()
    tab.locator("tr.changed").first.wait_for()
    assert any("string of = 2;" in row["Version 2"] for row in page.rows("lines"))
    ask(broker, "DELETE", "/subjects/bills-value/versions/1")
    tab.locator("tr").get_by_text("deleted").wait_for()


def test_topics_that_use_an_id_are_found_in_keys_and_values(broker, page):
    broker.create_topic("sold", partitions=2)
    framed = [b"\x00" + number.to_bytes(4, "big") + b"\x02" for number in (1, 3, 77)]
    broker.produce("sold", framed[0], framed[2], key=framed[1])
    broker.produce("sold", framed[0], b"no schema", partition=1)
    page.open(broker, "schemas/orders-value")
    rows = [(row["Topic"], row["In"], row["Id"], row["Records"], row["Newest offset"]) for row in page.rows("uses")]
    assert rows == [("sold", "key", "3", "2", "1"), ("sold", "value", "1", "2", "0")]


def test_page_serves_a_registry_where_there_is_none(page):
    with Broker() as broker:
        tab = page.open(broker, "schemas")
        tab.get_by_text("No registry of this cluster is served.").wait_for()
        tab.get_by_role("button", name="Serve a registry").click()
        tab.get_by_text("The registry of this cluster is http://127.0.0.1:").wait_for()
        register(broker, "orders-value", ORDER)
        assert [row["Subject"] for row in page.rows("subjects")] == ["orders-value"]
        page.leave()
