"""Messages with a schema's id as a look at them decodes them, and the sentence where one is not decoded."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fake_registry import MONEY, MONEY_PROTO, ORDER, ORDER_PROTO, FakeRegistry, avro, framed

from broker.shell.page.registry import ANSWER_BYTES, DECODED_BYTES, MOST_REFERENCES, OwnRegistry, Registry

LONG = b'{"schema": "1", "more": "' + b"x" * ANSWER_BYTES + b'"}'  # longer than is read
NESTED = b"\x04\x02\x00"  # zigzag: 2 indexes, message 1, in it message 0
LINE = b"\x0a\x03tea" + b"\x12\x03\x08\xfa\x01" + b"\x1a\x02\x08\x01"  # drink_name, price.cents = 250, at = 1 s


def looked(registry: Registry, *messages: bytes | None) -> list[dict[str, Any] | None]:
    """What one look shows of messages."""

    async def look() -> list[dict[str, Any] | None]:
        return [await registry.shown(each) for each in messages]

    return asyncio.run(look())


def note(registry: Registry, data: bytes) -> str:
    (found,) = looked(registry, data)
    assert found is not None
    assert set(found) == {"note"}
    return str(found["note"])


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    fake = FakeRegistry()
    yield fake
    fake.close()


@pytest.fixture(scope="module")
def protobuf() -> Iterator[list[Any]]:
    """What a look shows of messages of three schemas, each of which starts protoc: once for all tests."""
    fake = FakeRegistry()
    fake.add(3, ORDER_PROTO, "PROTOBUF", money=("shop/money.proto", MONEY_PROTO))
    fake.add(2, "{", "PROTOBUF")
    paths = (NESTED + LINE, b"\x00\x0a\x02no", b"\x02\x04", b"\x02\x01", b"\x80", b"\x03")
    yield looked(Registry(fake.url), *(framed(3, path) for path in paths), framed(2, b"\0"))
    fake.close()


def test_avro_with_its_references_is_asked_for_once_a_look(fake):
    fake.add(7, ORDER, money=("shop.Money", MONEY))
    order = {"drink": "tea", "price": {"cents": 250}, "seal": b"\x00\xff"}
    data = framed(7, avro(order, MONEY, ORDER))
    first, second = looked(Registry(fake.url), data, data)
    text = '{"drink": "tea", "price": {"cents": 250}, "seal": "00ff"}'
    assert first == second == {"bytes": len(data), "form": "avro", "schema": 7, "text": text, "is_cut": False}
    assert fake.asked == ["/schemas/ids/7", "/subjects/money/versions/1"]


def test_long_value_is_cut_and_says_so(fake):
    fake.add(1, '"string"')
    (found,) = looked(Registry(fake.url), framed(1, avro("tea" * 5000, '"string"')))
    assert found is not None
    assert found["is_cut"]
    assert found["text"].startswith('"teatea')
    assert len(found["text"]) < 15_000


def test_protobuf_is_decoded_by_the_message_that_its_indexes_name(protobuf):
    nested, first = protobuf[:2]
    assert json.loads(nested["text"]) == {"drink_name": "tea", "price": {"cents": "250"}, "at": "1970-01-01T00:00:01Z"}
    assert (nested["form"], nested["bytes"]) == ("protobuf", 5 + len(NESTED + LINE))
    assert json.loads(first["text"]) == {"unused": "no"}


def test_protobuf_whose_indexes_name_no_message_is_not_decoded(protobuf):
    absent, negative, short, fewer, _ = (each["note"] for each in protobuf[2:])
    assert absent == "schema 3: it has no message [2]"
    assert negative == "schema 3: a message index of -1"
    assert "the bytes do not fit it" in short
    assert fewer == "schema 3: a path of -2 message indexes"


def test_protobuf_that_protoc_refuses_is_told_with_its_reason(protobuf):
    said = protobuf[-1]["note"]
    assert said.startswith("schema 2: protoc refuses it: ")
    assert 'schema-of-the-message.proto:1:1: Expected top-level statement (e.g. "message").' in said


def test_json_is_shown_without_its_prefix(fake):
    fake.add(1, '{"type": "object"}', "JSON")
    (found,) = looked(Registry(fake.url), framed(1, b'{"drink": "tea"}'))
    assert found == {"bytes": 21, "form": "json", "schema": 1, "text": '{"drink": "tea"}', "is_cut": False}


def test_what_has_no_schema_id_is_left_alone_and_what_is_too_long_is_not_decoded(fake):
    long = framed(1, bytes(DECODED_BYTES))
    assert looked(Registry(fake.url), None, b"\0\0\0\0", b"plain", long) == [
        None,
        None,
        None,
        {"note": f"not decoded: longer than {DECODED_BYTES} bytes"},
    ]
    assert fake.asked == []


@pytest.mark.parametrize(
    ("kind", "schema", "data", "reason"),
    [
        (None, '"string"', b"\x02ab", "1 bytes are left over when it has been read"),
        (None, '"string"', b"\xff", "the bytes do not fit it ("),
        (None, '{"type": "shop.Unknown"}', b"", "it cannot be read (UnknownType"),
        ("XML", "x", b"", "its type is xml, which is not known here"),
    ],
)
def test_reason_why_a_message_is_not_decoded_is_told(fake, kind, schema, data, reason):
    fake.add(1, schema, kind)
    assert note(Registry(fake.url), framed(1, data)).startswith(f"schema 1: {reason}")


@pytest.mark.parametrize("name", ["../../up.proto", "/up.proto", "a\\b.proto", "c:up.proto"])
def test_reference_to_a_file_outside_the_registry_is_refused(fake, name):
    fake.add(1, 'syntax = "proto3";', "PROTOBUF", up=(name, MONEY_PROTO))
    assert note(Registry(fake.url), framed(1, b"\0")).endswith("which is no name within a registry")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"<html>", "Expecting value: line 1 column 1 (char 0)"),
        (b"[]", 'no "schema"'),
        (b'{"schema": 1}', 'no "schema"'),
        pytest.param(LONG, f"longer than {ANSWER_BYTES} bytes", id="long"),
    ],
)
def test_answer_of_the_registry_that_cannot_be_read_is_told(fake, answer, why):
    fake.answers["/schemas/ids/4"] = answer
    said = note(Registry(fake.url), framed(4, b""))
    assert said == f"schema 4: the registry's answer to GET /schemas/ids/4 cannot be read ({why})"


def test_schema_that_refers_to_itself_is_gathered_once(fake):
    fake.add(1, '"string"', again=("a", '"int"'))
    fake.answers["/subjects/again/versions/1"] = fake.answers["/schemas/ids/1"]
    (found,) = looked(Registry(fake.url), framed(1, b"\x02x"))
    assert found is not None
    assert found["text"] == '"x"'
    assert fake.asked == ["/schemas/ids/1", "/subjects/again/versions/1"]


def test_schema_with_too_many_references_is_not_gathered(fake):
    fake.add(1, '"string"', **{f"s{n}": (f"n{n}", '"int"') for n in range(MOST_REFERENCES + 1)})
    assert note(Registry(fake.url), framed(1, b"")) == f"schema 1: it refers to more than {MOST_REFERENCES} others"
    assert len(fake.asked) == MOST_REFERENCES + 1


def test_registry_that_does_not_answer_is_asked_once_a_look(fake):
    fake.hangs_up = True
    one, other = looked(Registry(fake.url), framed(1, b""), framed(2, b""))
    assert one is not None
    assert other is not None
    assert one["note"].startswith(f"schema 1: {fake.url} does not answer (")
    assert other["note"].removeprefix("schema 2") == one["note"].removeprefix("schema 1")
    assert len(fake.asked) == 1


def test_login_is_sent_and_without_it_the_refusal_is_told(fake):
    fake.add(1, '"string"')
    fake.login = "Basic " + base64.b64encode(b"olga:barnabas").decode()
    (found,) = looked(Registry(fake.url, "olga:barnabas"), framed(1, b"\x02a"))
    assert found is not None
    assert found["text"] == '"a"'
    assert note(Registry(fake.url), framed(1, b"\x02a")) == "schema 1: the registry answers 401 to GET /schemas/ids/1"


class Kept:
    """The registry of a cluster, with a schema and one that it refers to."""

    class Row:
        def __init__(self, **fields: Any) -> None:
            self.fields = fields

        def to_json(self) -> dict[str, Any]:
            return self.fields

    def of_id(self, number: int) -> list[Row]:
        references = [{"name": "shop.Money", "subject": "mo/ney", "version": 2}]
        return [self.Row(schema=ORDER, references=references)] if number == 5 else []

    def get(self, subject: str, version: int, *, deleted: bool) -> Row | None:
        return self.Row(schema=MONEY) if (subject, version, deleted) == ("mo/ney", 2, True) else None


def test_own_registry_is_read_without_a_request():
    order = {"drink": "tea", "price": {"cents": 1}, "seal": b""}
    data = avro(order, MONEY, ORDER)
    found, absent = looked(OwnRegistry(Kept()), framed(5, data), framed(6, data))
    assert found is not None
    assert json.loads(found["text"]) == {"drink": "tea", "price": {"cents": 1}, "seal": ""}
    assert absent == {"note": "schema 6: the registry of this cluster has no schemas/ids/6"}
