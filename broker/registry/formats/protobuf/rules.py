"""The rules by which a Protobuf schema reads what was written by another, and the walk that finds its changes.

Fields are compared by their numbers, messages and enums by their names. What may change is left out: names, order, what
is added, enums, and a field that is dropped, for a reader passes over numbers that it does not know.

    change                                                          kind
    another package                                                 PACKAGE_CHANGED
    a message is gone                                               MESSAGE_REMOVED
    scalar, map and message are exchanged                           FIELD_KIND_CHANGED
    a scalar of another encoding (SCALARS; an enum is a number)     FIELD_SCALAR_KIND_CHANGED
    another message, or one of another file that differs            FIELD_NAMED_TYPE_CHANGED
    a number that was single is repeated, or the other way round    FIELD_NUMERIC_LABEL_CHANGED
    a required field comes, or goes                                 REQUIRED_FIELD_ADDED, REQUIRED_FIELD_REMOVED
    a member of a oneof is gone, and others of it are there         ONEOF_FIELD_REMOVED
    fields that were independent exclude each other                 MULTIPLE_FIELDS_MOVED_TO_ONEOF, and for one that
                                                                    comes into a oneof FIELD_MOVED_TO_EXISTING_ONEOF

No library has these rules. Source: Protocol Buffers' guide, "Updating a message type"; kinds, paths and sentences are
those of Confluent's registry (protobuf/diff).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from broker.registry.formats.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NUMBER: Final = "number"
SCALARS: Final = {  # by type: what is encoded alike
    Field.TYPE_INT32: NUMBER,
    Field.TYPE_INT64: NUMBER,
    Field.TYPE_UINT32: NUMBER,
    Field.TYPE_UINT64: NUMBER,
    Field.TYPE_BOOL: NUMBER,
    Field.TYPE_ENUM: NUMBER,
    Field.TYPE_SINT32: "signed number",
    Field.TYPE_SINT64: "signed number",
    Field.TYPE_STRING: "string or bytes",
    Field.TYPE_BYTES: "string or bytes",
    Field.TYPE_FIXED32: "fixed32",
    Field.TYPE_SFIXED32: "fixed32",
    Field.TYPE_FIXED64: "fixed64",
    Field.TYPE_SFIXED64: "fixed64",
    Field.TYPE_FLOAT: "float",
    Field.TYPE_DOUBLE: "double",
}
SENTENCES: Final = {
    "PACKAGE_CHANGED": "The package at '{path}' in the {{reader}} schema does not match the package in the"
    " {{writer}} schema",
    "MESSAGE_REMOVED": "The {{reader}} schema is missing a MESSAGE type at path '{path}' in the {{writer}} schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{path}' in the {{reader}} schema does not match the"
    " {{writer}} schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of a SCALAR field at path '{path}' in the {{reader}} schema does not"
    " match its"
    " kind in the {{writer}} schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of a MESSAGE field at path '{path}' in the {{reader}} schema does not match"
    " its type in the {{writer}} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label for a NUMERIC field at path '{path}' in the {{reader}} schema does"
    " not match"
    " its label in the {{writer}} schema",
    "REQUIRED_FIELD_ADDED": "A required field  at path '{path}' in the {{reader}} schema is missing in the"
    " {{writer}} schema",
    "REQUIRED_FIELD_REMOVED": "The {{reader}} schema is missing a required field at path: '{path}' in the {{writer}}"
    " schema",
    "ONEOF_FIELD_REMOVED": "The {{reader}} schema is missing a oneof field at path '{path}' in the {{writer}} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Multiple fields in the oneof at path '{path}' in the {{reader}} schema are"
    " outside a"
    " oneof in the {{writer}} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field in the oneof at path '{path}' in the {{reader}} schema is outside an"
    " existing"
    " oneof in the {{writer}} schema",
}
Path = tuple[str, ...]
Change = tuple[str, Path]


class Message(NamedTuple):
    """A message type, and where it is from."""

    proto: Any
    local: str  # its name without the package
    file: str


class Types:
    """The message types of a schema and of all that it imports, by full name.

    main   the descriptor of its own file.
    """

    def __init__(self, files: Iterable[Any], main: Any) -> None:
        self.main = main
        self.messages: dict[str, Message] = {}
        for file in files:
            prefix = f".{file.package}." if file.package else "."
            for local, proto in _messages(file.message_type, ""):
                self.messages[prefix + local] = Message(proto, local, file.name)

    def is_map(self, field: Any) -> bool:
        """Whether a field is a map."""
        found = self.messages.get(field.type_name)
        return found is not None and found.proto.options.map_entry


def _messages(protos: Iterable[Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for proto in protos:
        name = f"{prefix}{proto.name}"
        yield name, proto
        yield from _messages(proto.nested_type, f"{name}.")


def differences(reader: Types, writer: Types) -> list[Finding]:
    """Why the first cannot read what the second wrote; none: it can."""
    found = _Comparison(writer, reader).files()
    return [_finding(kind, path) for kind, path in found]


def _finding(kind: str, path: Path) -> Finding:
    place = "#/" + "/".join(path)
    return Finding(kind, place, f'{{errorType:"{kind}", description:"{SENTENCES[kind].format(path=place)}"}}')


class _Comparison:
    """One comparison of an old schema, the writer's, with a new one, the reader's."""

    def __init__(self, old: Types, new: Types) -> None:
        self._old = old
        self._new = new
        self._open: set[tuple[str, str]] = set()  # messages of other files that are being compared

    def files(self) -> list[Change]:
        """The changes between both files."""
        old, new = self._old.main, self._new.main
        found: list[Change] = [("PACKAGE_CHANGED", ())] if old.package != new.package else []
        return found + self._types(old.message_type, new.message_type, ())

    def _types(self, olds: Iterable[Any], news: Iterable[Any], path: Path) -> list[Change]:
        found: list[Change] = []
        named = {each.name: each for each in news}
        for old in olds:
            if old.options.map_entry:
                continue
            place = (*path, old.name)
            new = named.get(old.name)
            found += [("MESSAGE_REMOVED", place)] if new is None else self._message(old, new, place)
        return found

    def _message(self, old: Any, new: Any, path: Path) -> list[Change]:
        found = [*_oneofs(old, new, path), *_removed(old, new, path)]
        olds = {each.number: each for each in old.field}
        for field in sorted(new.field, key=lambda each: int(each.number)):
            before = olds.get(field.number)
            oneof = _oneof(new, field)
            place = (*path, *([oneof] if oneof else []), str(field.number))
            if before is not None:
                found += self._field(before, field, place)
            elif field.label == Field.LABEL_REQUIRED:
                found.append(("REQUIRED_FIELD_ADDED", place))
        return found + self._types(old.nested_type, new.nested_type, path)

    def _field(self, old: Any, new: Any, path: Path) -> list[Change]:
        kinds = _kind(self._old, old), _kind(self._new, new)
        if kinds[0] != kinds[1]:
            return [("FIELD_KIND_CHANGED", path)]
        if kinds[0] == "scalar":
            return _scalars(self._old.main, old, self._new.main, new, path)
        if kinds[0] == "map":
            before, after = (
                types.messages[field.type_name].proto for types, field in ((self._old, old), (self._new, new))
            )
            return [
                change
                for one, other in zip(before.field, after.field, strict=True)
                for change in self._field(one, other, path)
            ]
        return self._named(old, new, path)

    def _named(self, old: Any, new: Any, path: Path) -> list[Change]:
        """Two fields of messages: of one name, and those of other files alike as well."""
        before, after = self._old.messages[old.type_name], self._new.messages[new.type_name]
        if before.local != after.local:
            return [("FIELD_NAMED_TYPE_CHANGED", path)]
        is_own = before.file == self._old.main.name and after.file == self._new.main.name
        pair = (old.type_name, new.type_name)
        if is_own or pair in self._open:
            return []
        self._open.add(pair)
        found = self._message(before.proto, after.proto, tuple(after.local.split(".")))
        self._open.discard(pair)
        return [*found, ("FIELD_NAMED_TYPE_CHANGED", path)] if found else []


def _kind(types: Types, field: Any) -> str:
    if field.type in SCALARS:
        return "scalar"
    return "map" if types.is_map(field) else "message"


def _label(file: Any, field: Any) -> int | None:
    """The label as it is written; None: there is none."""
    if field.label == Field.LABEL_OPTIONAL and not field.proto3_optional:
        return (
            None if (file.syntax != "proto2" and file.syntax) or field.HasField("oneof_index") else Field.LABEL_OPTIONAL
        )
    return int(field.label)


def _scalars(old_file: Any, old: Any, new_file: Any, new: Any, path: Path) -> list[Change]:
    if SCALARS[old.type] != SCALARS[new.type]:
        return [("FIELD_SCALAR_KIND_CHANGED", path)]
    before, after = _label(old_file, old), _label(new_file, new)
    if None in (before, after) or before == after or SCALARS[old.type] == "string or bytes":
        return []
    return [("FIELD_NUMERIC_LABEL_CHANGED", path)]


def _oneof(message: Any, field: Any) -> str:
    """The oneof that a field belongs to; "": none that is written."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return ""
    return str(message.oneof_decl[field.oneof_index].name)


def _members(message: Any) -> dict[str, list[int]]:
    """The numbers of each oneof's fields."""
    found: dict[str, list[int]] = {}
    for field in message.field:
        oneof = _oneof(message, field)
        if oneof:
            found.setdefault(oneof, []).append(field.number)
    return found


def _oneofs(old: Any, new: Any, path: Path) -> list[Change]:
    """Fields that exclude each other, and did not."""
    was_in = {number: oneof for oneof, numbers in _members(old).items() for number in numbers}
    known = {field.number for field in old.field}
    found: list[Change] = []
    for oneof, numbers in _members(new).items():
        from_oneofs = {was_in[number] for number in numbers if number in was_in}
        alone = [number for number in numbers if number in known and number not in was_in]
        if len(from_oneofs) + len(alone) > 1:
            kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(alone) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
            found.append((kind, (*path, oneof)))
    return found


def _removed(old: Any, new: Any, path: Path) -> list[Change]:
    """Fields that are gone, and may not be. A oneof may go as a whole."""
    left = {field.number for field in new.field}
    kept = _members(new).keys()
    members = _members(old)
    found: list[Change] = []
    for field in sorted(old.field, key=lambda each: int(each.number)):
        if field.number in left:
            continue
        oneof = _oneof(old, field)
        if oneof and (oneof in kept or any(number in left for number in members[oneof])):
            found.append(("ONEOF_FIELD_REMOVED", (*path, oneof, str(field.number))))
        elif field.label == Field.LABEL_REQUIRED:
            found.append(("REQUIRED_FIELD_REMOVED", (*path, str(field.number))))
    return found
