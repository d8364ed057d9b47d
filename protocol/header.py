"""Request headers v1 and v2 and response headers v0 and v1, with the one exception: ApiVersions answers with v0.

Layout of a request header: api key i16 | version i16 | correlation id i32 | client id, i16-sized even in v2, may be
null | v2: tagged fields. Of a response header: correlation id i32 | v1: tagged fields.
Version 0 of the request header belonged to ControlledShutdown alone, which no longer exists.
"""

from __future__ import annotations

import struct

from protocol.api import ApiKey, flexible_since
from protocol.codec_support import MOST_TAGS, read_uvarint, tag_section
from protocol.errors import MalformedError

_unpack_request = struct.Struct(">hhih").unpack_from
_pack_request = struct.Struct(">hhih").pack
_pack_v0 = struct.Struct(">i").pack
_pack_v1 = struct.Struct(">ix").pack


class RequestHeader:
    """Who asks for what: all that stands before the body."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id", "unknown_tags")

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        unknown_tags: dict[int, bytes] | None = None,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.unknown_tags = unknown_tags

    def __repr__(self) -> str:
        values = [f"{name}={getattr(self, name)!r}" for name in self.__slots__]
        return f"RequestHeader({', '.join(values)})"


def _tags(buffer: bytes | memoryview, position: int) -> tuple[dict[int, bytes] | None, int]:
    count, position = read_uvarint(buffer, position)
    if not count:
        return None, position
    if count > MOST_TAGS:
        raise MalformedError(f"header: {count} tagged fields are claimed, {MOST_TAGS} are the most")
    found: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        if size > len(buffer) - position:
            raise MalformedError(f"header: tag {tag} claims {size} bytes, {len(buffer) - position} are left")
        found[tag] = bytes(buffer[position : position + size])
        position += size
    return found, position


def decode_request_header(buffer: bytes | memoryview, position: int = 0) -> tuple[RequestHeader, int]:
    """Header and the position of the body. Of a key without messages the tagged fields, if any, are not read."""
    try:
        api_key, api_version, correlation_id, size = _unpack_request(buffer, position)
    except struct.error:
        raise MalformedError(f"a frame of {len(buffer) - position} bytes is too short for a request header") from None
    position += 10
    client_id = None
    if size >= 0:
        end = position + size
        if end > len(buffer):
            raise MalformedError(f"header: client_id claims {size} bytes, {len(buffer) - position} are left")
        client_id = str(buffer[position:end], "utf-8", "replace")
        position = end
    tags = None
    if api_version >= flexible_since(api_key):
        try:
            tags, position = _tags(buffer, position)
        except IndexError:
            raise MalformedError("header: the frame ends inside the tagged fields") from None
    return RequestHeader(api_key, api_version, correlation_id, client_id, tags), position


def encode_request_header(
    api_key: int,
    api_version: int,
    correlation_id: int,
    client_id: str | None,
    unknown_tags: dict[int, bytes] | None = None,
) -> bytes:
    """What a client sends before the body."""
    name = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(name)
    data = _pack_request(api_key, api_version, correlation_id, size) + name
    if api_version >= flexible_since(api_key):
        data += tag_section(unknown_tags or {})
    return data


def response_header_version(api_key: int, api_version: int) -> int:
    """0 or 1. A client that asks ApiVersions cannot know yet what the broker speaks, so that answer stays at 0."""
    return int(api_version >= flexible_since(api_key) and api_key != ApiKey.API_VERSIONS)


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """What stands before the body of an answer."""
    if response_header_version(api_key, api_version):
        return _pack_v1(correlation_id)
    return _pack_v0(correlation_id)


def decode_response_header(
    buffer: bytes | memoryview, api_key: int, api_version: int, position: int = 0
) -> tuple[int, int]:
    """Correlation id and the position of the body."""
    try:
        (correlation_id,) = struct.unpack_from(">i", buffer, position)
        position += 4
        if response_header_version(api_key, api_version):
            _, position = _tags(buffer, position)
    except (struct.error, IndexError):
        raise MalformedError("the frame ends inside the response header") from None
    return correlation_id, position
