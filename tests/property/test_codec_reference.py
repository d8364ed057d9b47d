"""The generated codec and the construct reference agree, for every message and version, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from budget import budget
from cases import each_case
from codec_values import MESSAGES, NAMES, messages, versions
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from protocol.api import ApiKey, flexible_since, is_declared, request_class, response_class
from protocol.codegen import codec
from protocol.construct_codec import construct_codec
from protocol.declare import Message
from protocol.primitives import struct

_LIGHT = budget(
    2,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # shrinking whole messages takes minutes and says no more than the first one found
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@pytest.mark.heavy
@each_case("cls", MESSAGES, ids=NAMES)
@_LIGHT
@given(data=st.data())
def test_codec_of_every_version_equals_the_construct_reference(cls: type[Message], data: Any) -> None:
    for version in versions(cls):
        value = data.draw(messages(cls, version))
        fast, reference = codec(cls, version), struct(cls, version)

        encoded = fast.encode(value)

        assert encoded == reference.build(value)
        assert b"".join(fast.encode_parts(value)) == encoded
        assert b"".join(construct_codec(cls, version).encode_parts(value)) == encoded
        assert construct_codec(cls, version).decode(b"behind" + encoded, 6) == fast.decode(b"behind" + encoded, 6)
        read, end = fast.decode(b"behind" + encoded, 6)
        assert end == 6 + len(encoded)
        assert read == reference.parse(encoded) == _without_plain_tags(value)
        assert fast.decode(memoryview(encoded)) == (read, len(encoded))


def _without_plain_tags(value: Any) -> Any:
    """A tagged nested message of nothing but defaults is not written, so it comes back as None."""
    if isinstance(value, list):
        return [_without_plain_tags(each) for each in value]
    if not isinstance(value, Message):
        return value
    for field in value.FIELDS:
        inner = _without_plain_tags(getattr(value, field.name))
        if isinstance(inner, Message) and field.tag >= 0 and field.nullable == "none" and inner == type(inner)():
            inner = None
        setattr(value, field.name, inner)
    return value


@each_case("cls", MESSAGES, ids=NAMES)
def test_codec_of_defaults_equals_the_construct_reference(cls: type[Message]) -> None:
    for version in versions(cls):
        encoded = codec(cls, version).encode(cls())
        assert encoded == struct(cls, version).build(cls())
        assert codec(cls, version).decode(encoded) == (struct(cls, version).parse(encoded), len(encoded))


@each_case("cls", MESSAGES, ids=NAMES)
def test_message_outside_its_versions_has_no_codec(cls: type[Message]) -> None:
    with pytest.raises(ValueError, match="versions"):
        codec(cls, cls.MAX_VERSION + 1)
    with pytest.raises(ValueError, match="versions"):
        codec(cls, cls.MIN_VERSION - 1)


@each_case("api_key", [each for each in ApiKey if is_declared(each)])
def test_registry_agrees_with_the_declarations(api_key: ApiKey) -> None:
    request, response = request_class(api_key), response_class(api_key)
    name = api_key.name.replace("_", "").lower()
    assert (request.__name__.lower(), response.__name__.lower()) == (name + "request", name + "response")
    assert request.API_KEY == response.API_KEY == api_key
    assert request.FLEXIBLE_SINCE == response.FLEXIBLE_SINCE == flexible_since(api_key)
    assert (request.MIN_VERSION, request.MAX_VERSION) == (response.MIN_VERSION, response.MAX_VERSION)
