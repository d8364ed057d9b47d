"""Decodes keys and values of the coordinators' logs one by one, and converts them to JSON.

Fields have Kafka's names; bytes are base64, and ids are as Kafka prints them.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from protocol.codegen import codec
from protocol.declare import Message, WireType
from protocol.errors import KafkaError, MalformedError
from protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from protocol.messages.coordinator_records import (
    GroupMetadataValue,
    TransactionLogKey,
    TransactionLogValue,
    record_types,
)
from protocol.messages.own_records import OWN_RECORDS, TransactionGroupKey, TransactionGroupValue
from protocol.wire import Array, Bytes, Uuid

LEGACY_COMMIT: Final = 0
COMMIT: Final = 1
TRANSACTION: Final = 0
TXN_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
CONTROL_NAMES: Final = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)
_TRANSACTION_TYPES: Final[dict[int, tuple[type[Message], type[Message]]]] = {
    TRANSACTION: (TransactionLogKey, TransactionLogValue),
    OWN_RECORDS: (TransactionGroupKey, TransactionGroupValue),
}
MARKERS: Final = 2  # the first two of CONTROL_NAMES end transactions


class Decoded(NamedTuple):
    """A decoded key and value; None for a message that cannot be decoded."""

    kind: str
    key: Message | None
    value: Message | None


@lru_cache(maxsize=10_000)
def uuid_text(raw: bytes) -> str:
    """A topic id as Kafka prints it."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def i16(data: bytes | None) -> int | None:
    """The record type or version in the first two bytes of a key or value; None: it is shorter."""
    return int.from_bytes(data[:2], "big", signed=True) if data is not None and len(data) >= 2 else None


def control_name(kind: int) -> str:
    """Kafka's name of a kind of control record; else UNKNOWN-N."""
    return CONTROL_NAMES[kind] if 0 <= kind < len(CONTROL_NAMES) else f"UNKNOWN-{kind}"


@cache
def classes_of(view: str, record_type: int) -> tuple[type[Message], type[Message]] | None:
    """The key and value classes of a record type; None: the type is unknown."""
    if view == "transactions":
        return _TRANSACTION_TYPES.get(record_type)
    try:
        return record_types(record_type)
    except MalformedError:
        return None


@cache
def kind_name(view: str, record_type: int) -> str:
    """Kafka's name of a record type: the name of its key's schema without `Key`; else unknown-N."""
    classes = classes_of(view, record_type)
    return classes[0].__name__.removesuffix("Key") if classes else f"unknown-{record_type}"


def decode(view: str, key: bytes, value: bytes | None) -> Decoded:
    """Decode one record; a key or value that does not match its schema is None."""
    record_type = i16(key)
    if record_type is None:
        return Decoded("unknown", None, None)
    classes = classes_of(view, record_type)
    if classes is None:
        return Decoded(kind_name(view, record_type), None, None)
    version = i16(value)
    return Decoded(
        kind_name(view, record_type),
        _message(classes[0], 0, key),
        None if value is None or version is None else _message(classes[1], version, value),
    )


def _message(cls: type[Message], version: int, data: bytes) -> Message | None:
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        return None
    try:
        return codec(cls, version).decode(data, 2)[0]
    except (KafkaError, MalformedError, ValueError):
        return None


def as_json(message: Message | None) -> str | None:
    """A message as JSON with Kafka's field names."""
    if message is None:
        return None
    made = _plain(message)
    if isinstance(message, GroupMetadataValue) and message.protocol_type == "consumer":
        for plain, member in zip(made["members"], message.members, strict=True):
            _open_up(plain, "subscription", ConsumerProtocolSubscription, member.subscription)
            _open_up(plain, "assignment", ConsumerProtocolAssignment, member.assignment)
    return json.dumps(made, separators=(",", ":"), ensure_ascii=False)


def _open_up(plain: dict[str, Any], name: str, cls: type[Message], data: bytes) -> None:
    """Replace the bytes of a consumer's subscription or assignment by its fields, if it can be decoded.

    A newer version than the newest known one is decoded as that one.
    """
    version = i16(data)
    if version is not None and version >= 0:
        found = _message(cls, min(version, cls.MAX_VERSION), data)
        if found is not None:
            plain[name] = _plain(found)


def _plain(message: Message) -> dict[str, Any]:
    return {
        name: None if (each := getattr(message, slot)) is None else convert(each)
        for slot, name, convert in _fields(type(message))
    }


@cache
def _fields(cls: type[Message]) -> tuple[tuple[str, str, Callable[[Any], Any]], ...]:
    return tuple((each.name, camel(each.name), _converter(each.wire)) for each in cls.FIELDS)


def camel(name: str) -> str:
    """assigned_partitions -> assignedPartitions."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _converter(wire: WireType) -> Callable[[Any], Any]:
    if isinstance(wire, Array):
        inner = _converter(wire.element)
        return lambda values: [inner(each) for each in values]
    if isinstance(wire, type):
        return _plain
    if wire is Uuid:
        return uuid_text
    if wire is Bytes:
        return lambda data: b64encode(data).decode()
    return lambda value: value
