"""Messages on the page by the schemas of a registry: Avro, Protobuf, JSON, and why one is not decoded."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from fake_registry import MONEY, MONEY_PROTO, ORDER, ORDER_PROTO, FakeRegistry, avro, framed

from momus import Broker
from momus.kit.process import BrokerError


@pytest.fixture
def registry():
    registry = FakeRegistry()
    yield registry
    registry.close()


@pytest.fixture
def broker(registry):
    with Broker(config={"schema.registry.url": registry.url}) as broker:
        yield broker


def write(broker: Broker, *values: bytes, key: bytes | None = None) -> None:
    producer = Producer(broker.client_config("confluent"))
    for value in values:
        producer.produce("t", value, key)
    producer.flush()


def shown(broker: Broker, query: str = "offset=0") -> list[dict[str, Any]]:
    answer = broker.control.ask("GET", f"/_admin/topics/t/messages?{query}")
    return answer["messages"]


def value(broker: Broker, query: str = "offset=0") -> dict[str, Any]:
    (row,) = shown(broker, query)
    found: dict[str, Any] = row["value"]
    return found


def test_avro_is_decoded_with_what_its_schema_refers_to(registry, broker):
    registry.add(7, ORDER, money=("shop.Money", MONEY))
    order = {"drink": "tea", "price": {"cents": 250}, "seal": b"\x00\xff"}
    data = framed(7, avro(order, MONEY, ORDER))
    write(broker, data, data, key=framed(7, data[5:]))
    rows = shown(broker)
    expected = {"drink": "tea", "price": {"cents": 250}, "seal": "00ff"}
    assert [json.loads(row["value"]["text"]) for row in rows] == [expected] * 2
    assert [json.loads(row["key"]["text"]) for row in rows] == [expected] * 2
    assert {key: rows[0]["value"][key] for key in ("bytes", "form", "schema", "is_cut")} == {
        "bytes": len(data),
        "form": "avro",
        "schema": 7,
        "is_cut": False,
    }
    assert registry.asked == ["/schemas/ids/7", "/subjects/money/versions/1"]  # once for four texts
    assert value(broker, "offset=1&form=hex")["text"] == data.hex()


def test_protobuf_is_decoded_by_the_message_that_its_indexes_name(registry, broker):
    registry.add(3, ORDER_PROTO, "PROTOBUF", money=("shop/money.proto", MONEY_PROTO))
    line = b"\x0a\x03tea" + b"\x12\x03\x08\xfa\x01" + b"\x1a\x02\x08\x01"  # drink_name, price.cents = 250, at = 1 s
    write(broker, framed(3, b"\x04\x02\x00" + line))  # zigzag: 2 indexes, message 1, in it message 0
    found = value(broker)
    assert json.loads(found["text"]) == {"drink_name": "tea", "price": {"cents": "250"}, "at": "1970-01-01T00:00:01Z"}
    assert found["form"] == "protobuf"
    write(broker, framed(3, b"\x00\x0a\x02no"), framed(3, b"\x02\x08"), framed(3, b"\x02\x01"), framed(3, b"\x80"))
    first, absent, negative, short = (row["value"] for row in shown(broker, "offset=1"))
    assert json.loads(first["text"]) == {"unused": "no"}
    assert absent["note"] == "schema 3: it has no message [4]"
    assert negative["note"] == "schema 3: a message index of -1"
    assert "note" in short


def test_json_is_shown_without_its_prefix(registry, broker):
    registry.add(1, '{"type": "object"}', "JSON")
    write(broker, framed(1, b'{"drink": "tea"}'))
    assert json.loads(value(broker)["text"]) == {"drink": "tea"}


def test_what_cannot_be_decoded_is_shown_as_it_is_with_the_reason(registry, broker):
    registry.add(1, ORDER.replace("shop.Money", "long"))
    registry.add(2, "{", "PROTOBUF")
    registry.add(3, "x", "XML")
    registry.answers["/schemas/ids/4"] = b"<html>"
    registry.add(5, 'syntax = "proto3"; import "../../up.proto";', "PROTOBUF", up=("../../up.proto", MONEY_PROTO))
    registry.add(6, '"string"')
    cases = [
        (framed(9, b"?"), "the registry answers 404 to GET /schemas/ids/9"),
        (framed(1, b"\xff"), "the bytes do not fit it"),
        (framed(2, b"\0"), "protoc refuses it"),
        (framed(3, b"x"), "its type is xml, which is not known here"),
        (framed(4, b"x"), "the registry's answer to GET /schemas/ids/4 cannot be read"),
        (framed(5, b"\0"), "no name within a registry"),
        (framed(6, b"\x02ab"), "1 bytes are left over"),
    ]
    write(broker, *(data for data, _ in cases), b"plain", b"\0\0")
    *rows, plain, short = (row["value"] for row in shown(broker))
    for found, (data, reason) in zip(rows, cases, strict=True):
        assert f"schema {data[4]}: " in found["note"]
        assert reason in found["note"]
        assert found["bytes"] == len(data)
    assert plain == {"bytes": 5, "form": "text", "text": "plain", "is_cut": False}
    assert short == {"bytes": 2, "form": "hex", "text": "0000", "is_cut": False}
    assert not list(Path(broker._temporary or "").glob("**/up.proto"))  # nor anywhere else: it was refused by name


def test_schemas_are_asked_for_anew_because_a_new_registry_gives_the_same_ids(registry, broker):
    registry.add(1, '"string"')
    write(broker, framed(1, b"\x02a"))
    assert value(broker)["text"] == '"a"'
    registry.add(1, '{"type": "bytes"}')
    assert value(broker)["text"] == '"61"'


def test_registry_that_does_not_answer_is_asked_once_a_look(registry, broker):
    write(broker, *(framed(number, b"x") for number in range(50)))
    registry.hangs_up = True
    notes = {row["value"]["note"].partition(": ")[2] for row in shown(broker)}
    assert len(notes) == 1
    assert f"{registry.url} does not answer" in notes.pop()
    assert len(registry.asked) == 1
    assert shown(broker)[0]["value"]["text"] == framed(0, b"x").hex()


def test_without_a_registry_nothing_is_decoded_and_nobody_asked(registry):
    with Broker() as broker:
        write(broker, framed(1, b"\x02a"))
        assert value(broker) == {"bytes": 7, "form": "hex", "text": "00000000010261", "is_cut": False}
    assert registry.asked == []


def test_login_is_sent_and_not_told(registry):
    registry.add(1, '"string"')
    registry.login = "Basic " + base64.b64encode(b"olga:barnabas").decode()
    config = {"schema.registry.url": registry.url, "schema.registry.basic.auth.user.info": "olga:barnabas"}
    with Broker(config=config) as broker:
        write(broker, framed(1, b"\x02a"))
        assert value(broker)["text"] == '"a"'
        assert "barnabas" not in json.dumps(broker.control.ask("GET", "/_admin/topics/t"))
    with Broker(config={"schema.registry.url": registry.url}) as broker:
        write(broker, framed(1, b"\x02a"))
        assert "answers 401" in value(broker)["note"]


@pytest.mark.parametrize("url", ["127.0.0.1:8081", "http://olga:barnabas@127.0.0.1:8081", "file:///etc/passwd"])
def test_address_that_is_none_is_refused_at_the_start(url):
    with (
        pytest.raises(BrokerError, match=r"schema\.registry\.url") as refused,
        Broker(config={"schema.registry.url": url}),
    ):
        pass
    assert "barnabas" not in str(refused.value)
