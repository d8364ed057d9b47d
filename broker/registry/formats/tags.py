"""Reads and changes the tags within Avro and JSON Schemas: the property "confluent:tags" of records and fields.

Source: Confluent's AvroSchemaUtils.findMatchingEntity and JsonSchemaUtils.findMatchingEntity.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from broker.registry.formats.avro_text import NAMED, full_name, space_of
from broker.registry.formats.json_tree import tree_of
from broker.registry.jobs import SchemaFaultError, Tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


TAGS: Final = "confluent:tags"
CHOICES: Final = {"anyof": "anyOf", "allof": "allOf", "oneof": "oneOf"}


def tagged_avro(schema: str, tags: Sequence[Tag]) -> str:
    """Errors: SchemaFaultError: there is no such record, or field."""
    return _tagged(schema, tags, _of_avro)


def tagged_json(schema: str, tags: Sequence[Tag]) -> str:
    """Errors: SchemaFaultError: the path leads nowhere."""
    return _tagged(schema, tags, lambda tree, tag: _of_json(tree, tag.path.split(".")))


def within_avro(schema: str) -> list[Tag]:
    """The tags of records and fields, each record the first time that it stands in the schema."""
    found: list[Tag] = []
    for full, node in _records(tree_of(schema, ""), ""):
        fields = [each for each in node.get("fields") or () if isinstance(each, dict)]
        places = [(full, True, node), *((f"{full}.{each.get('name')}", False, each) for each in fields)]
        found += _given(places)
    return found


def within_json(schema: str) -> list[Tag]:
    """The tags of objects and properties, by the paths that lead to them."""
    return _given(_places(tree_of(schema, ""), "", False))


def _given(places: Iterable[tuple[str, bool, Any]]) -> list[Tag]:
    """The tags that nodes have: (path, whether it is a record, node)."""
    rows = ((path, is_record, node.get(TAGS)) for path, is_record, node in places if isinstance(node, dict))
    found = ((path, is_record, tags) for path, is_record, tags in rows if isinstance(tags, list) and tags)
    return [Tag(path, is_record, tuple(dict.fromkeys(map(str, tags))), ()) for path, is_record, tags in found]


def _places(node: Any, scope: str, in_field: bool) -> Iterator[tuple[str, bool, Any]]:
    """What may have tags within a JSON Schema; `in_field`: the node is a property's, which was named with it."""
    if not isinstance(node, dict):
        return
    for kind, key in CHOICES.items():
        for number, each in enumerate(node.get(key) or ()):
            yield from _places(each, f"{scope}{kind}.{number}.", False)
    yield from _places(node.get("items"), f"{scope}array.", False)
    yield from _places(node.get("not"), f"{scope}not.", False)
    if node.get("type") == "object" or "properties" in node:
        if not in_field:
            yield f"{scope}object", True, node
        for name, each in (node.get("properties") or {}).items():
            yield f"{scope}object.{name}", False, each
            yield from _places(each, f"{scope}object.{name}.", True)
        for part in ("definitions", "$defs"):
            for name, each in (node.get(part) or {}).items():
                yield from _places(each, f"{scope}object.{part}.{name}.", False)


def _tagged(schema: str, tags: Sequence[Tag], find: Callable[[Any, Tag], Any]) -> str:
    tree = tree_of(schema, "")
    for tag in tags:
        node = find(tree, tag)
        if not isinstance(node, dict):
            raise SchemaFaultError(f"No matching path '{tag.path:.500}' found in the schema")
        found = tag.applied(list(node.pop(TAGS, [])))
        if found:
            node[TAGS] = found
    return json.dumps(tree, ensure_ascii=False)


def _of_avro(tree: Any, tag: Tag) -> Any:
    record, _, field = (tag.path, "", "") if tag.is_record else tag.path.rpartition(".")
    for full, node in _records(tree, ""):
        if record in (full, full.rpartition(".")[2]):  # without a namespace, a record of any
            rows = [each for each in node.get("fields", ()) if isinstance(each, dict) and each.get("name") == field]
            return node if tag.is_record else next(iter(rows), None)
    return None


def _records(node: Any, space: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The definitions in a schema, with their full names."""
    if isinstance(node, list):
        for each in node:
            yield from _records(each, space)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("type"), str) and node["type"] in NAMED and isinstance(node.get("name"), str):
        full = full_name(node["name"], node.get("namespace"), space)
        yield full, node
        space = space_of(full)
    for part in ("items", "values", "type"):
        yield from _records(node.get(part), space)
    for field in node.get("fields") or ():
        yield from _records(field, space)


def _of_json(node: Any, words: list[str]) -> Any:
    """What a path leads to: object.price, array.object.price, object.definitions.Money, anyof.0.object.price."""
    if not isinstance(node, dict) or not words:
        return None
    kind, rest = words[0], words[1:]
    if kind == "object":
        if not rest:
            return node
        part = rest[0] if rest[0] in ("definitions", "$defs") else "properties"
        return _below(node.get(part), rest if part == "properties" else rest[1:])
    if kind == "array":
        return _of_json(node.get("items"), rest)
    if kind == "not":
        return _of_json(node.get("not"), rest)
    choices = node.get(CHOICES.get(kind, ""))
    if isinstance(choices, list) and rest and rest[0].isdigit() and int(rest[0]) < len(choices):
        found = choices[int(rest[0])]
        return _of_json(found, rest[1:]) if rest[1:] else found
    return None


def _below(node: Any, words: list[str]) -> Any:
    """A property, whose name may have dots, and what the rest of a path leads to from there."""
    for length in range(1, len(words) + 1):
        name = ".".join(words[:length])
        if isinstance(node, dict) and name in node:
            return _of_json(node[name], words[length:]) if words[length:] else node[name]
    return None
