"""The options of a Protobuf schema as they are written, those that the schema or its imports define included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pool, text_format
from google.protobuf.descriptor_pb2 import DESCRIPTOR
from google.protobuf.message_factory import GetMessageClass

from broker.registry.formats.protobuf.written import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable


class Options:
    """Reads options by the definitions of a set of files."""

    def __init__(self, files: Iterable[Any]) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        rows = list(files)
        if not any(each.name == DESCRIPTOR.name for each in rows):
            self._pool.AddSerializedFile(DESCRIPTOR.serialized_pb)
        for each in rows:
            self._pool.AddSerializedFile(each.SerializeToString())

    def rows(self, kind: str, options: Any) -> list[str]:
        """`NAME = VALUE` of each option of a FileOptions, FieldOptions, ...; `map_entry` is never written."""
        data = options.SerializeToString()
        if not data:
            return []
        message = GetMessageClass(self._pool.FindMessageTypeByName(f"google.protobuf.{kind}")).FromString(data)
        found = []
        for field, value in message.ListFields():
            if field.name == "map_entry" and not field.is_extension:
                continue
            name = f"({field.full_name})" if field.is_extension else field.name
            values = value if field.is_repeated else [value]
            found += [f"{name} = {_value(field, each)}" for each in values]
        return found


def _value(field: Any, value: Any) -> str:
    if field.type == field.TYPE_MESSAGE:
        return f"{{ {text_format.MessageToString(value, as_one_line=True).strip()} }}"
    if field.type == field.TYPE_ENUM:
        return str(field.enum_type.values_by_number[value].name)
    if field.type == field.TYPE_BOOL:
        return "true" if value else "false"
    if field.type == field.TYPE_STRING:
        return quoted(value)
    if field.type == field.TYPE_BYTES:
        return '"' + "".join(f"\\{byte:03o}" for byte in value) + '"'
    return str(value)
