"""Protobuf schemas: compiled by protoc, which knows Google's own imports, and written back as they were given.

protoc is not shown what it refuses and Confluent's registry takes: `map_entry`, and options that nothing defines. A
schema may also be given as a descriptor in base64, as Confluent's client for Python does.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from broker.registry.formats.protobuf.known import KNOWN
from broker.registry.formats.protobuf.names import Names
from broker.registry.formats.protobuf.rules import Types, differences
from broker.registry.formats.protobuf.tags import tagged, tags_within
from broker.registry.formats.protobuf.text import json_name, text_of_descriptor
from broker.registry.formats.protobuf.tree import tree_of_proto
from broker.registry.formats.protobuf.written import written
from broker.registry.jobs import SchemaFaultError

if TYPE_CHECKING:
    from broker.registry.formats.checker import Protoc
    from broker.registry.formats.finding import Finding
    from broker.registry.formats.protobuf.nodes import Block
    from broker.registry.jobs import Job, Source

__all__ = ("compare", "fields", "parse", "tagged", "tags_within", "text")
OF_CONFLUENT: Final = re.compile(r"\(confluent\.(?=\w+_meta\b)")
MAIN: Final = "default.proto"
BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
ERROR_LETTERS: Final = 1000


class Parsed(NamedTuple):
    """A schema as it is written, and its descriptors: of its own file, and of all files that it needs.

    serialized   makes the bytes of its own file's, with all options.
    """

    tree: Block
    main: Any
    files: list[Any]
    serialized: Callable[[], bytes]


def parse(source: Source, protoc: Protoc, job: Job | None = None) -> Parsed:
    """Errors: SchemaFaultError."""
    references = dict(source.references)
    schema = _readable(source.schema, references, protoc)
    files = _compiled(schema, references, protoc, takes_all=job is None or not job.validates)
    main = next(each for each in files if each.name == MAIN)
    tree = tree_of_proto(schema)[0]
    _mark_maps(tree.messages, main.message_type)
    return Parsed(tree, main, files, lambda: _serialized(schema, references, protoc, main))


def _serialized(schema: str, references: dict[str, str], protoc: Protoc, main: Any) -> bytes:
    """The descriptor with its options, where protoc knows them all, and names in JSON where they were given."""
    named = {_checked(name): _bare(each) for name, each in references.items()}
    whole = OF_CONFLUENT.sub("(.confluent.", schema)  # in a package io.confluent.x it would be io.confluent's
    try:
        files = FileDescriptorSet.FromString(protoc({**KNOWN, **named, MAIN: whole}, MAIN)).file
        found = next(each for each in files if each.name == MAIN)
    except SchemaFaultError:
        found = main
    found.name = "default"  # as Confluent's registry calls it
    for message in found.message_type:
        _clear_names(message)
    for field in found.extension:
        field.ClearField("json_name")
    return bytes(found.SerializeToString())


def _clear_names(message: Any) -> None:
    """Drop names in JSON that are those of the fields."""
    for field in (*message.field, *message.extension):
        if field.json_name == json_name(field.name):
            field.ClearField("json_name")
    for nested in message.nested_type:
        _clear_names(nested)


def _mark_maps(blocks: list[Block], messages: Any) -> None:
    """Say in the descriptors which messages are entries of maps, which protoc was not told."""
    named = {each.name: each for each in messages}
    for block in blocks:
        message = named[block.name]
        if block.is_map_entry:
            message.options.map_entry = True
        _mark_maps(block.messages, message.nested_type)


def text(parsed: Parsed, form: str, normalize: bool) -> str:
    """The .proto, or by `form` its descriptor in base64 or the .proto without extensions. Errors: SchemaFaultError."""
    if form == "serialized":
        return base64.b64encode(parsed.serialized()).decode()
    names = Names(parsed.files, parsed.tree) if normalize else None
    return written(parsed.tree, names, without_extensions=form == "ignore_extensions")


def fields(parsed: Parsed) -> list[str]:
    """The names of the fields of what is outermost."""
    return [field.name for message in parsed.main.message_type for field in message.field]


def compare(reader: Parsed, writer: Parsed, *, is_lenient: bool = False) -> list[Finding]:
    """Why the first cannot read what the second has written."""
    return differences(Types(reader.files, reader.main), Types(writer.files, writer.main))


def _make_optional(message: DescriptorProto) -> None:
    """Give each field that is optional in proto3 the oneof that says so, which not every client names."""
    names = [each.name for each in message.oneof_decl]
    for field in message.field:
        if field.proto3_optional and not field.HasField("oneof_index"):
            name = f"_{field.name}"
            if name not in names:
                names.append(name)
                message.oneof_decl.add(name=name)
            field.oneof_index = names.index(name)
    for each in message.nested_type:
        _make_optional(each)


def _readable(schema: str, references: dict[str, str], protoc: Protoc) -> str:
    """A .proto of what is given. Errors: SchemaFaultError."""
    if not BASE64.fullmatch(schema):
        return schema
    try:
        main = FileDescriptorProto.FromString(base64.b64decode(schema))
    except (binascii.Error, DecodeError):
        return schema  # protoc says what is wrong with it
    main.name = MAIN
    for message in main.message_type:
        _make_optional(message)
    needed = "".join(f'import "{_checked(each)}";\n' for each in main.dependency)
    others = _compiled(f'syntax = "proto3";\n{needed}', references, protoc, takes_all=False)
    try:
        return text_of_descriptor([*(each for each in others if each.name != MAIN), main], main)
    except (TypeError, KeyError, ValueError, StopIteration) as error:
        raise SchemaFaultError(f"its descriptor cannot be read: {error}"[:ERROR_LETTERS]) from None


def _checked(name: str) -> str:
    """The name of a file within the registry. Errors: SchemaFaultError."""
    place = PurePosixPath(name)
    if not name or place.is_absolute() or ".." in place.parts or re.search(r'[\\:"\n\0]', name) or name == MAIN:
        raise SchemaFaultError(f"{name[:100]!r} is no name of a file within a registry")
    return name


def _compiled(schema: str, references: dict[str, str], protoc: Protoc, *, takes_all: bool) -> list[Any]:
    """The descriptors of a .proto and of what it imports. Errors: SchemaFaultError, with line and column.

    `takes_all`: a reference counts as imported where it is not, as in Confluent's registry without validateFields.
    """
    named = {_checked(name): _bare(each) for name, each in references.items()}
    more = "".join(f'import "{name}";' for name in named if takes_all and f'"{name}"' not in schema)
    return list(FileDescriptorSet.FromString(protoc({**KNOWN, **named, MAIN: f"{_bare(schema)}\n{more}"}, MAIN)).file)


def _bare(schema: str) -> str:
    """A .proto as protoc is shown it; one that cannot be read as it is: protoc says what is wrong."""
    try:
        return tree_of_proto(schema)[1]
    except SchemaFaultError:
        return schema
