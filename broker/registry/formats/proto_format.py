"""Protobuf schemas: compiled by protoc, which knows Google's own imports, and written back from the descriptor.

A schema may also be given as a descriptor in base64, as Confluent's client for Python does.
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from broker.registry.formats.proto_rules import Types, differences
from broker.registry.formats.proto_text import written
from broker.registry.jobs import SchemaFaultError

if TYPE_CHECKING:
    from broker.registry.formats.checker import Protoc
    from broker.registry.formats.finding import Finding
    from broker.registry.jobs import Source

MAIN: Final = "default.proto"
BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
ERROR_LETTERS: Final = 1000


class Parsed(NamedTuple):
    """A schema's descriptors: of its own file, and of all files that it needs."""

    main: Any
    files: list[Any]


def parse(source: Source, protoc: Protoc) -> Parsed:
    """Errors: SchemaFaultError."""
    references = dict(source.references)
    files = _compiled(_readable(source.schema, references, protoc), references, protoc)
    main = next(each for each in files if each.name == MAIN)
    return Parsed(main, files)


def text(parsed: Parsed, form: str, normalize: bool) -> str:
    """The .proto; with the form "serialized" its descriptor in base64. Errors: SchemaFaultError."""
    if form == "serialized":
        return base64.b64encode(parsed.main.SerializeToString()).decode()
    if form not in ("", "default"):
        raise SchemaFaultError(f"Protobuf schemas have no format {form!r:.40} here, but serialized")
    return written(parsed.files, parsed.main, normalize)


def compare(reader: Parsed, writer: Parsed) -> list[Finding]:
    """Why the first cannot read what the second has written."""
    return differences(Types(reader.files, reader.main), Types(writer.files, writer.main))


def _readable(schema: str, references: dict[str, str], protoc: Protoc) -> str:
    """A .proto of what is given. Errors: SchemaFaultError."""
    if not BASE64.fullmatch(schema):
        return schema
    try:
        main = FileDescriptorProto.FromString(base64.b64decode(schema))
    except (binascii.Error, DecodeError):
        return schema  # protoc says what is wrong with it
    main.name = MAIN
    needed = "".join(f'import "{_checked(each)}";\n' for each in main.dependency)
    others = _compiled(f'syntax = "proto3";\n{needed}', references, protoc)
    try:
        return written([*(each for each in others if each.name != MAIN), main], main, False)
    except (TypeError, KeyError, ValueError, StopIteration) as error:
        raise SchemaFaultError(f"its descriptor cannot be read: {error}"[:ERROR_LETTERS]) from None


def _checked(name: str) -> str:
    """The name of a file within the registry. Errors: SchemaFaultError."""
    place = PurePosixPath(name)
    if not name or place.is_absolute() or ".." in place.parts or re.search(r'[\\:"\n\0]', name) or name == MAIN:
        raise SchemaFaultError(f"{name[:100]!r} is no name of a file within a registry")
    return name


def _compiled(schema: str, references: dict[str, str], protoc: Protoc) -> list[Any]:
    """The descriptors of a .proto and of what it imports. Errors: SchemaFaultError, with line and column."""
    named = {_checked(name): each for name, each in references.items()}
    return list(FileDescriptorSet.FromString(protoc({**named, MAIN: schema}, MAIN)).file)
