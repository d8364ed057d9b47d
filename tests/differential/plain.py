"""Requests made from plain values, and responses turned into them: dictionaries with Kafka's names of fields.

The declarations of protocol/messages are the schema. tests/conformance holds them against frames that Kafka's own
classes have written. A value that its field cannot hold is made to fit: numbers are clipped, null becomes the default
where a version has no null, fields that the version does not have are left out.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

from protocol.api import ApiKey, api_name, is_declared, request_class, response_class
from protocol.codegen import codec
from protocol.declare import Field, Message, WireType
from protocol.errors import MalformedError
from protocol.header import decode_response_header, encode_request_header
from protocol.wire import Array, Bool, Bytes, Float64, Records, String, Uuid, Wire

Plain: TypeAlias = Any  # what JSON can hold, and bytes
Values: TypeAlias = dict[str, Plain]

KEYS: dict[str, int] = {api_name(key): int(key) for key in ApiKey if is_declared(int(key))}
RANGES = {"Int8": 7, "Int16": 15, "Int32": 31, "Int64": 63}
UNSIGNED = {"UInt16": 16, "UInt32": 32}
BATCHES_SINCE = {"Produce": 3, "Fetch": 4, "ListOffsets": 1}
UNSUPPORTED_VERSION = b"\0\x23"


def words(text: str) -> tuple[str, ...]:
    """A long list of names, written as lines."""
    return tuple(text.split())


@cache
def kafka_name(name: str) -> str:
    """ "topic_id" -> "TopicId", as Kafka's schemas spell it."""
    return "".join([word[:1].upper() + word[1:] for word in name.split("_")])


def versions(api: str) -> tuple[int, int]:
    """First and last version that is declared, but for those of message sets, which Apache Kafka 4 does not serve."""
    cls = request_class(KEYS[api])
    return max(cls.MIN_VERSION, BATCHES_SINCE.get(api, 0)), cls.MAX_VERSION


def shape_of(api: str, version: int) -> int:
    """The declared version nearest to one that may not exist: it gives a request its layout."""
    first, last = versions(api)
    return min(max(version, first), last)


def encode_request(api: str, version: int, correlation_id: int, client_id: str | None, body: Values) -> bytes:
    """Header and body, without the size in front."""
    cls = request_class(KEYS[api])
    shape = shape_of(api, version)
    header = encode_request_header(KEYS[api], version, correlation_id, client_id)
    return header + codec(cls, shape).encode(_message(cls, shape, body))


def decode_response(api: str, version: int, data: bytes) -> Values:
    """The body of an answer; `data` begins with the correlation id. Bytes left over are in `_trailing`.

    Errors: MalformedError.
    """
    key = KEYS[api]
    cls = response_class(key)
    if key == ApiKey.API_VERSIONS and (
        not cls.MIN_VERSION <= version <= cls.MAX_VERSION or data[4:6] == UNSUPPORTED_VERSION
    ):
        version = 0  # the one response that a client must understand before it knows any version
    version = shape_of(api, version)
    _, position = decode_response_header(data, key, version)
    message, end = codec(cls, version).decode(data, position)
    values = to_plain(message, version)
    if end != len(data):
        values["_trailing"] = len(data) - end
    return values


def encode_data(name: str, version: int, body: Values) -> bytes:
    """A message that other messages carry as bytes, behind its version: what a consumer subscribes to."""
    from protocol.api import message_class

    cls = message_class(name)
    return version.to_bytes(2, "big") + codec(cls, version).encode(_message(cls, version, body))


def to_plain(message: Message, version: int) -> Values:
    """All fields of the version, tagged ones too where they are absent."""
    found: Values = {}
    for field in message.FIELDS:
        if field.is_in(version):
            found[kafka_name(field.name)] = _to_plain(field.wire, getattr(message, field.name), version)
    if message.unknown_tags:
        found["_tags"] = {str(tag): data.hex() for tag, data in message.unknown_tags.items()}
    return found


def _to_plain(wire: WireType, value: Any, version: int) -> Plain:
    if value is None:
        return None
    if isinstance(wire, Array):
        return [_to_plain(wire.element, each, version) for each in value]
    if isinstance(wire, Wire):
        return bytes(value) if wire in (Bytes, Records, Uuid) else value
    return to_plain(value, version)


def _message(cls: type[Message], version: int, values: Plain) -> Message:
    values = values if isinstance(values, dict) else {}
    message = cls()
    for field in cls.FIELDS:
        if field.is_in(version):
            name = kafka_name(field.name)
            if name in values:
                setattr(message, field.name, _fitting(field, values[name], version))
    return message


def _fitting(field: Field, value: Plain, version: int) -> Any:
    wire = field.wire
    if value is None:
        if field.is_nullable(version) or wire is Records:
            return None
        return field.fresh_default()
    if isinstance(wire, Array):
        return [_element(wire.element, each, version) for each in value] if isinstance(value, list) else []
    return _element(wire, value, version, field)


def _element(wire: WireType, value: Plain, version: int, field: Field | None = None) -> Any:
    if not isinstance(wire, Wire):
        assert not isinstance(wire, Array)
        return _message(wire, version, value)
    default = wire.default if field is None else field.fresh_default()
    if wire is Bool:
        return bool(value)
    if wire is String:
        return value[:32767] if isinstance(value, str) else default
    if wire is Uuid:
        return value if isinstance(value, bytes) and len(value) == 16 else bytes(16)
    if wire in (Bytes, Records):
        return value if isinstance(value, bytes) else default
    if wire is Float64:
        return float(value) if isinstance(value, int | float) else 0.0
    if not isinstance(value, int):
        return default
    if wire.name in UNSIGNED:
        return min(max(value, 0), (1 << UNSIGNED[wire.name]) - 1)
    bits = RANGES[wire.name]
    return min(max(value, -1 << bits), (1 << bits) - 1)


__all__ = [
    "KEYS",
    "MalformedError",
    "Plain",
    "Values",
    "decode_response",
    "encode_data",
    "encode_request",
    "to_plain",
    "versions",
    "words",
]
