"""Reads and changes the tags within a .proto: those of confluent.message_meta and confluent.field_meta.

Source: Confluent's ProtobufSchema.modifySchemaTags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.registry.formats.protobuf.nodes import Member, Option, Text
from broker.registry.formats.protobuf.tree import tree_of_proto
from broker.registry.formats.protobuf.written import written
from broker.registry.jobs import SchemaFaultError, Tag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.registry.formats.protobuf.nodes import Block

NAMES: Final = {True: "confluent.message_meta", False: "confluent.field_meta"}


def tagged(schema: str, tags: Sequence[Tag]) -> str:
    """Errors: SchemaFaultError: there is no such message, or field."""
    tree = tree_of_proto(schema)[0]
    for tag in tags:
        node = _found(tree, tag)
        if node is None:
            kind = "Message" if tag.is_record else "Field"
            raise SchemaFaultError(f"No matching {kind} with name '{tag.path:.500}' found in the schema")
        _change(node, tag)
    return written(tree)


def tags_within(schema: str) -> list[Tag]:
    """The tags of messages and fields, by their names without the package."""
    tree = tree_of_proto(schema)[0]
    return [tag for each in tree.messages for tag in _of_message(each, "")]


def _of_message(block: Block, scope: str) -> Iterator[Tag]:
    name = f"{scope}{block.name}"
    fields = [*(each for oneof in block.oneofs for each in oneof.members), *block.members]
    places: list[tuple[str, Block | Member]] = [(name, block), *((f"{name}.{each.name}", each) for each in fields)]
    for path, node in places:
        tags = _meta(node, NAMES[node is block])[0].get("tags", [])
        if tags:
            found = tags if isinstance(tags, list) else [tags]
            yield Tag(path, node is block, tuple(dict.fromkeys(map(str, found))), ())
    for each in block.messages:
        yield from _of_message(each, f"{name}.")


def _found(tree: Block, tag: Tag) -> Block | Member | None:
    *words, last = tag.path.split(".")
    block: Block | None = tree
    for word in (*words, last) if tag.is_record else words:
        nested = [each for each in ([] if block is None else block.messages) if each.name == word]
        oneofs = [] if block is None or nested or tag.is_record else block.oneofs
        block = next(iter((*nested, *(each for each in oneofs if each.name == word))), None)
    if block is None or tag.is_record:
        return block
    members = [*block.members, *(member for oneof in block.oneofs for member in oneof.members)]
    return next((each for each in members if each.name == last), None)


def _change(node: Block | Member, tag: Tag) -> None:
    """Change the option's tags; all that is written of it is one option then."""
    name = NAMES[tag.is_record]
    meta, rest = _meta(node, name)
    given = meta.pop("tags", [])
    found = tag.applied([str(each) for each in (given if isinstance(given, list) else [given])])
    if found:
        meta["tags"] = [Text(each) for each in found]
    node.options = [*rest, Option(name, True, meta)] if meta else rest


def _meta(node: Block | Member, name: str) -> tuple[dict[str, Any], list[Option]]:
    """What is written of an option, as one, and the other options."""
    meta: dict[str, Any] = {}
    rest = []
    for option in node.options:
        if option.is_custom and option.name == name:
            meta |= _as_object(option.value)
        else:
            rest.append(option)
    return meta, rest


def _as_object(value: Any) -> dict[str, Any]:
    if isinstance(value, Option):
        inner = value.value
        return {value.name: _as_object(inner) if isinstance(inner, Option) else inner}
    return value if isinstance(value, dict) else {}
