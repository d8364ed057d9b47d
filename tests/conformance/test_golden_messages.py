"""Bytes that Apache Kafka's own classes wrote are read as the values Kafka says they are, and written the same."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from protocol.api import message_class
from protocol.codegen import codec
from protocol.declare import Message, WireType
from protocol.wire import Array, Bytes, Uuid, Wire

_LINES = [
    line.split(" ", 3)
    for line in (Path(__file__).parent / "golden_messages.txt").read_text().splitlines()
    if not line.startswith("#")
]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join([word.capitalize() for word in rest])


def _json(kind: WireType, value: Any, version: int) -> Any:
    """As Kafka's JsonConverter writes it: absent and tagged default fields left out."""
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_json(kind.element, each, version) for each in value]
    if kind is Uuid:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    if kind is Bytes:
        return base64.b64encode(value).decode()
    if isinstance(kind, Wire):
        return value
    return _message_json(value, version)


def _message_json(value: Message, version: int) -> dict[str, Any]:
    found = {}
    for field in value.FIELDS:
        inner = getattr(value, field.name)
        if field.is_in(version) and not (field.is_tagged(version) and inner == field.fresh_default()):
            found[_camel(field.name)] = _json(field.wire, inner, version)
    return found


@pytest.mark.parametrize(
    ("name", "version", "written", "value"), _LINES, ids=[f"{line[0]}-{line[1]}" for line in _LINES]
)
def test_bytes_of_kafka_are_read_and_written_as_kafka_does(name: str, version: str, written: str, value: str) -> None:
    data = bytes.fromhex(written)
    fast = codec(message_class(name), int(version))

    read, end = fast.decode(data)

    assert end == len(data)
    assert _message_json(read, int(version)) == json.loads(value)
    assert fast.encode(read) == data
