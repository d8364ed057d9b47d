"""How a Protobuf schema is written: from its tree, so that spaces and comments do not count.

The layout is that of Confluent's registry: imports, options, messages, enums, extensions, services; in a message what
is reserved, options, fields, oneofs, groups, extensions and nested types. In the normalized form names of types and of
options are full, fields are sorted by number, imports and options by name, and a map is written as one.
Source: Confluent's ProtobufSchemaUtils.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from broker.registry.formats.protobuf.nodes import Member, Option, Ranges, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.registry.formats.protobuf.names import Names
    from broker.registry.formats.protobuf.nodes import Block, Rpc

LETTERS: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"} | {
    each: f"\\{each}" for each in "\\'\""
}
SCALARS: Final = frozenset(("bool", "bytes", "double", "float", "string")) | {
    f"{kind}{bits}" for kind in ("fixed", "int", "sfixed", "sint", "uint") for bits in (32, 64)
}
LARGEST: Final = 536_870_911  # number of a field


def written(tree: Block, names: Names | None = None, *, without_extensions: bool = False) -> str:
    """The .proto; `names`: write the normalized form, by these."""
    return _Writer(names, without_extensions).file(tree)


class _Writer:
    def __init__(self, names: Names | None, without_extensions: bool) -> None:
        self._names = names
        self._is_bare = without_extensions

    def file(self, tree: Block) -> str:
        """All of it."""
        head = f'syntax = "{tree.syntax}";\n' if tree.syntax else ""
        if tree.syntax.startswith("edition "):
            head = f'edition = "{tree.syntax[8:]}";\n'
        if self._names is not None and tree.syntax == "proto2":
            head = ""
        scope = tree.package.split(".") if tree.package else []
        imports = [f'import "{each}";\n' for each in self._distinct(tree.imports)]
        imports += [f'import public "{each}";\n' for each in self._distinct(tree.public_imports)]
        parts = [
            "".join(imports),
            self._statements(tree.options, scope),
            self._types(tree, scope),
            self._extends(tree.extends, scope),
            "".join(self._service(each, scope) for each in tree.services),
        ]
        package = f"package {tree.package};\n" if tree.package else ""
        return head + package + "".join(f"\n{part}" for part in parts if part)

    def _distinct(self, rows: list[str]) -> list[str]:
        return rows if self._names is None else sorted(set(rows))

    def _types(self, block: Block, scope: list[str]) -> str:
        messages = block.messages
        if self._names is not None:
            messages = [each for each in messages if not each.is_map_entry]
        rows = [self._message(each, [*scope, each.name]) for each in messages]
        return "".join([*rows, *(self._enum(each, scope) for each in block.enums)])

    def _message(self, block: Block, scope: list[str]) -> str:
        parts = [
            self._reserved(block),
            self._statements(block.options, scope),
            "".join(self._field(each, scope) for each in self._by_number(block.members)),
            "".join(self._oneof(each, scope) for each in self._oneofs(block)),
            "".join(self._group(each, scope) for each in self._by_number(block.groups)),
            "" if self._is_bare else self._extensions(block, scope),
            self._extends(block.extends, scope),
            self._types(block, scope),
        ]
        return _braced(f"message {block.name}", parts)

    def _by_number(self, rows: list[Member]) -> list[Member]:
        return rows if self._names is None else sorted(rows, key=lambda each: _whole(each.number))

    def _oneofs(self, block: Block) -> list[Block]:
        if self._names is None:
            return block.oneofs
        rows = [replace(each, members=self._by_number(each.members)) for each in block.oneofs if each.members]
        return sorted(rows, key=lambda each: _whole(each.members[0].number))

    def _oneof(self, block: Block, scope: list[str]) -> str:
        parts = [
            self._statements(block.options, scope),
            "".join(self._field(each, scope) for each in block.members),
            "".join(self._group(each, scope) for each in self._by_number(block.groups)),
        ]
        return _braced(f"oneof {block.name}", parts)

    def _group(self, group: Member, scope: list[str]) -> str:
        label = f"{group.label} " if group.label else ""
        fields = "".join(self._field(each, [*scope, group.name]) for each in self._by_number(group.fields))
        return _braced(f"{label}group {group.name} = {group.number}", [fields])

    def _field(self, field: Member, scope: list[str]) -> str:
        kind, label = self._type(field.type, scope, field.label)
        options = [each for each in field.options if each.is_custom or each.name not in ("default", "json_name")]
        for name in ("default", "json_name"):  # written last
            options += [_special(each, kind) for each in field.options if not each.is_custom and each.name == name]
        shown = f"{label} " if label else ""
        return f"{shown}{kind} {field.name} = {field.number}{self._bracket(options, scope)};\n"

    def _type(self, kind: str, scope: list[str], label: str) -> tuple[str, str]:
        """The type and label of a field as they are written. Errors: as Names.full."""
        if self._names is None or kind in SCALARS:
            return kind, label
        if not kind.startswith("map<"):
            kind = "." + self._names.full(kind, scope)
            entry = self._names.map_entries.get(kind[1:])
            if entry is None:
                return kind, label
            key, value = entry
            scope = kind[1:].split(".")
        else:
            key, _, value = kind[4:-1].partition(", ")
        found = value if value in SCALARS else "." + self._names.full(value, scope)
        return f"map<{key}, {found}>", ""

    def _enum(self, block: Block, scope: list[str]) -> str:
        values = block.members
        if self._names is not None:
            values = sorted(values, key=lambda each: (_whole(each.number), each.name))
        rows = "".join(f"{each.name} = {each.number}{self._bracket(each.options, scope)};\n" for each in values)
        return _braced(f"enum {block.name}", [self._reserved(block) + self._statements(block.options, scope) + rows])

    def _reserved(self, block: Block) -> str:
        return "".join(
            f"reserved {', '.join(self._range(each) for each in row.values)};\n" for row in self._rows(block.reserved)
        )

    def _extensions(self, block: Block, scope: list[str]) -> str:
        return "".join(
            f"extensions {', '.join(self._range(each) for each in row.values)}{self._bracket(row.options, scope)};\n"
            for row in self._rows(block.extensions)
        )

    def _rows(self, rows: list[Ranges]) -> list[Ranges]:
        if self._names is None:
            return rows
        single = [Ranges([value], row.options) for row in rows for value in row.values]
        return sorted(single, key=lambda row: _first(row.values[0]))

    def _range(self, value: Any) -> str:
        if isinstance(value, Text):
            return f'"{value}"'
        if isinstance(value, str):
            return value
        first, last = value
        if self._names is not None and first == last:
            return str(first)
        is_max = last == "max" or _whole(last) >= LARGEST
        return f"{first} to {'max' if is_max else last}"

    def _extends(self, blocks: list[Block], scope: list[str]) -> str:
        if self._is_bare:
            return ""
        rows: Iterable[tuple[str, list[Member]]] = [(each.name, each.members) for each in blocks]
        if self._names is not None:
            by_target: dict[str, list[Member]] = {}
            for name, members in rows:
                by_target.setdefault("." + self._names.full(name, scope), []).extend(members)
            rows = by_target.items()
        return "".join(
            _braced(f"extend {name}", ["".join(self._field(each, scope) for each in self._by_number(members))])
            for name, members in rows
        )

    def _service(self, block: Block, scope: list[str]) -> str:
        rpcs = "".join(self._rpc(each, scope) for each in block.rpcs)
        return _braced(f"service {block.name}", [self._statements(block.options, scope), rpcs])

    def _rpc(self, rpc: Rpc, scope: list[str]) -> str:
        request, response = (self._message_type(each, scope) for each in (rpc.request, rpc.response))
        options = self._statements(rpc.options, scope)
        end = " {\n" + _indented(options) + "}" if options else ""
        return f"rpc {rpc.name} ({request}) returns ({response}){end};\n"

    def _message_type(self, name: str, scope: list[str]) -> str:
        stream = "stream " if name.startswith("stream ") else ""
        name = name.removeprefix("stream ")
        return stream + (name if self._names is None else "." + self._names.full(name, scope))

    # -- options

    def _statements(self, options: list[Option], scope: list[str]) -> str:
        return "".join(f"option {self._option(each)};\n" for each in self._shown(options, scope))

    def _bracket(self, options: list[Option], scope: list[str]) -> str:
        rows = [self._option(each) for each in self._shown(options, scope)]
        return f" {_listed(rows)}" if rows else ""

    def _shown(self, options: list[Option], scope: list[str]) -> list[Option]:
        if self._is_bare:
            options = [each for each in options if not each.is_custom or each.name.startswith("confluent")]
        return options if self._names is None else self._names.in_order(options, scope)

    def _option(self, option: Option) -> str:
        name = f"({option.name})" if option.is_custom else option.name
        value = option.value
        if isinstance(value, Option):
            return f"{name}.{self._option(value)}"
        if isinstance(value, list):
            return f"{name} = {_listed([self._value(each) for each in value])}"
        return f"{name} = {self._value(value)}"

    def _value(self, value: Any) -> str:
        if isinstance(value, dict):
            rows = [(key, each) for key, each in value.items() if self._names is None or each != []]
            if self._names is not None:
                rows.sort(key=lambda row: row[0])
            return f"{{\n{_indented(_separated([f'{key}: {self._value(each)}' for key, each in rows]))}}}"
        if isinstance(value, list):
            if self._names is not None and len(value) == 1:
                return self._value(value[0])
            return f"[\n{_indented(_separated([self._value(each) for each in value]))}]"
        if isinstance(value, Text):
            return quoted(value)
        return value if self._names is None else _number(value)


def quoted(text: str) -> str:
    """A text as a .proto has it."""
    return '"' + "".join(LETTERS.get(letter, letter) for letter in text) + '"'


def _braced(head: str, parts: list[str]) -> str:
    """A block with an empty line between its parts; one within a part is indented as any other, as Confluent's is."""
    return f"{head} {{" + "".join(f"\n{_indented(part)}" for part in parts if part) + "}\n"


def _indented(text: str) -> str:
    if not text:
        return ""
    return "".join(f"  {line}\n" for line in text.removesuffix("\n").split("\n"))


def _separated(rows: list[str]) -> str:
    return ",\n".join(rows)


def _listed(rows: list[str]) -> str:
    return f"[{rows[0]}]" if len(rows) == 1 else f"[\n{_indented(_separated(rows))}]"


def _special(option: Option, kind: str) -> Option:
    """A default of a number is no text, however it was written."""
    is_text = option.name == "json_name" or kind in ("string", "bytes")
    return Option(option.name, False, Text(option.value) if is_text else str(option.value))


def _whole(number: str) -> int:
    try:
        return int(number, 0)
    except ValueError:
        return LARGEST


def _first(value: Any) -> tuple[int, str]:
    """By what ranges are sorted: the first number; names come last."""
    if isinstance(value, Text):
        return 1 << 31, value
    return (_whole(value), value) if isinstance(value, str) else (_whole(value[0]), str(value))


def _number(word: str) -> str:
    """A number in its shortest form; any other word stays."""
    if word[:1] not in "-.0123456789":
        return word
    try:
        found = Decimal(int(word, 0)) if "x" in word.lower() else Decimal(word)
        return format(found.quantize(Decimal("0.001")).normalize(), "f")
    except (InvalidOperation, ValueError):
        return word
