"""Messages as JSON: fields by their names, ids and bytes as text, records as what is in their batches."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any, Final

from protocol.declare import Message
from protocol.wire import Array, Records, Uuid

SHOWN_BYTES: Final = 64
MOST_ITEMS: Final = 200  # of a list


def as_json(message: Message, version: int) -> dict[str, object]:
    """The fields that a version has."""
    found: dict[str, object] = {}
    for each in message.FIELDS:
        if each.is_in(version):
            wire = each.wire.element if isinstance(each.wire, Array) else each.wire
            found[each.name] = _value(getattr(message, each.name), wire, version)
    return found


def shown_uuid(data: bytes) -> str:
    """A uuid as Kafka writes it."""
    return urlsafe_b64encode(data).decode().rstrip("=")


def _value(value: Any, wire: Any, version: int) -> Any:
    if isinstance(value, Message):
        return as_json(value, version)
    if isinstance(value, list):
        shown = [_value(inner, wire, version) for inner in value[:MOST_ITEMS]]
        return [*shown, f"and {len(value) - MOST_ITEMS} more"] if len(value) > MOST_ITEMS else shown
    if wire is Records:
        return None if value is None else {"bytes": len(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value[:SHOWN_BYTES])
        if wire is Uuid:
            return shown_uuid(data)
        text = data.decode() if data.isascii() and data.decode().isprintable() else data.hex()
        return f"{text}... ({len(value)} bytes)" if len(value) > SHOWN_BYTES else text
    return value
