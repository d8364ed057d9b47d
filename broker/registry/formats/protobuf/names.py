"""What the names in a Protobuf schema mean, by the files that it needs: types, options that extensions define, maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from broker.registry.formats.protobuf.nodes import Option
from broker.registry.jobs import SchemaFaultError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.registry.formats.protobuf.nodes import Block


class Names:
    """The names of a set of files.

    map_entries   by full name: type of key and of value, as they are written.
    """

    def __init__(self, files: Iterable[Any], tree: Block) -> None:
        self._types: set[str] = set()
        self._messages: dict[str, Any] = {}
        self._extensions: dict[str, Any] = {}
        self.map_entries: dict[str, tuple[str, str]] = {}
        for file in files:
            words = file.package.split(".") if file.package else []
            self._add(file, file.message_type, words)
        self._find_maps(tree.messages, tree.package.split(".") if tree.package else [])

    def _add(self, holder: Any, messages: Iterable[Any], scope: list[str]) -> None:
        self._types.update(".".join([*scope, each.name]) for each in holder.enum_type)
        self._extensions.update({".".join([*scope, each.name]): each for each in holder.extension})
        for each in messages:
            inner = [*scope, each.name]
            self._types.add(".".join(inner))
            self._messages[".".join(inner)] = each
            self._add(each, each.nested_type, inner)

    def _find_maps(self, blocks: Iterable[Block], scope: list[str]) -> None:
        for each in blocks:
            inner = [*scope, each.name]
            if each.is_map_entry:
                types = {member.name: member.type for member in each.members}
                self.map_entries[".".join(inner)] = (types.get("key", "string"), types.get("value", "string"))
            self._find_maps(each.messages, inner)

    def full(self, name: str, scope: list[str]) -> str:
        """The full name of a type, as it is found from a scope outwards. Errors: SchemaFaultError: there is none."""
        found = _searched(name, scope, self._types)
        if found is None:
            raise SchemaFaultError(f"Could not resolve type: {name}")
        return found

    def in_order(self, options: list[Option], scope: list[str]) -> list[Option]:
        """Options in the normalized form: by their full names, sorted, the parts of one option together."""
        found: dict[str, list[Option]] = {}
        for each in sorted((self._named(each, scope) for each in options), key=lambda each: each.name):
            rows = found.setdefault(each.name, [])
            extension = self._extensions.get(each.name)
            if not rows or extension is None or extension.label == Field.LABEL_REPEATED:
                rows.append(each)
            elif isinstance(rows[-1].value, dict) and isinstance(each.value, dict):
                merged = self._merged(extension.type_name[1:], rows[-1].value, each.value)
                rows[-1] = Option(each.name, each.is_custom, merged)
            else:
                rows[-1] = each
        return [each for rows in found.values() for each in rows]

    def _named(self, option: Option, scope: list[str]) -> Option:
        name = _searched(option.name, scope, self._extensions) if option.is_custom else None
        return option if name is None else Option(name, True, self._full_keys(_as_object(option.value), scope))

    def _full_keys(self, value: Any, scope: list[str]) -> Any:
        """A value whose extensions, in brackets, have their full names."""
        if isinstance(value, list):
            return [self._full_keys(each, scope) for each in value]
        if not isinstance(value, dict):
            return value
        found = {}
        for key, each in value.items():
            full = _searched(key[1:-1], scope, self._extensions) if key[:1] == "[" else None
            found[key if full is None else f"[{full}]"] = self._full_keys(each, scope)
        return found

    def _merged(self, type_name: str, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
        """Two values of one message: what is repeated is put together, of the rest the second counts."""
        message = self._messages.get(type_name)
        fields = {} if message is None else {each.name: each for each in message.field}
        found = dict(first)
        for name, value in second.items():
            field = fields.get(name)
            if name not in found:
                found[name] = value
            elif field is None or field.label == Field.LABEL_REPEATED:
                rows: list[Any] = []
                for each in (found[name], value):
                    rows += [one for one in (each if isinstance(each, list) else [each]) if one not in rows]
                found[name] = rows
            elif isinstance(found[name], dict) and isinstance(value, dict):
                found[name] = self._merged(field.type_name[1:], found[name], value)
            else:
                found[name] = value
        return found


def _as_object(value: Any) -> Any:
    return {value.name.strip("()"): _as_object(value.value)} if isinstance(value, Option) else value


def _searched(name: str, scope: list[str], known: Any) -> str | None:
    if name.startswith("."):
        return name[1:] if name[1:] in known else None
    for depth in range(len(scope), -1, -1):
        found = ".".join([*scope[:depth], name])
        if found in known:
            return found
    return None
