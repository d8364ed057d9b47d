"""Requests and responses read and written by construct: what `--codec construct` serves with.

The interface is that of `protocol.codegen`; it takes 15 times as long to read and 50 times as long to write.
`primitives.struct` makes the Struct of a message; the headers are Structs as well.
"""

from __future__ import annotations

import io
from functools import cache
from typing import Any, Generic, TypeVar

import construct
from construct import Construct, Struct

from protocol.api import flexible_since
from protocol.codec_support import join_parts, merge_parts
from protocol.declare import Message
from protocol.errors import MalformedError
from protocol.header import RequestHeader
from protocol.primitives import FIXED, TAGGED, Named, Prefixed, TaggedFields, struct

M = TypeVar("M", bound=Message)


def _header(*fields: Named, flexible: bool) -> Construct:
    tags = (Named(TAGGED, "TaggedFields", TaggedFields({})),) if flexible else ()
    return Struct(*fields, *tags)


_KEY_AND_VERSION = Named("api_key", "Int16", FIXED["Int16"]), Named("api_version", "Int16", FIXED["Int16"])
_CORRELATION_ID = Named("correlation_id", "Int32", FIXED["Int32"])
# Its length has two bytes in the flexible header too.
_CLIENT_ID = Named("client_id", "String", Prefixed(FIXED["Int16"], nullable=True, text=True))

API_VERSION_HEADER = Struct(*_KEY_AND_VERSION)  # what every request begins with
REQUEST_HEADERS = [_header(*_KEY_AND_VERSION, _CORRELATION_ID, _CLIENT_ID, flexible=each) for each in (False, True)]
RESPONSE_HEADERS = [_header(_CORRELATION_ID, flexible=each) for each in (False, True)]


def decode_request_header(buffer: bytes | memoryview, position: int = 0) -> tuple[RequestHeader, int]:
    """Header and the position of the body, as `header.decode_request_header` answers. Errors: MalformedError."""
    stream = io.BytesIO(buffer)
    stream.seek(position)
    try:
        api = API_VERSION_HEADER.parse_stream(stream)
        stream.seek(position)
        found = REQUEST_HEADERS[api.api_version >= flexible_since(api.api_key)].parse_stream(stream)
    except construct.ConstructError as error:
        raise MalformedError(f"header: {error}") from None
    tags = found.get(TAGGED) or None
    return RequestHeader(found.api_key, found.api_version, found.correlation_id, found.client_id, tags), stream.tell()


class _Parts:
    """A stream to build into that keeps slices of files as they are."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def write(self, data: bytes) -> int:
        self.parts.append(data)
        return len(data)

    def add(self, part: Any) -> None:
        self.parts.append(part)


class ConstructCodec(Generic[M]):
    """The Struct of one class and version, with the methods of codegen.Codec."""

    __slots__ = ("cls", "form", "version")

    def __init__(self, cls: type[M], version: int) -> None:
        self.cls = cls
        self.version = version
        self.form = struct(cls, version)

    def decode(self, buffer: bytes | memoryview, position: int = 0) -> tuple[M, int]:
        """Message and the position after it. Errors: MalformedError."""
        stream = io.BytesIO(buffer)
        stream.seek(position)
        try:
            return self.form.parse_stream(stream), stream.tell()
        except construct.ConstructError as error:
            raise MalformedError(f"{self.cls.__name__} v{self.version}: {error}") from None

    def encode(self, message: M) -> bytes:
        """The bytes of a message; slices of files in it are read."""
        return join_parts(self.encode_parts(message))

    def encode_parts(self, message: M) -> list[Any]:
        """The bytes of a message, and between them the slices of files that it holds."""
        stream = _Parts()
        self.form.build_stream(message, stream)
        return merge_parts(stream.parts)


@cache
def construct_codec(cls: type[M], version: int) -> ConstructCodec[M]:
    """The codec of one version of a message; the same object each time."""
    return ConstructCodec(cls, version)
