"""A .proto made of a descriptor, which is how Confluent's client for Python sends a schema.

Names of types are as short as they may be. What is made here is read again, and written as any other .proto.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from broker.registry.formats.protobuf.options import Options
from broker.registry.formats.protobuf.written import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

TYPES: Final = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in Field.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}
LARGEST: Final = 536_870_911  # number of a field
LARGEST_ENUM: Final = 2_147_483_647


def text_of_descriptor(files: Iterable[Any], main: Any) -> str:
    """The .proto of a file, one of those that belong to it."""
    return _Writer(list(files), main).file()


class _Writer:
    def __init__(self, files: list[Any], main: Any) -> None:
        self._main = main
        self._options = Options(files)
        self._names = {name for file in files for name in _names(file)}

    def file(self) -> str:
        """All of it."""
        main = self._main
        parts = [_head(main) + (f"package {main.package};\n" if main.package else "")]
        public = {main.dependency[index] for index in main.public_dependency}
        imports = [each for each in main.dependency if each not in public]
        rows = [*imports, *(f"public {each}" for each in main.dependency if each in public)]
        parts.append("".join(_import(each) for each in rows))
        parts.append("".join(f"option {each};\n" for each in self._options.rows("FileOptions", main.options)))
        scope = main.package.split(".") if main.package else []
        parts.append(self._types(main.message_type, main.enum_type, scope))
        parts.append(self._extends(main.extension, scope, []))
        parts.append("".join(self._service(each, scope) for each in main.service))
        return "\n".join(part for part in parts if part)

    def _types(self, messages: Iterable[Any], enums: Iterable[Any], scope: list[str]) -> str:
        rows = [self._message(each, [*scope, each.name]) for each in messages if not each.options.map_entry]
        return "".join([*rows, *(self._enum(each) for each in enums)])

    def _message(self, proto: Any, scope: list[str]) -> str:
        groups = {each.type_name.rpartition(".")[2] for each in proto.field if each.type == Field.TYPE_GROUP}
        nested = [each for each in proto.nested_type if each.name not in groups]
        fields = list(proto.field)
        single = [each for each in fields if not _is_in_oneof(each)]
        parts = [
            _reserved(proto, LARGEST, is_enum=False),
            "".join(f"option {each};\n" for each in self._options.rows("MessageOptions", proto.options)),
            "".join(self._field(each, scope, proto.nested_type) for each in single),
            "".join(
                self._oneof(index, proto, fields, scope)
                for index in range(len(proto.oneof_decl))
                if _is_real(index, fields)
            ),
            self._ranges(proto),
            self._extends(proto.extension, scope, proto.nested_type),
            self._types(nested, proto.enum_type, scope),
        ]
        return _block(f"message {proto.name}", parts)

    def _oneof(self, index: int, proto: Any, fields: list[Any], scope: list[str]) -> str:
        decl = proto.oneof_decl[index]
        members = [each for each in fields if _is_in_oneof(each) and each.oneof_index == index]
        parts = [
            "".join(f"option {each};\n" for each in self._options.rows("OneofOptions", decl.options)),
            "".join(self._field(each, scope, proto.nested_type, is_bare=True) for each in members),
        ]
        return _block(f"oneof {decl.name}", parts)

    def _field(self, field: Any, scope: list[str], nested: Iterable[Any], *, is_bare: bool = False) -> str:
        entry = next(
            (each for each in nested if each.options.map_entry and field.type_name.endswith(f".{each.name}")), None
        )
        label = "" if is_bare or entry is not None else self._label(field)
        if field.type == Field.TYPE_GROUP:
            group = next(each for each in nested if field.type_name.endswith(f".{each.name}"))
            body = self._message(group, [*scope, group.name]).partition("{")[2]
            return f"{label}group {group.name} = {field.number} {{{body}"
        if entry is not None:
            key, value = entry.field
            kind = f"map<{self._type(key, scope)}, {self._type(value, scope)}>"
        else:
            kind = self._type(field, scope)
        options = [*self._options.rows("FieldOptions", field.options), *_specials(field)]
        return f"{label}{kind} {field.name} = {field.number}{_bracketed(options)};\n"

    def _label(self, field: Any) -> str:
        if field.label == Field.LABEL_REPEATED:
            return "repeated "
        if field.label == Field.LABEL_REQUIRED:
            return "required "
        is_written = field.proto3_optional or self._main.syntax in ("", "proto2")
        return "optional " if is_written else ""

    def _type(self, field: Any, scope: list[str]) -> str:
        return TYPES.get(field.type) or self._short(field.type_name, scope)

    def _short(self, full: str, scope: list[str]) -> str:
        """The shortest name that means a type in a scope, by the order in which scopes are searched."""
        words = full[1:].split(".")
        for length in range(1, len(words) + 1):
            name = words[-length:]
            for depth in range(len(scope), -1, -1):
                found = [*scope[:depth], name[0]]
                if ".".join(found) in self._names:
                    if [*scope[:depth], *name] == words:
                        return ".".join(name)
                    break
        return full

    def _enum(self, proto: Any) -> str:
        rows = "".join(
            f"{each.name} = {each.number}{_bracketed(self._options.rows('EnumValueOptions', each.options))};\n"
            for each in proto.value
        )
        options = "".join(f"option {each};\n" for each in self._options.rows("EnumOptions", proto.options))
        return _block(f"enum {proto.name}", [_reserved(proto, LARGEST_ENUM, is_enum=True), options + rows])

    def _ranges(self, proto: Any) -> str:
        rows = []
        for each in proto.extension_range:
            options = self._options.rows("ExtensionRangeOptions", each.options)
            rows.append(f"extensions {_range(each.start, each.end - 1, LARGEST)}{_bracketed(options)};\n")
        return "".join(rows)

    def _extends(self, fields: Iterable[Any], scope: list[str], nested: Iterable[Any]) -> str:
        by_target: dict[str, list[Any]] = {}
        for field in fields:
            by_target.setdefault(field.extendee, []).append(field)
        return "".join(
            _block(
                f"extend {self._short(target, scope)}",
                ["".join(self._field(each, scope, nested) for each in rows)],
            )
            for target, rows in by_target.items()
        )

    def _service(self, proto: Any, scope: list[str]) -> str:
        options = "".join(f"option {each};\n" for each in self._options.rows("ServiceOptions", proto.options))
        return _block(f"service {proto.name}", [options, "".join(self._method(each, scope) for each in proto.method)])

    def _method(self, proto: Any, scope: list[str]) -> str:
        request = ("stream " if proto.client_streaming else "") + self._short(proto.input_type, scope)
        response = ("stream " if proto.server_streaming else "") + self._short(proto.output_type, scope)
        options = self._options.rows("MethodOptions", proto.options)
        end = " {\n" + "".join(f"  option {each};\n" for each in options) + "}" if options else ""
        return f"rpc {proto.name} ({request}) returns ({response}){end};\n"


def _head(main: Any) -> str:
    if main.syntax == "editions":
        return f'edition = "{main.edition - 998 + 2022 if main.edition < 1001 else 2024}";\n'
    return f'syntax = "{main.syntax or "proto2"}";\n'


def _import(name: str) -> str:
    public = name.startswith("public ")
    return f'import {"public " if public else ""}"{name.removeprefix("public ")}";\n'


def _names(file: Any) -> Iterable[str]:
    """The full names of all types and packages of a file."""
    words = file.package.split(".") if file.package else []
    for length in range(1, len(words) + 1):
        yield ".".join(words[:length])
    yield from _below(file.message_type, file.enum_type, words)


def _below(messages: Iterable[Any], enums: Iterable[Any], scope: list[str]) -> Iterable[str]:
    for each in enums:
        yield ".".join([*scope, each.name])
    for each in messages:
        inner = [*scope, each.name]
        yield ".".join(inner)
        yield from _below(each.nested_type, each.enum_type, inner)


def _is_real(index: int, fields: list[Any]) -> bool:
    """Whether a oneof was written, not made of `optional`."""
    return any(_is_in_oneof(each) and each.oneof_index == index for each in fields)


def _is_in_oneof(field: Any) -> bool:
    return bool(field.HasField("oneof_index")) and not field.proto3_optional


def _block(head: str, parts: list[str]) -> str:
    """A block with an empty line between its parts; one within a part is indented as any other, as Confluent's is."""
    parts = [part for part in parts if part]
    if not parts:
        return f"{head} {{}}\n"
    shown = ["".join(f"  {line}\n" for line in part.removesuffix("\n").split("\n")) for part in parts]
    return f"{head} {{\n" + "\n".join(shown) + "}\n"


def _bracketed(options: list[str]) -> str:
    if not options:
        return ""
    if len(options) == 1:
        return f" [{options[0]}]"
    return " [\n  " + ",\n  ".join(options) + "\n]"


def _reserved(proto: Any, largest: int, *, is_enum: bool) -> str:
    rows = [_range(each.start, each.end if is_enum else each.end - 1, largest) for each in proto.reserved_range]
    found = "".join(f"reserved {each};\n" for each in rows)
    return found + "".join(f"reserved {quoted(each)};\n" for each in proto.reserved_name)


def _range(first: int, last: int, largest: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= largest else last}"


def _specials(field: Any) -> list[str]:
    """What is written among the options, and is none."""
    found = []
    if field.HasField("default_value"):
        is_text = field.type in (Field.TYPE_STRING, Field.TYPE_BYTES)
        value = field.default_value
        if field.type == Field.TYPE_BYTES:  # escaped already
            value = f'"{value}"'
        elif is_text:
            value = quoted(value)
        found.append(f"default = {value}")
    if field.json_name and field.json_name != json_name(field.name):
        found.append(f"json_name = {quoted(field.json_name)}")
    return found


def json_name(name: str) -> str:
    """The name in JSON of a field that names none."""
    made, rises = "", False
    for letter in name:
        if letter == "_":
            rises = True
        else:
            made += letter.upper() if rises else letter
            rises = False
    return made
